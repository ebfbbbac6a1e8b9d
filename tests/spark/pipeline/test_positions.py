"""Batches of a table's stream: within their limits, and each file in one batch, whatever others commit meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from pykafka08.spark.pipeline.stores import local_folder
from pykafka08.spark.pipeline.tables.model import Commit, DataFile
from pykafka08.spark.pipeline.tables.position import (
    Limits,
    Position,
    end_of_batch,
    files_between,
    files_since,
    files_until,
)
from pykafka08.spark.pipeline.tables.stream import Files, TableStreamReader
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline.made_tables import commit, fields, file, made

NEW = ("batch",)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return made(tmp_path / "table")


def batch(table: Table, number: int, files: int = 1) -> list[DataFile]:
    """A commit with files of ten rows."""
    added = [file(table, f"{number}-{one}", {"id": list(range(10))}) for one in range(files)]
    commit(table, "batch", *added, batch=number)
    return added


def compacted(table: Table, name: str) -> DataFile:
    """Commit a compaction of all files into one."""
    live = table.live()
    joined = file(table, name, {"id": list(range(10 * len(live)))})
    removed = tuple(one.path for one in live)
    assert table.commit(Commit(table.version + 1, "compaction", "c", table.version + 1, (joined,), removed))
    return joined


def batches(table: Table, limits: Limits, start: Position | None = None) -> list[list[DataFile]]:
    """The files of each batch of a query with Trigger.AvailableNow."""
    found, position, last = [], start or Position(), table.version
    while position != Position(last):
        end = end_of_batch(table, NEW, position, last, limits)
        end = Position.of(json.loads(json.dumps(end.document())))
        found.append(files_between(table, NEW, position, end))
        position = end
    return found


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (Limits(), [7]),
        (Limits(rows=20), [2, 2, 2, 1]),
        (Limits(rows=1), [1] * 7),  # a batch has at least one file
        (Limits(files=3), [3, 3, 1]),
        (Limits(rows=1000, files=5), [5, 2]),
        (Limits(rows=70), [7]),
    ],
)
def test_each_file_is_in_one_batch_within_its_limits(table: Table, limits: Limits, sizes: list[int]) -> None:
    every = [one for number, count in enumerate((1, 4, 2)) for one in batch(table, number, count)]
    found = batches(table, limits)
    assert [len(one) for one in found] == sizes
    assert [one for each in found for one in each] == every


def test_bytes_are_a_limit(table: Table) -> None:
    every = batch(table, 0, 3)
    found = batches(table, Limits(bytes=every[0].bytes + every[1].bytes))
    assert [len(one) for one in found] == [2, 1]


def test_compactions_and_new_commits_between_two_batches_change_nothing(table: Table) -> None:
    every = [*batch(table, 0, 3), *batch(table, 1, 2)]
    limits = Limits(files=2)
    position, found = Position(), []
    for number in range(2, 5):
        end = end_of_batch(table, NEW, position, table.version, limits)
        found += files_between(table, NEW, position, end)
        compacted(table, f"c{number}")
        assert table.expire(position.version + 1, with_attempts=False) == 0
        every += batch(table, number, 2)
        assert files_until(table, NEW, end)[-1] == found[-1]
        position = end
    found += [one for each in batches(table, limits, position) for one in each]
    assert found == every


def test_who_begins_after_commits_went_reads_all_that_the_table_held_then(table: Table) -> None:
    batch(table, 0, 3)
    compacted(table, "c")
    live = [*table.live(), *batch(table, 1, 2)]
    DeltaTable(table.location.delta_uri).create_checkpoint()
    for version in range(3):
        Path(table.location.uri, "_delta_log", f"{version:020d}.json").unlink()
    table = Table(table.location.uri)
    end = end_of_batch(table, NEW, Position(), table.version, Limits(files=2))
    assert end == Position(-1, 3, 2)
    late = batch(table, 2)
    found = [files_between(table, NEW, Position(), end), *batches(table, Limits(files=2), end)]
    assert [one for each in found for one in each] == [*live, *late]


def test_the_reader_of_a_stream_keeps_to_what_was_there(table: Table) -> None:
    every = [one.path for number in range(3) for one in batch(table, number, 2)]
    schema = StructType([StructField("id", LongType())])
    reader = TableStreamReader(local_folder(table.location.uri), NEW, False, schema, (0, 0, 4))
    reader.prepareForTriggerAvailableNow()
    batch(table, 3)
    position, found = reader.initialOffset(), []
    while (end := reader.latestOffset(position)) != position:
        parts = reader.partitions(position, end)
        rows = sum(one.num_rows for part in parts for one in reader.read(part))
        found.append(([one.path for part in parts for one in part.files], rows))  # type: ignore[attr-defined]
        position = end
    assert found == [(every[:4], 40), (every[4:], 20)]


def test_the_reader_of_a_stream_limits_the_bytes_of_its_record_batches(table: Table) -> None:
    random = Random(7)
    values = {"once": b"v" * (4 << 20), "each": b""}
    sizes = {}
    for name, value in values.items():
        written = [value or random.randbytes(4 << 20) for _ in range(12)]
        added = file(table, name, {"value": written})
        schema = StructType([StructField("value", BinaryType())])
        reader = TableStreamReader(local_folder(table.location.uri), NEW, False, schema)
        rows = [one for batch in reader.read(Files((added,))) for one in batch["value"].to_pylist()]
        assert rows == written
        sizes[name] = max(batch.nbytes for batch in reader.read(Files((added,))))
    assert all(size <= 17 << 20 for size in sizes.values()), sizes


def test_a_large_value_that_repeats_behind_small_ones_makes_no_large_record_batch(table: Table) -> None:
    """The file has the value once, so neither its footer nor its first rows tell the size of the rows."""
    written = [*[b"small"] * 64, *[b"x" * 900_000] * 400, *[b"last"] * 100_000]
    added = file(table, "repeated", {"value": written})
    assert added.bytes < 1 << 20
    reader = TableStreamReader(
        local_folder(table.location.uri), NEW, False, StructType([StructField("value", BinaryType())])
    )
    rows = []
    for batch in reader.read(Files((added,))):
        assert batch.nbytes <= 16 << 20
        assert batch.num_rows <= 32_768
        assert batch.get_total_buffer_size() <= 256 << 20  # also of the rows that the batch is a slice of
        rows.append((batch.num_rows, batch["value"][0].as_py()))
    assert sum(number for number, _ in rows) == len(written)
    assert len(rows) < 60  # small rows are joined into large batches
    assert rows[-1][1] == b"last"


BOTH = ("batch", "backfill")


def restated(table: Table, number: int = 0) -> DataFile:
    """Commit a restatement whose only column is the text ``id``."""
    added = file(table, f"restated-{number}", {"id": ["a", "b"]})
    removed = tuple(one.path for one in table.live())
    done = Commit(table.version + 1, "backfill", "aggregate-hourly", 0, (added,), removed)
    assert table.commit(done, schema=fields(id="string"))
    return added


def test_a_stream_skips_the_files_that_a_restatement_has_replaced(table: Table) -> None:
    """Also if a batch of them was planned before, and for a stream that begins later."""
    limits = Limits(files=1)
    batch(table, 0)
    batch(table, 1, 3)
    read = Position(1)
    amid = end_of_batch(table, BOTH, read, table.version, limits)
    assert amid == Position(1, 2, 1)
    added = restated(table)
    later = file(table, "later", {"id": ["c"]})
    commit(table, "batch", later, query="aggregate-hourly", batch=1)
    schema = StructType([StructField("id", StringType())])
    for start in (Position(), read, amid):
        reader = TableStreamReader(local_folder(table.location.uri), BOTH, True, schema, (0, 0, 1))
        reader.prepareForTriggerAvailableNow()
        position, found = start.document(), []
        while (end := reader.latestOffset(position)) != position:
            for part in reader.partitions(position, end):
                found += [value for rows in reader.read(part) for value in rows["id"].to_pylist()]
            position = end
        assert (position, found) == ({"version": 4}, ["a", "b", "c"])
    assert files_between(table, BOTH, read, amid) == []
    assert files_since(table, BOTH, -1, table.version) == [added, later]
    assert files_since(table, BOTH, 3, table.version) == [later]
    assert files_since(table, NEW, 1, 2) == table.files_since(NEW, 1, 2)  # streams without backfills skip nothing


def test_a_stream_that_begins_after_a_restatement_and_a_clean_up_reads_the_restated_files(table: Table) -> None:
    batch(table, 0, 3)
    added = restated(table)
    DeltaTable(table.location.delta_uri).create_checkpoint()
    Path(table.location.uri, "_delta_log", f"{0:020d}.json").unlink()
    table = Table(table.location.uri)
    assert files_since(table, BOTH, -1, table.version) == [added]
