"""Retention without Spark: the files that it removes, the offsets that commits name, and the files that are deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from pykafka08 import TopicPartition
from pykafka08.cli.main import main
from pykafka08.spark.pipeline import compacting, retaining, running
from pykafka08.spark.pipeline.leasing import BACKFILL, leased
from pykafka08.spark.pipeline.settings import Pipeline, read
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.model import BACKFILL as REPLACED
from pykafka08.spark.pipeline.tables.model import COMPACTION, NEW_ROWS, RETENTION, Commit, DataFile
from pykafka08.spark.pipeline.tables.removed import OffsetRange, joined, read_ranges, write_ranges
from pykafka08.spark.pipeline.tables.table import Table
from pykafka08.spark.pipeline.verifying import BEGUN
from tests.spark.pipeline import orders
from tests.spark.pipeline.made_tables import commit, fields, file, made
from tests.stores.places import Place

NOW = datetime(2024, 3, 31, tzinfo=timezone.utc)
OLD, YOUNG = NOW - timedelta(days=40), NOW - timedelta(days=20)
NO_TIMESTAMP = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=timezone.utc)
"""The timestamp in bronze of a record without one."""
SETTINGS = '[retention]\nbronze = "30 days"\nrejects = "30 days"\nsilver = "30 days"\n\n[spark]'
QUERIES = {"bronze/shop": "ingest-shop", "silver": "decode-shop", "rejects": "decode-shop"}
READERS = {"bronze/shop": "decode-shop", "silver": "aggregate-hourly", "rejects": "dead-letters"}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    config = orders.written_config(tmp_path, "nobody:1")
    config.write_text(config.read_text().replace("[spark]", SETTINGS, 1))
    return read(config)


@pytest.fixture
def bronze(pipeline: Pipeline) -> Table:
    table = Table(pipeline.bronze("shop"))
    columns = {"partition": "integer", "offset": "long", "timestamp": "timestamp"}
    table.prepare(fields(**columns, topic="string", ingest_date="date"), ["topic", "ingest_date"])
    return table


def record_file(table: Table, at: datetime, *offsets: int, partitions: tuple[int, ...] = (), day: str = "") -> DataFile:
    """A file of bronze with a record at each offset, by default of partition 0."""
    columns = {
        "partition": pa.array(partitions or [0] * len(offsets), pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([at] * len(offsets), pa.timestamp("us", "UTC")),
    }
    written = file(table, f"{table.version + 1}-{offsets[0]}", columns)
    return table.data_file(written.path, {"topic": "orders", "ingest_date": day or "2024-03-30"})


def read_up_to(pipeline: Pipeline, name: str, version: int) -> None:
    """The checkpoint of the stage that reads a table, after a batch that ended at a version."""
    checkpoint = pipeline.checkpoint(READERS[name])
    (checkpoint / "offsets" / "0").write_text(f'v1\n{{}}\n{{"version": {version}}}')
    (checkpoint / "commits" / "0").write_text("v1\n{}")


def retained(pipeline: Pipeline, said: list[str] | None = None) -> list[tuple[str, int]]:
    """Remove old rows; the number of rows by table."""
    say = print if said is None else said.append
    return [(one.table, one.rows) for one in retaining.retain(pipeline, now=NOW, say=say)]


def test_a_file_is_removed_when_all_its_records_are_old_and_read(pipeline: Pipeline, bronze: Table) -> None:
    old = record_file(bronze, OLD, 0, 1, 2)
    commit(bronze, NEW_ROWS, old, record_file(bronze, YOUNG, 3, 4), query="ingest-shop")
    commit(bronze, NEW_ROWS, record_file(bronze, OLD, 5), query="ingest-shop")
    assert retained(pipeline) == []  # no stage has read anything
    read_up_to(pipeline, "bronze/shop", 1)
    assert retained(pipeline) == [("bronze/shop", 3)]
    assert retained(pipeline) == []
    assert bronze.files_since([NEW_ROWS], 1, bronze.version) == [bronze.live()[-1]]
    assert [one.rows for one in bronze.live()] == [2, 1]
    read_up_to(pipeline, "bronze/shop", bronze.version)
    assert retained(pipeline) == [("bronze/shop", 1)]
    assert read_ranges(bronze) == {TopicPartition("orders", 0): (OffsetRange(0, 2, 3), OffsetRange(5, 5, 1))}
    (removal,) = retaining.removals(pipeline)
    assert str(removal) == "bronze/shop: 4 rows in 2 files removed, the newest of 2024-02-20T00:00:00.000Z"
    assert (bronze.state().removed, bronze.newest("ingest-shop"), bronze.version) == (4, 1, 4)
    changes = DeltaTable(bronze.location.delta_uri).history(1)[0]
    assert changes["pykafka08"]["kind"] == "retention"


def test_a_record_without_a_timestamp_counts_by_its_ingest_date(pipeline: Pipeline, bronze: Table) -> None:
    dates = ("2024-02-29", "2024-03-01")  # thirty days before NOW the second has begun
    files = [record_file(bronze, NO_TIMESTAMP, number, day=day) for number, day in enumerate(dates)]
    commit(bronze, NEW_ROWS, *files, query="ingest-shop")
    read_up_to(pipeline, "bronze/shop", 1)
    assert retained(pipeline) == [("bronze/shop", 1)]
    assert bronze.live() == [files[1]]


def test_offsets_of_a_file_with_several_partitions_are_read(pipeline: Pipeline, bronze: Table) -> None:
    commit(bronze, NEW_ROWS, record_file(bronze, OLD, 7, 8, 3, partitions=(0, 0, 2)), query="ingest-shop")
    read_up_to(pipeline, "bronze/shop", 1)
    assert retained(pipeline) == [("bronze/shop", 3)]
    assert read_ranges(bronze) == {
        TopicPartition("orders", 0): (OffsetRange(7, 8, 2),),
        TopicPartition("orders", 2): (OffsetRange(3, 3, 1),),
    }


def test_a_round_of_a_run_that_follows_removes_old_rows(
    pipeline: Pipeline, bronze: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(bronze, NEW_ROWS, record_file(bronze, OLD, 0), query="ingest-shop")
    read_up_to(pipeline, "bronze/shop", 1)
    monkeypatch.setattr(running, "compact", lambda *_, **__: {})
    said: list[str] = []
    with leased(pipeline.root, ["decode-shop"]) as lease:
        rounds = running._Rounds(cast(SparkSession, None), pipeline, lease, said.append)
        rounds._last = float("-inf")
        rounds.go_on()
    assert said == ["retention of bronze/shop: 1 row in 1 file removed, the newest of 2024-02-20T00:00:00.000Z"]


def test_ranges_that_touch_are_one_and_the_smallest_gaps_are_closed() -> None:
    ranges = [OffsetRange(5, 9, 5), OffsetRange(0, 4, 5), OffsetRange(12, 12, 1), OffsetRange(40, 49, 10)]
    assert joined(ranges) == (OffsetRange(0, 9, 10), OffsetRange(12, 12, 1), OffsetRange(40, 49, 10))
    assert joined(ranges, most=2) == (OffsetRange(0, 12, 11), OffsetRange(40, 49, 10))
    assert joined(ranges, most=1) == (OffsetRange(0, 49, 21),)
    assert [one.is_whole for one in joined(ranges, most=2)] == [False, True]


def refused(pipeline: Pipeline) -> tuple[Table, Table]:
    """Silver with the old days, and rejects with an old record."""
    silver, rejects = made(pipeline.silver, id="long", day="date"), made(pipeline.rejects, _timestamp="timestamp")
    days = ("2024-02-28", "2024-02-29", "2024-03-01")
    for number, day in enumerate(days):
        commit(silver, NEW_ROWS, file(silver, str(number), {"id": [number]}, day), query="decode-shop", batch=number)
    at = pa.array([OLD], pa.timestamp("us", "UTC"))
    commit(rejects, NEW_ROWS, file(rejects, "r", {"_timestamp": at}), query="decode-shop", batch=2)
    for name, table in (("silver", silver), ("rejects", rejects)):
        read_up_to(pipeline, name, table.version)
    return silver, rejects


def test_silver_is_removed_by_whole_days(pipeline: Pipeline) -> None:
    silver, rejects = refused(pipeline)
    assert retained(pipeline) == [("rejects", 1), ("silver", 2)]
    assert [one.day for one in silver.live()] == ["2024-03-01"]
    assert silver.totals().retention == {"until": "2024-02-29"}
    assert rejects.live() == []


def test_refused_records_of_a_pending_batch_stay(pipeline: Pipeline) -> None:
    """Its replay looks for them in rejects."""
    silver, rejects = refused(pipeline)
    at = pa.array([OLD], pa.timestamp("us", "UTC"))
    commit(rejects, NEW_ROWS, file(rejects, "s", {"_timestamp": at}), query="decode-shop", batch=3)
    read_up_to(pipeline, "rejects", rejects.version)
    assert retained(pipeline) == [("silver", 2)]
    commit(silver, NEW_ROWS, query="decode-shop", batch=3)
    assert retained(pipeline) == [("rejects", 2)]


def test_nothing_is_removed_during_or_after_an_interrupted_backfill(pipeline: Pipeline) -> None:
    _, rejects = refused(pipeline)
    said: list[str] = []
    with leased(pipeline.root, [BACKFILL]):
        assert retained(pipeline, said) == []
    assert said[0].startswith(f"nothing is removed before the next run or round: folder: {pipeline.root} is in")
    commit(rejects, REPLACED, query=BEGUN)
    assert retained(pipeline, said) == []
    assert said[1].endswith("a backfill was interrupted and needs the records; repeat it")


class Killed(BaseException):
    """No handler of errors catches this."""


@pytest.mark.parametrize("name", ["write_ranges", "swap"])
@pytest.mark.parametrize("is_done", [False, True])
def test_killed_at_any_point_retention_is_repeated(
    pipeline: Pipeline, bronze: Table, name: str, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(bronze, NEW_ROWS, record_file(bronze, OLD, 0, 1), query="ingest-shop")
    read_up_to(pipeline, "bronze/shop", 1)
    original: Callable[..., object] = getattr(retaining, name)

    def struck(*arguments: object) -> None:
        if is_done:
            original(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(retaining, name, struck)
        with pytest.raises(Killed):
            retained(pipeline)
    retained(pipeline)
    assert (bronze.live(), bronze.state().removed) == ([], 2)
    assert read_ranges(bronze) == {TopicPartition("orders", 0): (OffsetRange(0, 1, 2),)}
    read_up_to(pipeline, "bronze/shop", bronze.version)
    compacting.delete_attempts(pipeline)
    assert read_ranges(bronze)[TopicPartition("orders", 0)] == (OffsetRange(0, 1, 2),)
    left = {one.path for one in bronze.location.files("data") if one.is_file}
    assert left == {bronze.totals().retention["ranges"]}


def test_a_stage_that_is_added_later_reads_no_removed_rows(pipeline: Pipeline, bronze: Table) -> None:
    commit(bronze, NEW_ROWS, record_file(bronze, OLD, 0), record_file(bronze, YOUNG, 1), query="ingest-shop")
    read_up_to(pipeline, "bronze/shop", 1)
    assert retained(pipeline) == [("bronze/shop", 1)]
    assert bronze.files_since([NEW_ROWS], -1, bronze.version) == bronze.live()
    assert len(bronze.live()) == 1


def test_removed_files_are_deleted_after_the_time_of_the_settings(pipeline: Pipeline, tmp_path: Path) -> None:
    config = tmp_path / "orders.toml"
    config.write_text(config.read_text().replace("[retention]", '[retention]\nfiles = "36 hours"'))
    pipeline = read(config)
    silver = made(pipeline.silver)
    first, both = file(silver, "first", {"id": [1]}), file(silver, "both", {"id": [1]})
    commit(silver, NEW_ROWS, first)
    assert silver.commit(Commit(2, COMPACTION, "c", 0, (both,), (first.path,)))
    read_up_to(pipeline, "silver", 2)
    compacting.delete_attempts(pipeline)
    configuration = DeltaTable(silver.location.delta_uri).metadata().configuration
    assert configuration["delta.logRetentionDuration"] == "interval 3 days"
    path = Path(silver.location.of(first.path))
    assert (path.exists(), silver.version) == (True, 3)
    silver.expire(3, with_attempts=True, age=-1)
    assert (path.exists(), silver.live()) == (False, [both])


@pytest.mark.parametrize("stored", ["file", "s3a"], indirect=True)
def test_ranges_are_kept_on_stores(stored: Place) -> None:
    table = made(Folder(stored.address("retained/table"), stored.storage))
    ranges = {TopicPartition("orders", 3): (OffsetRange(0, 9, 10),)}
    path = write_ranges(table, table.attempt(RETENTION, 1), ranges)
    assert table.commit(Commit(1, RETENTION, RETENTION, 1, retention={"ranges": path}))
    commit(table, NEW_ROWS)
    table.expire(table.version + 1, with_attempts=True)
    assert read_ranges(table) == ranges


def test_status_shows_what_was_removed(pipeline: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(pipeline)
    retained(pipeline, [])
    assert main(["pipeline", "status", str(tmp_path / "orders.toml")]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "retention of silver: 2 rows in 2 files removed, the newest of 2024-02-29",
        "retention of rejects: 1 row in 1 file removed, the newest of 2024-02-20T00:00:00.000Z",
    ]
