"""The examples and the code in README.md run, as a newcomer runs them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
DEADLINE_S = 150


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *words]
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        command, capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=ROOT, **options
    )


@contextmanager
def embedded(*options: str) -> Iterator[list[str]]:
    """The address of an embedded broker in a process of its own, and with a ZooKeeper that one's."""
    command = [sys.executable, "-m", "pykafka08", "broker", "--partitions", "3", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        lines = [broker.stdout.readline().decode() for _ in range(1 + ("--zookeeper-port" in options))]
        yield [line.strip().partition("=")[2] for line in lines]
        broker.communicate()


@pytest.fixture
def brokers() -> Iterator[str]:
    """A broker of the test's own: code of the documents has topics and groups of one name."""
    with embedded() as (address,):
        yield address


@pytest.fixture(scope="module")
def shared_brokers() -> Iterator[str]:
    """One broker for tests whose topics have names of their own."""
    with embedded() as (address,):
        yield address


@pytest.fixture(scope="module")
def greetings(shared_brokers: str) -> str:
    """What the producer writes about its ten records in a topic of this name, to which nobody adds any."""
    produced = run(str(EXAMPLES / "produce.py"), shared_brokers, "greetings")
    assert produced.returncode == 0, produced.stderr
    return produced.stdout


def test_the_demo_agrees_with_itself_and_with_its_file() -> None:
    ran = run(str(EXAMPLES / "demo.py"))
    assert ran.returncode == 0, ran.stderr
    digests = re.findall(r"6,099 records, 550,167 bytes, [\d,]+ records/s, SHA-256 ([0-9a-f]{64})", ran.stdout)
    lines = (EXAMPLES / "data" / "nyc-flights.csv").read_bytes().splitlines()[1:]
    assert digests == [hashlib.sha256(b"\n".join(lines)).hexdigest()] * 2
    assert "produced 6,099 of 6,099 records\n" in ran.stdout
    assert "consumed 6,099 of 6,099 records\n" in ran.stdout


def test_the_demo_tells_when_what_came_out_is_not_what_went_in() -> None:
    swap = """
import sys
import demo
read = demo.consume
def consume(brokers, count):
    lines = read(brokers, count)
    return [lines[1], lines[0], *lines[2:]]
demo.consume = consume
sys.exit(demo.main())
"""
    ran = run("-c", swap, env={**os.environ, "PYTHONPATH": str(EXAMPLES)})
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.endswith("\nTHE DIGESTS DIFFER\n")
    assert len(set(re.findall(r"SHA-256 ([0-9a-f]{64})", ran.stdout))) == 2


def test_the_demos_data_is_the_file_that_its_readme_names() -> None:
    readme = (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((EXAMPLES / "data" / "nyc-flights.csv").read_bytes()).hexdigest()
    assert digest in readme
    assert "CC0" in readme


def test_move_topic(shared_brokers: str, greetings: str) -> None:
    words = (str(EXAMPLES / "move_topic.py"), shared_brokers, shared_brokers)
    moved = run(*words, "greetings", "", "copy")
    assert moved.returncode == 0, moved.stderr
    assert moved.stdout.splitlines()[0] == "greetings goes to copy: 3 partitions"
    assert "10 records copied, 0 to go\n" in moved.stdout
    again = run(*words, "greetings", "", "copy")
    assert again.stdout.splitlines()[-1] == "0 records copied, 0 to go"
    nobody = run(*words, "greetings", "nobody", "copy")
    assert nobody.returncode == 1
    assert "no offsets in the source's Kafka" in nobody.stderr


def test_produce_and_consume(shared_brokers: str, greetings: str) -> None:
    assert len(re.findall(r"^greetings partition [0-2] offset \d+$", greetings, re.MULTILINE)) == 10

    command = [sys.executable, str(EXAMPLES / "consume.py"), shared_brokers, "greetings"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as consumer:
        assert consumer.stdout is not None
        lines = [consumer.stdout.readline() for _ in range(10)]
        consumer.kill()
    assert sorted(line.split(" ", 2)[2] for line in lines) == [f"b'key {n}' b'hello {n}'\n" for n in range(10)]


def test_columns_of_a_topic(shared_brokers: str, greetings: str) -> None:
    added = run(str(EXAMPLES / "columns.py"), shared_brokers, "greetings")
    assert (added.returncode, added.stdout) == (0, "10 records, 70 bytes\n"), added.stderr


def heed_ctrl_c() -> None:
    """Whoever runs in the background of a shell may have been started with SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("how", ["its reader goes", "interrupted"])
def test_consume_ends_quietly(shared_brokers: str, how: str) -> None:
    topic = f"until {how}".replace(" ", "-")
    assert run(str(EXAMPLES / "produce.py"), shared_brokers, topic).returncode == 0
    command = [sys.executable, "-W", "error", str(EXAMPLES / "consume.py"), shared_brokers, topic]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=heed_ctrl_c) as consumer:
        assert consumer.stdout is not None
        assert consumer.stderr is not None
        assert consumer.stdout.readline()
        if how == "interrupted":
            consumer.send_signal(signal.SIGINT)
        else:
            consumer.stdout.close()
            assert run(str(EXAMPLES / "produce.py"), shared_brokers, topic).returncode == 0
        assert (consumer.wait(DEADLINE_S), consumer.stderr.read()) == (0, "")


def test_copies_are_exact(shared_brokers: str) -> None:
    """One after the other, of which the first is interrupted."""
    for _ in range(3):
        assert run(str(EXAMPLES / "produce.py"), shared_brokers, "originals").returncode == 0
    copier = str(EXAMPLES / "copy_exactly_once.py")
    command = [sys.executable, copier, shared_brokers, "originals", "copies"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=heed_ctrl_c) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        other.send_signal(signal.SIGINT)
        assert other.wait(DEADLINE_S) == 0
    for _ in range(2):
        assert run(str(EXAMPLES / "produce.py"), shared_brokers, "originals").returncode == 0
    ran = run(copier, shared_brokers, "originals", "copies", "20")
    assert (ran.returncode, ran.stderr) == (0, "")
    address = shared_brokers
    code = f"""
import anyio
from pykafka08 import Consumer
async def main():
    settings = dict(bootstrap_servers={address!r}, auto_offset_reset="earliest", isolation_level="read_committed")
    async with Consumer("copies", **settings) as consumer:
        read = [(await consumer.getone(timeout=20)).value for _ in range(50)]
        print(sorted(read) == sorted([b"hello %d" % n for n in range(10)] * 5), await consumer.getmany(timeout=0.5))
anyio.run(main)
"""
    ran = run("-c", code)
    assert (ran.returncode, ran.stdout) == (0, "True []\n"), ran.stderr
    # The last that it holds are marks, no records; and the interrupted copier may have aborted some.
    added = run(str(EXAMPLES / "columns.py"), shared_brokers, "copies")
    assert (added.returncode, added.stdout) == (0, "50 records, 350 bytes\n"), added.stderr


def blocks(language: str, file: str = "README.md") -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


SAMPLES = {"README.md": 4, "docs/groups.md": 2, "docs/transactions.md": 1}
"""How many there are that end by themselves; these come first."""


@pytest.mark.parametrize(
    ("file", "number"),
    [(file, number) for file, count in SAMPLES.items() for number in range(count)],
)
def test_the_code_in_the_documents_runs(file: str, number: int, brokers: str) -> None:
    assert len(blocks("python", file)) == SAMPLES[file] + (file == "docs/groups.md")
    ran = run("-c", blocks("python", file)[number].replace("localhost:9092", brokers))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout or file == "docs/transactions.md"


def test_the_mirror_in_the_documents_runs(brokers: str) -> None:
    assert run(str(EXAMPLES / "produce.py"), brokers, "orders").returncode == 0
    reader = ("consume", "-b", brokers, "-t", "orders", "--from-beginning", "-n", "10", "--group", "billing")
    assert run("-m", "pykafka08", *reader).returncode == 0
    _, code = blocks("python", "docs/mirror.md")
    with embedded() as (target,):
        ran = run("-c", code.replace("old:9092", brokers).replace("new:9092", target))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("orders -> orders 3 partitions")
    assert "\n10 copied, 0 to go\n" in ran.stdout
    moved = re.findall(r"^billing .*partition=[0-2]\) (\d+) -> \1 $", ran.stdout, re.MULTILINE)
    assert sum(map(int, moved)) == 10


def test_the_migration_of_a_group_in_the_documents_runs() -> None:
    code, _ = blocks("python", "docs/mirror.md")
    with embedded("--version", "2.8", "--zookeeper-port", "0") as (brokers, zookeeper):
        assert run(str(EXAMPLES / "produce.py"), brokers, "orders").returncode == 0
        reset = ("reset", "billing", "--topic", "orders", "--to", "latest", "-z", zookeeper, "--force")
        assert run("-m", "pykafka08", "zk", "group", *reset).returncode == 0
        ran = run("-c", code.replace("zk:2181", zookeeper).replace("kafka:9092", brokers))
    assert (ran.returncode, ran.stderr) == (0, "")
    moved = re.findall(r"^orders [0-2] (\d+) committed to Kafka$", ran.stdout, re.MULTILINE)
    assert sum(map(int, moved)) == 10


def test_the_service_in_the_documents_stops_when_it_is_told_to(brokers: str) -> None:
    assert run(str(EXAMPLES / "produce.py"), brokers, "orders").returncode == 0
    code = blocks("python", "docs/groups.md")[-1].replace("localhost:9092", brokers)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-u", "-W", "error", "-c", code], text=True, **pipes) as service:
        assert service.stdout is not None
        assert service.stderr is not None
        assert "hello" in service.stdout.readline()
        service.send_signal(signal.SIGTERM)
        assert (service.wait(DEADLINE_S), service.stderr.read()) == (0, "")


@pytest.mark.parametrize("name", ["produce", "consume", "columns", "copy_exactly_once"])
def test_without_arguments_an_example_tells_its_usage(name: str) -> None:
    ran = run(str(EXAMPLES / f"{name}.py"))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"Usage: python {name}.py HOST:PORT" in ran.stderr


def test_the_code_about_the_embedded_broker_runs() -> None:
    for code in blocks("python", "docs/testing.md"):
        ran = run("-c", code)
        assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("plugin", ["anyio", "asyncio"])
def test_the_fixtures_about_the_embedded_broker_run(tmp_path: Path, plugin: str) -> None:
    (code,) = blocks("python test", "docs/testing.md")
    if plugin == "asyncio":
        code = code.replace("@pytest.fixture", "@pytest_asyncio.fixture").replace("mark.anyio", "mark.asyncio")
        code = f"import pytest_asyncio\n{code}"
    (tmp_path / "test_it.py").write_text(code)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    ran = run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert ran.returncode == 0, ran.stdout
    assert "passed" in ran.stdout


@pytest.mark.parametrize(
    "file", ["README.md", "docs/console.md", "docs/groups.md", "docs/testing.md", "docs/transactions.md"]
)
def test_files_that_the_documents_name_exist(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert links
    for link in links:
        assert os.path.exists(ROOT / Path(file).parent / link), link


STANDS_FOR_AIRFLOW = """
import runpy, sys, types

class Task:
    def __rshift__(self, after):
        return after

class Bash:
    def bash(self, function=None, **settings):
        def decorated(body):
            def call():
                print(body())
                return Task()
            return call
        return decorated(function) if function else decorated

airflow, sdk = types.ModuleType("airflow"), types.ModuleType("airflow.sdk")
sdk.dag, sdk.task = lambda **settings: lambda body: body, Bash()
sys.modules |= {"airflow": airflow, "airflow.sdk": sdk}
runpy.run_path(sys.argv[1])
"""


def test_the_tasks_of_the_airflow_dag_are_commands_that_there_are() -> None:
    """Airflow itself is far too large for the development environment."""
    environment = {**os.environ, "PIPELINE_CONFIG": "my flights.toml"}
    ran = run("-c", STANDS_FOR_AIRFLOW, str(EXAMPLES / "pipeline" / "airflow_dag.py"), env=environment)
    assert ran.returncode == 0, ran.stderr
    commands = [shlex.split(line.partition(" || ")[0]) for line in ran.stdout.splitlines()]
    assert [words[:3] for words in commands] == [
        ["pykafka08", "pipeline", action] for action in ("validate", "run", "verify", "status")
    ]
    for words in commands:
        ended = run("-m", *words)
        assert ended.stderr == "pykafka08 pipeline: my flights.toml: No such file or directory\n"
