"""Leases: only one process at a time works on a stage, on each kind of store, even if others were killed."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import leasing
from pykafka08.spark.pipeline.leasing import Lease, holders, leased
from pykafka08.spark.pipeline.stores import Folder, local_folder
from pykafka08.spark.pipeline.tables.model import Commit
from pykafka08.spark.pipeline.tables.stream import TableDataSource, stream_options
from pykafka08.spark.pipeline.tables.table import LeaseLostError, Table
from tests.spark.pipeline.made_tables import file, made
from tests.stores.places import Place

HOLD = """
import sys
from pathlib import Path
from pykafka08.spark.pipeline.leasing import leased
from pykafka08.spark.pipeline.stores import local_folder
with leased(local_folder(Path(sys.argv[1])), ["decode-shop"]):
    print(flush=True)
    sys.stdin.read()
"""


class Clock:
    """A clock for the wall time and the monotonic time of the module, moved by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(leasing, "time", SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Folder:
    return local_folder(tmp_path / "out")


def work(root: Folder) -> list[tuple[str, ...]]:
    return [one.work for one in holders(root)]


@contextmanager
def elsewhere(monkeypatch: pytest.MonkeyPatch, host: str = "other") -> Iterator[None]:
    """Run the block as if on another machine."""
    with monkeypatch.context() as patch:
        patch.setattr(leasing, "_machine", lambda: host)
        patch.setattr(leasing, "socket", SimpleNamespace(gethostname=lambda: host))
        yield


def test_a_stage_has_one_holder_on_every_store(stored: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Folder(stored.address("leases"), stored.storage)
    assert work(root) == []
    with leased(root, ["a", "b"]) as first, leased(root, ["c"]) as second:
        assert second.epoch == first.epoch + 1
        assert work(root) == [("a", "b"), ("c",)]
        with elsewhere(monkeypatch):
            with pytest.raises(
                ConfigError, match=r"^folder: .*leases is in use: a, b on \S+, process \d+, lease renewed"
            ):
                leased(root, ["b"]).__enter__()
        with pytest.raises(ConfigError, match="in use"):
            leased(root, ["d"], is_exclusive=True).__enter__()
        first.renew()
        first.check()
    assert work(root) == []
    with leased(root, ["b"], is_exclusive=True) as third:
        assert third.epoch == first.epoch + 2


def test_only_one_of_several_concurrent_processes_gets_the_lease(root: Folder) -> None:
    start = Barrier(4)

    def tries(number: int, stack: ExitStack) -> bool:
        start.wait()
        try:
            stack.enter_context(leased(root, ["a", f"of-{number}"]))
        except ConfigError:
            return False
        return True

    with ExitStack() as stack, ThreadPoolExecutor(4) as threads:
        assert list(threads.map(tries, range(4), [stack] * 4)).count(True) == 1
        assert len(holders(root)) == 1


def test_the_lease_of_a_killed_process_ends_at_once(root: Folder) -> None:
    command = [sys.executable, "-c", HOLD, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        with pytest.raises(ConfigError, match=f"decode-shop on .*, process {process.pid}"):
            leased(root, ["decode-shop"]).__enter__()
        process.send_signal(signal.SIGKILL)
    assert holders(root) == []
    with leased(root, ["decode-shop"]) as lease:
        assert lease.epoch == 2


def test_on_another_machine_a_lease_ends_after_its_duration(
    root: Folder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = leasing._acquired(root, ("a",), False, print)
    with elsewhere(monkeypatch):
        clock.now += 60
        with pytest.raises(ConfigError, match="lease renewed 60 s ago"):
            leased(root, ["a"]).__enter__()
        clock.now += 1
        with leased(root, ["a"]) as other:
            assert other.epoch == lost.epoch + 1
            with pytest.raises(
                LeaseLostError, match=r"the lease of a has ended: it was not renewed.*another process has taken it"
            ):
                lost.check()
            lost.release()
            assert work(root) == [("a",)]


def test_an_overdue_lease_that_nobody_took_is_renewed(root: Folder, clock: Clock) -> None:
    lease = leasing._acquired(root, ("a",), False, print)
    clock.now += 1000
    assert holders(root) == []
    lease.check()
    assert work(root) == [("a",)]


def test_a_lease_is_exclusive_only_without_other_leases(root: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with leased(root, ["a"]) as first:
        with leased(root, ["b"]), first.exclusive() as is_exclusive:
            assert not is_exclusive
        with ExitStack() as stack:
            assert stack.enter_context(first.exclusive())
            waits = SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=lambda _: stack.close())
            monkeypatch.setattr(leasing, "time", waits)
            with leased(root, ["b"], say=said.append):
                assert work(root) == [("a",), ("b",)]
    assert [one.partition(" on ")[0] for one in said] == ["waiting for a"]


def test_a_suspended_process_commits_nothing_after_its_successor(
    root: Folder, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "table")
    old = leasing._acquired(root, ("q",), False, print)
    commit_of(old, tmp_path, 0)
    with elsewhere(monkeypatch):
        clock.now += 61
        new = leasing._acquired(root, ("q",), False, print)
    with pytest.raises(LeaseLostError, match="run this again"):
        commit_of(old, tmp_path, 1)
    commit_of(new, tmp_path, 1)
    monkeypatch.setattr(Lease, "check", lambda self: None)  # suspended between this and the commit
    with pytest.raises(LeaseLostError, match="a process with a later lease has committed q"):
        commit_of(old, tmp_path, 2)
    commit_of(new, tmp_path, 2)
    assert Table(tmp_path / "table").state().counts == {"rows": 3}


def test_another_process_commits_and_reads_only_while_the_lease_is_held(root: Folder, tmp_path: Path) -> None:
    """A query on a Spark Connect server, whose client may be gone."""
    made(tmp_path / "table")
    with leased(root, ["q"]) as lease:
        commit_of(lease, tmp_path, 0)
        table = pickle.loads(pickle.dumps(Table(tmp_path / "table", lease)))
        assert table.commit(Commit(table.version + 1, "batch", "q", 1))
        options = stream_options(table.folder, lease.remote())
        reader = TableDataSource(options).streamReader(StructType())
        assert reader.latestOffset() == {"version": table.version}
    with pytest.raises(LeaseLostError, match=r"the lease of this query has ended"):
        table.commit(Commit(table.version + 1, "batch", "q", 2))
    with pytest.raises(LeaseLostError, match=r"the lease of this query has ended"):
        reader.latestOffset()


def test_runs_of_different_stages_compact_the_same_tables(root: Folder, tmp_path: Path) -> None:
    made(tmp_path / "table")
    with leased(root, ["a"]) as first, leased(root, ["b"]) as second:
        for batch, lease in enumerate((second, first)):
            table = Table(tmp_path / "table", lease)
            assert table.commit(Commit(table.version + 1, "compaction", "compaction", batch))


def commit_of(lease: Lease, folder: Path, batch: int) -> None:
    table = Table(folder / "table", lease)
    added = file(table, f"{lease.epoch}-{batch}", {"id": pa.array([batch], pa.int64())})
    assert table.commit(Commit(table.version + 1, "batch", "q", batch, (added,), counts={"rows": 1}))


def test_a_folder_that_cannot_be_created_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(ConfigError, match=r"^folder: .*/x: "):
        leased(local_folder(tmp_path / "x"), ["a"]).__enter__()
