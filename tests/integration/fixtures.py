"""Fixtures with real brokers, from where `--brokers` says. What their tests need is in `tests/requirements.py`."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.releases import version_tuple
from tests.integration.addressed import AddressedClusters
from tests.integration.clusters import RELEASES, Clusters, RealCluster, end_leftovers, session_folder
from tests.requirements import FORMS, SOAK
from tests.scheduling import wanted_cluster

TIMEOUT_S = 300
"""For one test with brokers: starting them, and fetching a release's jars the first time, counts too."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests with real clusters. Where tests run side by side, each process has a cluster of its own."""
    if "clusters" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.brokers)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.hookimpl(tryfirst=True)  # before another plugin changes the order or leaves out one of two event loops
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests with real clusters on trio with each file's newest release only, except in a soak.

    Event loops differ in the client and not in a broker: the tests with embedded brokers always run on both loops.
    """
    if os.environ.get(SOAK) == "1":
        return
    on_asyncio = {_on(item, "asyncio") for item in items if _loop(item) == "asyncio"}
    on_both = [item for item in items if _loop(item) == "trio" and _on(item, "asyncio") in on_asyncio]
    newest: dict[Path, tuple[int, ...]] = {}
    for item in on_both:
        newest[item.path] = max(newest.get(item.path, ()), _release(item))
    left_out = [item for item in on_both if _release(item) < newest[item.path]]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _loop(item: pytest.Item) -> str | None:
    """The event loop of a test with a real cluster that can run on either."""
    if "clusters" not in getattr(item, "fixturenames", ()) or not hasattr(item, "callspec"):
        return None
    loop = item.callspec.params.get("anyio_backend")
    return loop if isinstance(loop, str) else None


def _on(item: pytest.Item, loop: str) -> tuple[str, str]:
    """The test's function, and the id that its parameters have on that event loop."""
    name = getattr(item, "callspec").id  # noqa: B009 (pytest declares it for functions only)
    words = [loop if word in ("asyncio", "trio") else word for word in name.split("-")]
    return item.nodeid.removesuffix(f"[{name}]"), "-".join(words)


def _release(item: pytest.Item) -> tuple[int, ...]:
    return version_tuple(wanted_cluster(item)[0])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures that tests have noted with `record_property("figure", text)`."""
    figures = [
        text
        for report in terminalreporter.getreports("passed")
        for name, text in report.user_properties
        if name == "figure" and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures")
        for text in figures:
            terminalreporter.line(str(text))


def _clusters(folder: Path, config: pytest.Config) -> Clusters:
    form = config.getoption("--brokers")
    if form in FORMS:
        return Clusters(folder, ["--docker"] if form == "docker" else [])
    return AddressedClusters(folder, form, config.getoption("--zookeeper"))


@pytest.fixture(scope="session")
def clusters(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """Starts real clusters, one alive at a time; taken down at the end, also after Ctrl-C or SIGTERM."""
    folder = session_folder(os.getpid())
    end_leftovers(folder.parent)
    folder.mkdir(parents=True)
    on_the_main_thread = threading.current_thread() is threading.main_thread()
    # SIGTERM's default would end pytest without a word to its fixtures
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if on_the_main_thread else None
    started = _clusters(folder, request.config)
    try:
        yield started
    finally:
        started.take_down()
        shutil.rmtree(folder, ignore_errors=True)
        if on_the_main_thread:
            signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Every release in turn."""
    return str(request.param)


@pytest.fixture
def kafka(release: str, clusters: Clusters) -> RealCluster:
    """One broker of the release."""
    return clusters.running(release)
