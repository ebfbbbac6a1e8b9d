"""Silver as a Delta table, read by Delta's own library: entry for entry what the table's log says."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pykafka08.spark.pipeline import delta
from pykafka08.spark.pipeline.table import ACCEPTED, REJECTED, Added, Entry, Table

DAYS = ("2024-03-01", "2024-03-02")
INTEGER, TEXT = pa.int64(), pa.string()
NAMES = {INTEGER: "long", TEXT: "string"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "silver")


def file(table: Table, name: str, day: str, ids: list[int], part: str = ACCEPTED, **more: pa.DataType) -> Added:
    """Parquet as Spark writes it: the columns are in the footer, the day is in the path alone."""
    path = table.folder / "data" / name / part / f"day={day}" / "one.parquet"
    path.parent.mkdir(parents=True)
    columns = {"id": INTEGER, **more}
    fields = [{"name": one, "type": NAMES[kind], "nullable": False, "metadata": {}} for one, kind in columns.items()]
    schema = pa.schema(
        list(columns.items()), metadata={delta.SPARK_SCHEMA: json.dumps({"type": "struct", "fields": fields}).encode()}
    )
    rows = [{"id": one, **dict.fromkeys(more, "x")} for one in ids]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return Added(path.relative_to(table.folder).as_posix(), part, day, len(ids), path.stat().st_size)


def commit(table: Table, kind: str, added: list[Added], removed: tuple[str, ...] = ()) -> None:
    version = table.version + 1
    assert table.commit(Entry(version, kind, f"{kind}-query", version, tuple(added), removed))


def ids(table: Table, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(table.folder, version=version).to_pyarrow_table()["id"].to_pylist())


def test_each_entry_is_a_commit_once(table: Table) -> None:
    one, two = file(table, "a", DAYS[0], [1, 2]), file(table, "b", DAYS[1], [3])
    commit(table, "batch", [file(table, "r", DAYS[0], [9], REJECTED)])
    delta.follow(table, ACCEPTED)
    assert not DeltaTable.is_deltatable(str(table.folder))  # there is no row yet, so no column
    commit(table, "batch", [one])
    commit(table, "batch", [two, file(table, "s", DAYS[0], [8], REJECTED)])
    for _ in range(2):  # a batch that is replayed
        delta.follow(table, ACCEPTED)
    found = DeltaTable(table.folder)
    assert (found.version(), found.transaction_version("batch-query")) == (1, 2)
    assert found.metadata().partition_columns == ["day"]
    assert (ids(table, 0), ids(table)) == ([1, 2], [1, 2, 3])
    assert found.to_pyarrow_table(filters=[("day", "=", date.fromisoformat(DAYS[1]))])["id"].to_pylist() == [3]


def test_what_a_crash_left_out_is_made_by_the_next_call(table: Table) -> None:
    one, two = file(table, "a", DAYS[0], [1]), file(table, "b", DAYS[0], [2])
    commit(table, "batch", [one])
    delta.follow(table, ACCEPTED)
    commit(table, "batch", [two])  # and the process ended here
    commit(table, "compaction", [file(table, "c", DAYS[0], [1, 2])], (one.path, two.path))
    commit(table, "backfill", [file(table, "d", DAYS[0], [2])], (table.live(ACCEPTED)[0].path,))
    delta.follow(table, ACCEPTED)
    assert DeltaTable(table.folder).version() == table.version
    assert [ids(table, version) for version in range(4)] == [[1], [1, 2], [1, 2], [2]]


def test_a_new_column_is_null_in_older_rows(table: Table) -> None:
    commit(table, "batch", [file(table, "a", DAYS[0], [1])])
    delta.follow(table, ACCEPTED)
    commit(table, "batch", [file(table, "b", DAYS[0], [2], kind=TEXT)])
    delta.follow(table, ACCEPTED)
    rows = DeltaTable(table.folder).to_pyarrow_table().select(["id", "kind"]).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "kind": None}, {"id": 2, "kind": "x"}]


def test_a_table_whose_rows_were_all_replaced_by_none(table: Table) -> None:
    one = file(table, "a", DAYS[0], [1])
    commit(table, "batch", [one])
    delta.follow(table, ACCEPTED)
    commit(table, "backfill", [], (one.path,))
    delta.follow(table, ACCEPTED)
    assert ids(table) == []
