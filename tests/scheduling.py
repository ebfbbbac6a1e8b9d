"""Which process of a run (pytest-xdist) gets which tests next.

A *unit* stays together on one process: all tests that want the same real cluster, so that it is started once; all of a
folder that want the Spark session, which costs 1 GiB; the tests of one module otherwise, with what it has prepared. The
tests with clusters mostly wait, for brokers that start, elect and notice what is gone; the others mostly compute. So
every second process takes clusters, the rest the others, and each goes over to the other kind when its own is used up.

The process that hands out knows tests by their ids only: what shares a cluster it is told by those that have collected
them, in a file (pytest-xdist's own groups, put into the ids, have no effect with pytest 9.2).

Nothing depends on this order: every test runs alone, or in any other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.brokers.releases import version_tuple

CLUSTER = "cluster-"
"""The prefix of the names of units with clusters."""
SPARK = f"{CLUSTER}of-spark"
"""The prefix of the names of units with a Spark session; their tests start their own clusters."""
SPARK_FOLDER = "tests/spark/"
MAX_PROCESSES = 6
TOLD = "units_with_clusters"
FOLDER = pytest.StashKey["TemporaryDirectory[str]"]()

SPECIAL = f"{CLUSTER}special-"
SPECIAL_LENGTH = 20
"""How many other tests take as long as one for which one broker will not do: these bring brokers down."""
LENGTHS = {
    "tests/faults/test_killed_tasks.py": 10,
    "tests/spark/pipeline/test_following.py": 20,
    "tests/spark/pipeline/test_killed.py": 50,
    "tests/spark/pipeline/test_standalone.py": 20,
    "tests/test_build.py": 30,
}
"""The same of modules whose tests are long."""


def unit_of(item: pytest.Item) -> str | None:
    """The name of the cluster that a test shares with others; None for a test without clusters."""
    if "spark" in getattr(item, "fixturenames", ()):
        return f"{SPARK}-in-{item.path.parent.name}"
    if "clusters" not in getattr(item, "fixturenames", ()) and item.get_closest_marker("compose") is None:
        return None
    release, is_special = wanted_cluster(item)
    return (
        f"{SPECIAL}{item.path.stem}-{release}" if is_special else f"{CLUSTER}{_kind(item)}{release or item.path.stem}"
    )


def wanted_cluster(item: pytest.Item) -> tuple[str, bool]:
    """The release that a test's parameters or its marker `cluster` name (else ""), and whether one broker won't do."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    marker = item.get_closest_marker("cluster")
    wanted = marker.kwargs if marker is not None else {}
    names = (parameters.get("release"), parameters.get("version"), parameters.get("old"), wanted.get("release"))
    return next((str(name) for name in names if name), ""), bool(wanted.get("is_special"))


def _kind(item: pytest.Item) -> str:
    """The kind of cluster in the test's marker, with a hyphen; an empty text if the marker has no kind."""
    marker = item.get_closest_marker("cluster")
    kind = marker.kwargs.get("kind") if marker is not None else None
    return f"{kind}-" if kind else ""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse tests that start Spark outside the folder that `make test-spark` collects."""
    if item.get_closest_marker("spark") is not None and SPARK_FOLDER not in item.nodeid:
        raise pytest.UsageError(
            f"{item.nodeid} has the marker spark: move it below {SPARK_FOLDER}, else no run collects it"
        )


@pytest.hookimpl(trylast=True)  # after pytest's own ordering by parameters
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests with real clusters last, release by release, so that few clusters are started; tell their units."""
    with_clusters = [item for item in items if unit_of(item) is not None]
    others = [item for item in items if unit_of(item) is None]
    items[:] = [*others, *sorted(with_clusters, key=_place)]
    told = getattr(config, "workerinput", {}).get(TOLD)
    if told is not None:
        draft = Path(f"{told}-{os.getpid()}")
        draft.write_text(json.dumps({item.nodeid: unit_of(item) for item in with_clusters}))
        draft.replace(told)  # each process tells the same


def _place(item: pytest.Item) -> tuple[bool, tuple[int, ...], str, str]:
    release, is_special = wanted_cluster(item)
    return not is_special, version_tuple(release), _kind(item), str(item.path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Three for each core: in half of their time and more the tests wait, the machine's cores then being idle."""
    return min(MAX_PROCESSES, 3 * len(os.sched_getaffinity(0)))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput[TOLD] = str(_told(node.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling | None:
    """Ours where none is named."""
    return UnitScheduling(config, log) if config.getoption("dist") == "load" else None


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(FOLDER, None)
    if folder is not None:
        folder.cleanup()


def _told(config: pytest.Config) -> Path:
    """Where the collecting processes of this run write the units with clusters."""
    if FOLDER not in config.stash:
        config.stash[FOLDER] = TemporaryDirectory(prefix="pykafka08-units-")
    return Path(config.stash[FOLDER].name) / "units.json"


class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole units, in the order of `next_unit`."""

    @cached_property
    def _with_clusters(self) -> dict[str, str]:
        units: dict[str, str] = json.loads(_told(self.config).read_text())
        return units

    def _split_scope(self, nodeid: str) -> str:
        return self._with_clusters.get(nodeid) or nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        sizes = {unit: len(tests) for unit, tests in self.workqueue.items()}
        chosen = next_unit(sizes, with_clusters=self.nodes.index(node) % 2 == 1)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def next_unit(sizes: Mapping[str, int], *, with_clusters: bool) -> str:
    """The unit to run next, of those that wait (with the number of tests of each): of the wanted kind if there is one.

    What takes longest comes first: with it at the end the other processes would have nothing to do.
    """
    wanted = [unit for unit in sizes if unit.startswith(CLUSTER) == with_clusters]
    return max(wanted or sizes, key=lambda unit: _length(unit, sizes[unit]))


def _length(unit: str, tests: int) -> int:
    if unit.startswith(SPECIAL):
        return tests * SPECIAL_LENGTH
    return tests * LENGTHS.get(unit, 1)
