"""Delta tables of the pipeline: commits to exactly the next version, and the view of other readers."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables import delta_log
from pykafka08.spark.pipeline.tables.model import Commit, DataFile, State
from pykafka08.spark.pipeline.tables.rows import partition_in_path
from pykafka08.spark.pipeline.tables.statistics import statistics_of
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline.made_tables import fields, file, made
from tests.stores.places import Place

DAYS = ("2024-03-01", "2024-03-02")
NEW = ("batch",)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return made(tmp_path / "table", id="long", day="date")


def one(table: Table, name: str, *ids: int, day: str = DAYS[0]) -> DataFile:
    return file(table, name, {"id": pa.array(ids, pa.int64())}, day)


def ids(table: Table, version: int | None = None) -> list[int]:
    """The ids as read by deltalake."""
    found = DeltaTable(table.location.delta_uri, version=version)
    return sorted(found.to_pyarrow_table()["id"].to_pylist())


def test_a_table_that_was_never_written_is_empty(tmp_path: Path) -> None:
    table = Table(tmp_path / "table")
    assert (table.version, table.commits(), table.live(), table.state()) == (-1, [], [], State())
    assert table.files_since(NEW, -1, table.version) == []
    assert (table.newest("q"), table.holds("q", 0), table.expire(0, with_attempts=True)) == (-1, False, 0)
    with pytest.raises(LookupError, match="prepare"):
        table.commit(Commit(0, "batch", "q", 0))


def test_live_files_follow_the_commits(table: Table) -> None:
    first, second, both = one(table, "a", 1, 2), one(table, "b", 3, day=DAYS[1]), one(table, "c", 1, 2)
    assert table.commit(Commit(1, "batch", "q", 0, (first,), counts={"read": 2}))
    assert table.commit(Commit(2, "batch", "q", 1, (second,), counts={"read": 1, "duplicates": 4}))
    assert table.commit(Commit(3, "compaction", "c", 0, (both,), (first.path,)))
    assert sorted(each.path for each in table.live()) == sorted([both.path, second.path])
    assert table.live(1) == [first]
    assert [each.day for each in table.live(2)] == list(DAYS)
    assert [each.version for each in table.commits(after=1, until=2)] == [2]
    assert [table.holds(*each) for each in (("q", 0), ("q", 1), ("q", 2), ("r", 0))] == [True, True, False, False]
    state = table.state()
    assert (state.version, state.rows, state.counts) == (3, 3, {"read": 3, "duplicates": 4})
    assert (state.brought, state.newest) == ({"batch": 3, "compaction": 2}, {"q": 1, "c": 0})
    assert table.files_since(NEW, -1, 3) == [first, second]
    assert table.files_since(NEW, 1, 3) == [second]


def test_other_readers_see_each_version(table: Table) -> None:
    first = one(table, "a", 1, 2)
    table.commit(Commit(1, "batch", "q", 0, (first,)))
    table.commit(Commit(2, "batch", "q", 1, (one(table, "b", 3, day=DAYS[1]),)))
    table.commit(Commit(3, "compaction", "c", 3, (one(table, "c", 1, 2),), (first.path,)))
    table.commit(Commit(4, "backfill", "b", 4, (), ("data/c/day=2024-03-01/one.parquet",)))
    assert [ids(table, version) for version in range(5)] == [[], [1, 2], [1, 2, 3], [1, 2, 3], [3]]
    found = DeltaTable(table.location.delta_uri)
    assert (found.transaction_version("q"), found.metadata().partition_columns) == (1, ["day"])
    dataset = found.to_pyarrow_dataset()
    assert dataset.to_table(filter=pa.dataset.field("day") == date(2024, 3, 2))["id"].to_pylist() == [3]
    lines = table.location.read(f"_delta_log/{3:020d}.json").splitlines()
    changes = [json.loads(line) for line in lines]
    assert {each["dataChange"] for action in changes for each in action.values() if "dataChange" in each} == {False}


def test_of_two_commits_to_one_version_the_first_counts(table: Table) -> None:
    assert table.commit(Commit(1, "batch", "q", 0))
    assert not table.commit(Commit(1, "batch", "r", 0))
    assert not table.commit(Commit(5, "batch", "r", 0))  # behind a version that nobody has made
    assert [each.query for each in table.commits(0)] == ["q"]


def test_writers_at_once_leave_each_version_once(table: Table) -> None:
    def write(batch: int) -> None:
        while not table.commit(Commit(table.version + 1, "batch", f"q{batch}", batch, counts={"read": 1})):
            pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(12)))
    assert sorted(each.batch for each in table.commits(0)) == list(range(12))
    assert table.state().counts == {"read": 12}
    assert len(table.state().newest) == 12


def test_a_commit_of_another_program_brings_no_new_rows_to_streams(table: Table) -> None:
    table.commit(Commit(1, "batch", "q", 0, (one(table, "a", 1),), counts={"read": 1}))
    write_deltalake(
        table.location.delta_uri,
        pa.table({"id": [7], "day": pa.array([date(2024, 3, 2)])}),
        mode="append",
    )
    DeltaTable(table.location.delta_uri).optimize.compact()
    assert [each.kind for each in table.commits(1)] == ["write"]
    assert table.files_since(NEW, 1, 2) == []
    assert (table.state().counts, table.state().rows) == ({"read": 1}, 2)
    assert table.commit(Commit(3, "batch", "q", 1, (one(table, "b", 2),), counts={"read": 1}))
    assert table.state().counts == {"read": 2}


def test_a_null_in_a_partition_column_is_no_text(table: Table) -> None:
    rows = pa.table({"id": pa.array([7], pa.int64()), "day": pa.array([None], pa.date32())})
    write_deltalake(table.location.delta_uri, rows, mode="append")
    foreign = table.live()[0]
    assert foreign.values == table.commits()[-1].added[0].values == {"day": ""}
    joined = file(table, "j", {"id": pa.array([7], pa.int64())})
    joined = replace(joined, values=foreign.values)
    assert table.commit(Commit(table.version + 1, "compaction", "c", 0, (joined,), (foreign.path,)))
    read = DeltaTable(table.location.delta_uri).to_pyarrow_table()
    assert read.select(["id", "day"]).to_pylist() == [{"id": 7, "day": None}]


def test_paths_that_are_percent_encoded_in_the_log(tmp_path: Path) -> None:
    """Text in a partition column: files that deltalake has named, then a file of the pipeline that replaces them."""
    rows = pa.table({"id": [1, 2], "kind": ["a b", "c%d"]})
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["kind"])
    table = Table(tmp_path / "t")
    foreign = table.live()
    assert sorted(foreign, key=lambda one: one.path) == sorted(table.commits()[0].added, key=lambda one: one.path)
    assert sorted(table.read(each, ["id"])["id"].to_pylist() for each in foreign) == [[1], [2]]
    mine = replace(file(table, "x y%20z", {"id": pa.array([3], pa.int64())}), values={"kind": "k"})
    removed = tuple(each.path for each in foreign)
    assert table.commit(Commit(1, "backfill", "b", 0, (mine,), removed))
    assert (table.live(), table.commits()[1].removed) == ([mine], removed)
    assert table.expire(2, with_attempts=False) == 0  # its files are not below data/
    assert table.commit(Commit(2, "backfill", "b", 1, (), (mine.path,)))
    assert DeltaTable(str(tmp_path / "t")).to_pyarrow_table().num_rows == 0
    assert table.expire(3, with_attempts=True) == 1


def test_commits_that_are_cleaned_up_meanwhile_are_left_out(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    assert table.commit(Commit(1, "batch", "q", 0))
    monkeypatch.setattr(delta_log, "versions", lambda location: [0, 1, 2])
    assert [commit.version for commit in table.existing_commits()] == [0, 1]


def test_a_new_column_is_null_in_older_rows_and_another_type_is_refused(table: Table) -> None:
    table.commit(Commit(1, "batch", "q", 0, (one(table, "a", 1),)))
    table.prepare(fields(id="long", kind="string", day="date"), ["day"])
    table.prepare(fields(id="long", day="date"), ["day"])  # an older program
    rows = {"id": pa.array([2], pa.int64()), "kind": ["x"]}
    assert table.commit(Commit(table.version + 1, "batch", "q", 1, (file(table, "b", rows, DAYS[0]),)))
    found = DeltaTable(table.location.delta_uri).to_pyarrow_table().select(["id", "kind"]).sort_by("id").to_pylist()
    assert found == [{"id": 1, "kind": None}, {"id": 2, "kind": "x"}]
    assert len(table.files_since(NEW, -1, table.version)) == 2
    with pytest.raises(ConfigError, match=r"column id is long in the table, but string in the settings"):
        table.prepare(fields(id="string", day="date"), ["day"])


def grow(table: Table, count: int) -> None:
    """Commit one file each; every second commit removes the file before it."""
    for version in range(table.version + 1, table.version + 1 + count):
        old = (f"data/{version - 1}/day={DAYS[0]}/one.parquet",) if version % 2 == 0 else ()
        added = (one(table, str(version), version),)
        assert table.commit(Commit(version, "batch", "q", version, added, old, {"read": 10}))


def cleaned(table: Table, before: int) -> None:
    """Make a checkpoint, and delete the commits before a version."""
    found = DeltaTable(table.location.delta_uri)
    found.create_checkpoint()
    for version in range(before):
        Path(table.location.uri, "_delta_log", f"{version:020d}.json").unlink()


def test_a_new_reader_gets_all_live_files_after_commits_are_cleaned_up(table: Table) -> None:
    grow(table, 8)
    state = table.state()
    cleaned(table, 8)
    assert table.state() == state
    assert table.state().counts == {"read": 80}
    assert table.files_since(NEW, -1, 8) == list(state.files)
    assert table.files_since(NEW, 7, 8) == [state.files[-1]]
    with pytest.raises(LookupError, match="commits after version 3 were cleaned up"):
        table.files_since(NEW, 3, 8)
    with pytest.raises(LookupError, match="version 4 was cleaned up"):
        table.state(4)
    assert not table.commit(Commit(5, "batch", "late", 0))
    grow(table, 1)
    assert table.state().counts == {"read": 90}


def test_a_table_object_reads_commits_of_other_writers(table: Table) -> None:
    """Several threads use the object, and commits that it has not read were cleaned up."""
    grow(table, 3)
    kept = Table(table.location.uri)
    assert kept.version == 3
    grow(table, 5)
    cleaned(table, 8)
    assert kept.state() == table.state()
    grow(table, 1)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: kept.version, range(2))) == [9, 9]
    assert not kept.commit(Commit(9, "batch", "late", 0))
    assert kept.commit(Commit(10, "batch", "r", 0))
    assert (kept.version, kept.newest("r"), kept.newest("q")) == (10, 0, 9)


def test_live_returns_only_the_files_of_the_given_days(table: Table) -> None:
    first, second, none = one(table, "a", 1), one(table, "b", 2, day=DAYS[1]), one(table, "c", 3)
    assert table.commit(Commit(1, "batch", "q", 0, (first, second, replace(none, values={"day": ""}))))
    assert table.live(days=[DAYS[1]]) == [second]
    assert table.live(1, days=[]) == []
    assert len(table.live(days=DAYS)) == 2


def test_a_new_reader_gets_all_live_files_after_files_are_deleted(table: Table) -> None:
    grow(table, 8)
    every = table.files_since(NEW, -1, 8)
    assert len(every) == 8
    assert table.expire(4, with_attempts=False) == 1
    assert table.files_since(NEW, -1, 8) == list(table.state().files)
    assert table.files_since(NEW, 4, 8) == every[4:]


def test_a_new_reader_gets_no_rows_that_a_backfill_has_replaced(table: Table) -> None:
    old, kept, new = one(table, "old", 1), one(table, "kept", 2), one(table, "new", 3)
    assert table.commit(Commit(1, "batch", "q", 0, (old, kept)))
    assert table.commit(Commit(2, "backfill", "backfill", 0, (new,), (old.path,)))
    assert table.files_since(NEW, -1, 2) == [kept, new]
    assert table.files_since(NEW, 0, 2) == [old, kept]  # of a reader that has begun
    assert table.files_since([*NEW, "backfill"], -1, 2) == [old, kept, new]


def test_expire_deletes_replaced_files_and_files_without_a_commit(table: Table) -> None:
    old, new = one(table, "old", 1), one(table, "new", 1)
    attempt = one(table, "attempt", 1)
    table.commit(Commit(1, "batch", "q", 0, (old,)))
    table.commit(Commit(2, "compaction", "c", 0, (new,), (old.path,)))
    assert table.expire(2, with_attempts=False) == 0
    assert table.expire(3, with_attempts=False) == 1
    data = Path(table.location.uri, "data")
    assert (list(data.glob("old/*/*")), (data / "attempt").exists()) == ([], True)
    assert table.expire(3, with_attempts=True) == 1
    assert not Path(table.location.uri, attempt.path).exists()
    assert ids(table) == [1]


def test_attempts_without_a_commit_are_deleted_on_every_store(stored: Place) -> None:
    table = made(Folder(stored.address("expired"), stored.storage), id="long", day="date")
    kept, left = one(table, "kept", 1), one(table, "left", 2)
    assert table.commit(Commit(1, "batch", "q", 0, (kept,)))
    assert table.expire(2, with_attempts=True) == 1
    folders = {each.path for each in table.location.files("data", is_recursive=False)}
    assert folders == {"data/kept"}
    assert table.live() == [kept]
    assert left.path not in {each.path for each in table.location.files("data")}


def logged(table: Table) -> list[int]:
    return sorted(int(path.stem) for path in Path(table.location.uri, "_delta_log").glob("*.json"))


def test_commits_that_a_checkpoint_covers_are_deleted_after_a_day(table: Table) -> None:
    grow(table, 6)
    DeltaTable(table.location.delta_uri).create_checkpoint()
    grow(table, 2)
    state, early = table.state(), time.time() - 25 * 3600
    for version in range(8):
        path = Path(table.location.uri, "_delta_log", f"{version:020d}.json")
        os.utime(path, (early, early))
    table.expire(6, with_attempts=False)
    assert logged(table) == list(range(9))  # a reader has not passed the checkpoint
    table.expire(8, with_attempts=True)
    assert logged(table) == [6, 7, 8]
    assert Table(table.location.uri).state() == state
    assert ids(table) == sorted(int(one.path.split("/")[1]) for one in state.files)


def test_statistics_let_readers_skip_files(tmp_path: Path) -> None:
    at = [datetime(2024, 3, 1, 10, 0, 0, 1, timezone.utc), datetime(2024, 3, 1, 10, 0, 0, 500, timezone.utc), None]
    rows = pa.table(
        {
            "id": pa.array([3, 1, 2], pa.int64()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "day": [date(2024, 3, 1)] * 3,
            "price": pa.array([Decimal("1.50"), None, Decimal("2.25")], pa.decimal128(10, 2)),
            "kind": ["b", "a", None],
            "text": ["a" * 40] * 3,
            "ratio": [1.5, float("inf"), 2.0],
            "value": [b"x"] * 3,
            "flag": [True] * 3,
            "nested": [{"a": 1}] * 3,
            "none": pa.nulls(3, pa.int32()),
        }
    )
    path = tmp_path / "x.parquet"
    pq.write_table(rows, path, row_group_size=2)
    found = json.loads(statistics_of(pq.read_metadata(path)))
    assert found["numRecords"] == 3
    assert found["minValues"] == {
        "id": 1, "at": "2024-03-01T10:00:00.000Z", "day": "2024-03-01", "price": 1.5, "kind": "a",
    }  # fmt: skip
    assert found["maxValues"] == {
        "id": 3, "at": "2024-03-01T10:00:00.001Z", "day": "2024-03-01", "price": 2.25, "kind": "b",
    }  # fmt: skip
    assert {name: found["nullCount"][name] for name in ("at", "id", "none", "text")} == {
        "at": 1, "id": 0, "none": 3, "text": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us", "UTC"), 10**18),
        (pa.timestamp("us", "UTC"), 253_402_300_799_999_900),  # the last millisecond of 9999, which is rounded up
        (pa.timestamp("us"), -(10**17)),
        (pa.date32(), 10**7),
    ],
)
def test_years_that_python_lacks_have_no_bounds(kind: pa.DataType, value: int, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"far": pa.array([value, 1, None], kind), "id": [1, 2, 3]}), path)
    found = json.loads(statistics_of(pq.read_metadata(path)))
    assert (found["minValues"], found["maxValues"]) == ({"id": 1}, {"id": 3})
    assert found["nullCount"] == {"far": 1, "id": 0}


def test_deltalake_reads_rows_by_their_statistics(tmp_path: Path) -> None:
    table = made(tmp_path / "t", id="long", at="timestamp")
    times = [datetime(2024, 3, 1, 10, 0, 0, 1, timezone.utc), datetime(2024, 3, 1, 12, 0, 0, 999_999, timezone.utc)]
    for number, at in enumerate(times):
        rows = {"id": pa.array([number], pa.int64()), "at": pa.array([at], pa.timestamp("us", "UTC"))}
        assert table.commit(Commit(number + 1, "batch", "q", number, (file(table, str(number), rows),)))
    dataset = DeltaTable(table.location.delta_uri).to_pyarrow_dataset()
    for number, at in enumerate(times):
        assert dataset.to_table(filter=pa.dataset.field("at") == pa.scalar(at))["id"].to_pylist() == [number]


def test_a_partition_is_read_off_the_end_of_a_path() -> None:
    path = "file:///lake/topic=old/bronze/shop/data/ingest-shop/topic=orders/ingest_date=2024-03-01/a.parquet"
    found = [re.search(partition_in_path(name), path) for name in ("topic", "ingest_date")]
    assert [match and match[1] for match in found] == ["orders", "2024-03-01"]


class Killed(BaseException):
    """No handler of errors catches this."""


def killed_at_each_call(owner: Any, name: str, act: Callable[[], object]) -> Iterator[None]:
    """Call ``act``, and end it before the first call of a function, then before the second, until it succeeds."""
    original = getattr(owner, name)
    for limit in itertools.cycle((0, 1)):
        left = itertools.count(limit, -1)

        def struck(*arguments: Any, left: Iterator[int] = left, **named: Any) -> Any:
            if next(left) == 0:
                raise Killed
            return original(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, struck)
            try:
                act()
            except Killed:
                pass
            else:
                return
        yield


@pytest.mark.parametrize("name", ["create_write_transaction", "get_add_actions"])
def test_killed_at_any_point_of_a_commit_the_table_is_whole(table: Table, name: str) -> None:
    for _ in killed_at_each_call(DeltaTable, name, lambda: grow(table, 6 - table.version)):
        state = table.state()
        assert state.counts.get("read", 0) == 10 * state.version
        assert ids(table) == sorted(int(each.path.split("/")[1]) for each in state.files)
    table.expire(table.version + 1, with_attempts=True)
    held = {each.path for each in table.live()}
    assert {each.path for each in table.location.files("data") if each.path.endswith(".parquet")} == held
