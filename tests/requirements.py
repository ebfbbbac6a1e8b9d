"""What some tests need beyond Python, and the one line said for all those that cannot run without it.

Where the real brokers come from is said here (`--brokers`); how they are started is in `integration`.

A test names its need with a marker. Without the programs it is skipped, unless `PYKAFKA08_REQUIRE_BROKERS=1`, as in
`.ci/run`: then it fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
from functools import cache
from typing import NamedTuple

import pytest

from tests.brokers.containers import no_engine


class Need(NamedTuple):
    """Programs that must be on the path, and what they are for."""

    programs: tuple[str, ...]
    purpose: str
    modules: tuple[str, ...] = ()


NEEDS = {
    "brokers": Need(("java", "mvn"), "real brokers"),
    "compose": Need(("java", "mvn", "docker"), "brokers in containers"),
    "needs_maven": Need(("java", "mvn"), "the files inside Kafka's own jars"),
    "kcat": Need(("kcat",), "kcat as a peer"),
    "kerberos": Need(("krb5kdc", "kadmin.local", "kinit"), "a Kerberos KDC", ("gssapi",)),
}
_folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
PATH = os.pathsep.join([*_folders, *(f"{folder[:-3]}sbin" for folder in _folders if folder.endswith("/bin"))])
"""Where programs are looked for; Debian keeps those of the KDC in /usr/sbin, which is not on every user's path."""
REQUIRE = "PYKAFKA08_REQUIRE_BROKERS"
"""Environment variable; 1 turns every such skip into a failure."""
SOAK = "PYKAFKA08_SOAK"
"""Environment variable; 1 for the long runs, with all releases and full sizes."""


FORMS = ("jars", "docker", "none")
ADDRESS = re.compile(r"[^:,\s]+:\d+")


def missing(marker: str, brokers: str) -> str | None:
    """Why tests with this marker cannot run here; None when they can."""
    need = NEEDS[marker]
    if marker == "brokers" and brokers == "none":
        return f"needs {need.purpose}, switched off by --brokers=none"
    absent = [program for program in need.programs if shutil.which(program, path=PATH) is None]
    if absent:
        return f"needs {need.purpose}, and there is no {' and no '.join(absent)} on PATH"
    for module in need.modules:
        if importlib.util.find_spec(module) is None:
            return f"needs {need.purpose}, and the Python module {module} is not installed"
    without_engine = _no_engine() if marker in ("brokers", "compose") and brokers == "docker" else None
    return f"needs {need.purpose}, and {without_engine}" if without_engine else None


_no_engine = cache(no_engine)


def brokers_option(value: str) -> str:
    """The form, or the address, that `--brokers` names."""
    if value not in FORMS and not ADDRESS.fullmatch(value):
        raise argparse.ArgumentTypeError(f"{value!r} is neither {', '.join(FORMS)} nor an address HOST:PORT")
    return value


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--brokers",
        type=brokers_option,
        metavar="jars|docker|none|HOST:PORT",
        default="jars",
        help="tests with real brokers start them from published jars (default) or in containers, are skipped, or use "
        "the broker at this address as far as one broker of its release will do",
    )
    parser.addoption(
        "--zookeeper",
        metavar="HOST:PORT[/PATH]",
        help="with --brokers=HOST:PORT: that broker's ZooKeeper; before 0.10.1 and for 0.8's tools it is needed",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is no part of this run: the compose files without `--brokers=docker`, soak tests in short runs."""
    absent = set[str]()
    if config.getoption("--brokers") != "docker":
        absent.add("compose")
    if os.environ.get(SOAK) != "1":
        absent.add("soak")
    left_out = [item for item in items if not absent.isdisjoint(mark.name for mark in item.iter_markers())]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if absent.isdisjoint(mark.name for mark in item.iter_markers())]


@pytest.hookimpl(tryfirst=True)  # before any fixture of the test is set up
def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in NEEDS:
        if item.get_closest_marker(marker) is None:
            continue
        reason = missing(marker, item.config.getoption("--brokers"))
        if reason is None:
            continue
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(f"{reason}; {REQUIRE}=1 forbids to skip it", pytrace=False)
        pytest.skip(reason)  # all from this line: pytest reports them as one
