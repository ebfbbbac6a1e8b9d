"""The package as a whole: what it exports, what it needs, what it loads, and that it says nothing by itself."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import pykafka08

ROOT = Path(__file__).parent.parent


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    return run


def test_every_export_exists_and_every_name_is_exported() -> None:
    assert pykafka08.__all__ == sorted(pykafka08.__all__)
    assert set(pykafka08.__all__) == set(pykafka08._HOME)
    for name in pykafka08.__all__:
        assert getattr(pykafka08, name) is getattr(import_module(f"pykafka08.{pykafka08._HOME[name]}"), name)
    assert set(pykafka08.__all__) <= set(dir(pykafka08))
    with pytest.raises(AttributeError, match="Nothing"):
        pykafka08.Nothing  # noqa: B018


def test_every_module_exports_what_its_all_says() -> None:
    modules = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "pykafka08").rglob("*.py")]
    checked = 0
    for path in modules:
        if path.name in ("__init__", "__main__"):
            continue
        module = import_module(".".join(path.parts))
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.{name}"
            checked += 1
    assert checked > 100


def test_the_package_is_typed() -> None:
    assert (ROOT / "pykafka08" / "py.typed").exists()


def test_six_packages_are_required_and_no_more() -> None:
    needed = [text for text in requires("pykafka08") or [] if "extra ==" not in text]
    names = {re.split(r"[^A-Za-z0-9_.-]", text)[0].lower() for text in needed}
    assert names == {"anyio", "crc32c", "kazoo", "mypy-extensions", "python-snappy", "structlog"}


def test_the_readme_has_every_extra_and_no_other() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("| extra |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    named = [name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row)]
    assert sorted(named) == sorted(metadata("pykafka08").get_all("Provides-Extra") or [])


def test_an_extra_to_install_exists_and_is_quoted_for_the_shell() -> None:
    """Square brackets without quotes are a pattern in zsh."""
    extras = {name.lower() for name in metadata("pykafka08").get_all("Provides-Extra") or ()}
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "pykafka08").rglob("*.py")]
    found = [each for file in files for each in re.findall(r"pip install (\S*\[[^\]]*\]'?)", file.read_text("utf-8"))]
    assert len(found) > 15
    for each in found:
        match = re.fullmatch(r"'(?:pykafka08|\.)\[([\w,-]+)\]'", each)
        assert match is not None, each
        assert set(match[1].split(",")) <= extras, each


def test_importing_the_package_loads_nothing_of_it() -> None:
    loaded = python("import sys; before = set(sys.modules); import pykafka08; print(*set(sys.modules) - before)").stdout
    foreign = {"asyncio", "anyio", "structlog", "kazoo", "snappy", "cramjam", "crc32c", "trio", "socket"}
    assert not foreign & set(loaded.split())
    assert {name for name in loaded.split() if name.startswith("pykafka08")} == {"pykafka08"}


def test_a_client_loads_neither_the_broker_nor_the_console_nor_trio() -> None:
    loaded = python("import sys; from pykafka08 import Consumer, Producer; print(*sys.modules)").stdout.split()
    assert "pykafka08.producer.producer" in loaded
    unwanted = ("pykafka08.broker", "pykafka08.cli", "kazoo", "trio")
    assert not [name for name in loaded if name in unwanted]


def test_looking_offsets_up_loads_no_decoder() -> None:
    loaded = python("import sys, pykafka08.consumer.offsets; print(*sys.modules)").stdout.split()
    assert "pykafka08.consumer.requests" in loaded
    assert not {"pykafka08.records.reader", "crc32c", "numpy", "pyarrow"} & set(loaded)


PREPARED = """
import anyio
from pykafka08 import Consumer, EmbeddedCluster, compiled
from pykafka08.records.batch_records import is_prepared

async def main():
    async with EmbeddedCluster() as cluster:
        before = is_prepared()
        async with Consumer(bootstrap_servers=cluster.bootstrap_servers):
            print(compiled, before, is_prepared())

anyio.run(main)
"""


def test_what_large_batches_are_decoded_with_is_loaded_before_there_are_any() -> None:
    compiled, before, after = python(PREPARED).stdout.split()
    assert before == compiled  # the compiled form has nothing to load
    assert after == "True", "the first large batch would wait for it"


HEARD = """
import logging
import sys
import threading
import anyio
from pykafka08 import EmbeddedCluster, Producer

threads = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "structlog":
            threads.append(threading.current_thread() is threading.main_thread())

async def main():
    async with EmbeddedCluster() as cluster:
        before = "structlog" in sys.modules
        async with Producer(bootstrap_servers=cluster.bootstrap_servers):
            print(before, "structlog" in sys.modules, *threads)

logging.basicConfig()
sys.meta_path.insert(0, Watch())
anyio.run(main, backend=BACKEND)
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_messages_are_written_with_is_loaded_before_there_are_any_and_beside_the_event_loop(backend: str) -> None:
    assert python(f"BACKEND = {backend!r}\n{HEARD}").stdout.split() == ["False", "True", "False"]


ROUND_TRIP = """
import anyio
from pykafka08 import Consumer, EmbeddedCluster, KafkaError, Producer

async def main():
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        servers = cluster.bootstrap_servers
        async with Producer(bootstrap_servers=servers) as producer:
            await producer.send_many("t", [b"a", b"b"])
        async with Consumer("t", bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            async for record in consumer:
                if record.value == b"b":
                    break
            await cluster.stop_broker(0)
            with anyio.move_on_after(0.3):
                await consumer.getone()
    try:
        async with Producer(bootstrap_servers=servers):
            raise SystemExit("there is no broker any more")
    except KafkaError:
        pass

anyio.run(main, backend=BACKEND)
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_using_the_package_writes_nothing(backend: str) -> None:
    run = python(f"BACKEND = {backend!r}\n{ROUND_TRIP}")
    assert (run.stdout, run.stderr) == ("", "")


def test_the_changelog_has_a_place_for_what_comes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in text


def links_of(page: Path) -> list[str]:
    """Relative links, without those to places in pages."""
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    return [link.partition("#")[0] for link in found if not re.match(r"[a-z]+:|#", link)]


def test_every_relative_link_of_the_pages_leads_somewhere() -> None:
    folders = ("pykafka08", "docs", "tests", "examples", "benchmarks", "docker")
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]
    links = [(page, link) for page in pages for link in links_of(page)]
    assert len(links) > 30
    missing = [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert missing == []
