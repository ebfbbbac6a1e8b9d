"""Wider types of columns: which are allowed, and one commit that gives all files the new types."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import widening
from pykafka08.spark.pipeline.settings import Pipeline, parse
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.column_types import is_widening
from pykafka08.spark.pipeline.tables.model import BACKFILL, NEW_ROWS, Commit
from pykafka08.spark.pipeline.tables.table import Table
from tests.spark.pipeline.made_tables import NO_BROKER, commit, fields, file, made
from tests.spark.pipeline.other_readers import rows_of_readers
from tests.stores.places import Place

pytestmark = pytest.mark.timeout(600)

CONFIG = (
    NO_BROKER
    + """
[decode]
format = "json"
schema = "SCHEMA"
event_time = "timestamp_seconds(id)"
"""
)
DAYS = ("2024-03-01", "2024-03-02")
NARROW = {
    "id": "integer",
    "tiny": "byte",
    "small": "short",
    "ratio": "float",
    "price": "decimal(7,2)",
    "kind": "string",
}
WIDE = "id BIGINT, tiny SMALLINT, small DOUBLE, ratio DOUBLE, price DECIMAL(12, 2), kind STRING"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("byte", "short", True),
        ("short", "integer", True),
        ("integer", "long", True),
        ("float", "double", True),
        ("integer", "double", True),
        ("decimal(7,2)", "decimal(12,2)", True),
        ("decimal(7,2)", "decimal(12,3)", False),
        ("decimal(7,2)", "decimal(6,2)", False),
        ("long", "double", False),
        ("long", "integer", False),
        ("integer", "float", False),
        ("integer", "integer", False),
        ("date", "timestamp", False),
        ("integer", "decimal(12,2)", False),
    ],
)
def test_a_wider_type_has_every_value_of_the_narrower_one(old: str, new: str, expected: bool) -> None:
    assert is_widening(old, new) is expected


def pipeline_of(folder: Path, schema: str = WIDE) -> Pipeline:
    return parse(CONFIG.replace("SCHEMA", schema), folder)


def narrow(number: int) -> pa.Table:
    """Rows in the old types, with the largest values of some."""
    return pa.table(
        {
            "id": pa.array([number, 2**31 - 1], pa.int32()),
            "tiny": pa.array([number, -128], pa.int8()),
            "small": pa.array([None, 2**15 - 1], pa.int16()),
            "ratio": pa.array([0.1, -1.5], pa.float32()),
            "price": pa.array([Decimal("99999.99"), None], pa.decimal128(7, 2)),
            "kind": ["a", None],
        }
    )


@pytest.fixture
def silver(tmp_path: Path) -> Table:
    """A table whose first file lacks most columns."""
    table = made(pipeline_of(tmp_path).silver, id="integer", day="date")
    commit(table, NEW_ROWS, file(table, "first", {"id": pa.array([7], pa.int32())}, DAYS[0]))
    table.prepare(fields(**NARROW, day="date"), ["day"])
    for number, day in enumerate((*DAYS, *DAYS)):
        commit(table, NEW_ROWS, file(table, f"{number}", narrow(number), day))
    return table


def test_every_reader_finds_equal_rows_before_and_after(spark: SparkSession, silver: Table, tmp_path: Path) -> None:
    before, offsets = silver.state(), silver.files_since([NEW_ROWS], 0, silver.version)
    old = rows_of_readers(silver.folder)
    said = widening.widen(spark, pipeline_of(tmp_path))
    assert said == (
        "silver: widened id from integer to long, tiny from byte to short, small from short to double, "
        "ratio from float to double, price from decimal(7,2) to decimal(12,2); 5 files, now 2"
    )
    new = rows_of_readers(silver.folder)
    assert all(one == old["deltalake"] for one in (*old.values(), *new.values()))
    assert rows_of_readers(silver.folder, before.version) == old  # the old files are there until they expire
    types = {one.name: str(one.type) for one in pa.schema(DeltaTable(silver.location.delta_uri).schema())}
    assert [types[name] for name in ("id", "tiny", "small", "ratio", "price")] == [
        "int64", "int16", "double", "double", "decimal128(12, 2)",
    ]  # fmt: skip
    state = silver.state()
    assert (state.rows, state.counts, state.newest["q"]) == (before.rows, before.counts, before.newest["q"])
    assert silver.files_since([NEW_ROWS], 0, silver.version) == offsets  # streams skip the commit
    assert {each.day for each in silver.live()} == set(DAYS)
    assert widening.widen(spark, pipeline_of(tmp_path)) == ""
    assert silver.version == state.version


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (
            "id SMALLINT",
            "column id is integer in the table, but short in the settings; the column was widened: restart",
        ),
        ("id BIGINT, kind INT", "column kind is string in the table, but integer in the settings; give the new column"),
    ],
)
def test_other_changes_of_types_are_refused(
    spark: SparkSession, silver: Table, tmp_path: Path, schema: str, words: str
) -> None:
    version = silver.version
    with pytest.raises(ConfigError, match=words):
        widening.widen(spark, pipeline_of(tmp_path, schema))
    assert silver.version == version


class Killed(BaseException):
    """No handler of errors catches this."""


@pytest.mark.parametrize(("owner", "name"), [(DataFrameWriter, "parquet"), (Table, "commit")])
def test_killed_at_any_point_the_table_is_as_before(
    spark: SparkSession, silver: Table, tmp_path: Path, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, old = silver.state(), rows_of_readers(silver.folder)

    def struck(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, struck)
        with pytest.raises(Killed):
            widening.widen(spark, pipeline_of(tmp_path))
    assert silver.state() == before
    widening.widen(spark, pipeline_of(tmp_path))
    assert rows_of_readers(silver.folder) == old
    silver.expire(silver.version + 1, with_attempts=True)
    left = {one.path for one in silver.location.files("data") if one.path.endswith(".parquet")}
    assert left == {one.path for one in silver.live()}


def test_commits_of_other_runs_meanwhile_are_kept(
    spark: SparkSession, silver: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run appends a file, another replaces one; after the widening, an append with the old type is refused."""
    original, others = Table.commit, [replaces, appends]

    def amid(table: Table, made: Commit, *arguments: Any, **named: Any) -> bool:
        if made.kind == "widening" and others:
            with monkeypatch.context() as patch:
                patch.setattr(Table, "commit", original)
                others.pop()(silver)
        return original(table, made, *arguments, **named)

    late = file(silver, "late", narrow(50), DAYS[0])
    monkeypatch.setattr(Table, "commit", amid)
    widening.widen(spark, pipeline_of(tmp_path))
    assert others == []
    rows = silver.read(silver.live()[0], ["id"])
    assert str(rows.schema.field("id").type) == "int64"
    ids = DeltaTable(silver.location.delta_uri).to_pyarrow_table()["id"].to_pylist()
    assert sorted(set(ids)) == [1, 2, 3, 40, 41, 2**31 - 1]  # the files 0 and first, with 0 and 7, were replaced
    with pytest.raises(
        ConfigError, match=r"column id is int64 in the table, but int32 .*; another run has widened the"
    ):
        silver.commit(Commit(silver.version + 1, NEW_ROWS, "other", 1, (late,)))
    with pytest.raises(ConfigError, match="the column was widened: restart this run"):
        silver.prepare(fields(**NARROW, day="date"), ["day"])


def appends(silver: Table) -> None:
    commit(silver, NEW_ROWS, file(silver, "40", narrow(40), DAYS[1]), query="other")


def replaces(silver: Table) -> None:
    old = tuple(one.path for one in silver.live() if "/first/" in one.path or "/0/" in one.path)
    new = file(silver, "41", narrow(41), DAYS[0])
    assert silver.commit(Commit(silver.version + 1, BACKFILL, BACKFILL, 0, (new,), old))


def test_the_schema_is_replaced_by_one_of_two_commits_on_s3(places: Callable[[str], Place]) -> None:
    store = places("s3a")
    table = made(Folder(store.address("widened"), store.storage), id="integer", day="date")
    commit(table, NEW_ROWS, file(table, "a", {"id": pa.array([1], pa.int32())}, DAYS[0]))
    wide = file(table, "b", {"id": pa.array([1], pa.int64())}, DAYS[0])
    version, removed = table.version + 1, (table.live()[0].path,)
    made_commit = Commit(version, "widening", "widening", version, (wide,), removed)
    assert table.commit(made_commit, schema=fields(id="long", day="date"))
    assert not table.commit(made_commit, schema=fields(id="long", day="date"))
    assert (table.live(), table.changes(fields(id="integer"))) == ([wide], {"id": ("long", "integer")})
