"""Read a table's rows with polars, DuckDB, pyarrow and Delta Lake's connector for Spark, without the pipeline's code.

DuckDB downloads its reader of Delta tables as an extension, so here it reads the Arrow data set of deltalake.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from pykafka08.spark.pipeline.addresses import options_for_delta, options_for_hadoop
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stores import Folder
from tests.stores.delta_spark import read_by_spark

__all__ = ["CONDITIONS", "check_with_spark", "check_without_spark", "rows_of_readers", "tables_of", "texts"]


def tables_of(pipeline: Pipeline) -> dict[str, Folder]:
    """Every table of a pipeline, by a name that a file can have."""
    found = {f"bronze-{name}": pipeline.bronze(name) for name in pipeline.sources}
    found |= {"silver": pipeline.silver, "rejects": pipeline.rejects}
    return found | {f"gold-{name}": pipeline.gold(name) for name in pipeline.aggregates}


def rows_of_readers(folder: Folder, version: int | None = None) -> dict[str, list[str]]:
    """Reader → rows of a table as sorted texts, in which numbers of different types are equal."""
    table = DeltaTable(folder.address.delta, version=version)
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        read = {
            "deltalake": table.to_pyarrow_table(),
            "polars": pl.scan_delta(folder.address.delta, version=version).collect().to_arrow(),
            "DuckDB": connection.from_arrow(table.to_pyarrow_dataset()).to_arrow_table(),
        }
    return {name: texts(rows, _number) for name, rows in read.items()}


def check_without_spark(pipeline: Pipeline) -> None:
    """Check that the readers find equal rows in each table, also with conditions that let them skip files."""
    for name, folder in tables_of(pipeline).items():
        expected = _pyarrow(folder)
        assert expected.num_rows > 0, name
        assert texts(_polars(folder)) == texts(_duckdb(folder)) == texts(expected), name
        for sql, expression in CONDITIONS[name.partition("-")[0]]:
            some = texts(_polars(folder, expression))
            assert some == texts(_duckdb(folder, sql)), (name, sql)
            assert 0 < len(some) < expected.num_rows, (name, sql)


def check_with_spark(pipeline: Pipeline, folder: Path, others: Mapping[str, Folder]) -> None:
    """Check that a Spark job reads equal rows from all tables and ``others``, and from gold also as a stream."""
    tables = {**tables_of(pipeline), **others}
    streamed = {f"stream-of-{name}": one for name, one in tables.items() if name.startswith("gold")}
    hadoop: dict[str, str] = {}
    for one in tables.values():
        hadoop |= options_for_hadoop(one.address, one.storage)
    read = read_by_spark(_addresses(tables), _addresses(streamed), hadoop, folder)
    assert read.keys() == tables.keys() | streamed.keys()
    for name, one in {**tables, **streamed}.items():
        assert texts(read[name]) == texts(_pyarrow(one)), name


AT = datetime(2024, 3, 1, 6, 30, tzinfo=timezone.utc)
CONDITIONS = {
    "bronze": [
        ("topic = 'orders' AND \"offset\" < 7", (pl.col("topic") == "orders") & (pl.col("offset") < 7)),
        (
            "ingest_date > DATE '2024-01-01' AND \"partition\" = 1",
            (pl.col("ingest_date") > date(2024, 1, 1)) & (pl.col("partition") == 1),
        ),
    ],
    "silver": [
        ("day = DATE '2024-03-02'", pl.col("day") == date(2024, 3, 2)),
        ("\"at\" < TIMESTAMPTZ '2024-03-01 06:30:00+00'", pl.col("at") < AT),
        ("kind = 'a' AND amount > 4", (pl.col("kind") == "a") & (pl.col("amount") > 4)),
    ],
    "rejects": [("reason LIKE 'rule:%'", pl.col("reason").str.starts_with("rule:"))],
    "gold": [
        ("window_start < TIMESTAMPTZ '2024-03-01 06:30:00+00'", pl.col("window_start") < AT),
        ("kind = 'b' AND amount > 0", (pl.col("kind") == "b") & (pl.col("amount") > 0)),
    ],
}
"""Conditions in SQL and for polars, by the first part of a table's name."""


def _pyarrow(folder: Folder) -> pa.Table:
    return _delta(folder).to_pyarrow_table()


def _polars(folder: Folder, condition: pl.Expr | None = None) -> pa.Table:
    if folder.address.scheme == "hdfs":  # polars' own reader does not support HDFS
        rows = pl.scan_pyarrow_dataset(_delta(folder).to_pyarrow_dataset())
    else:
        options = options_for_delta(folder.address, folder.storage)
        rows = pl.scan_delta(folder.address.delta, storage_options=options)
    return (rows if condition is None else rows.filter(condition)).collect().to_arrow()


def _duckdb(folder: Folder, condition: str = "") -> pa.Table:
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.from_arrow(_delta(folder).to_pyarrow_dataset())
        return (rows.filter(condition) if condition else rows).to_arrow_table()


def _delta(folder: Folder) -> DeltaTable:
    return DeltaTable(folder.address.delta, storage_options=options_for_delta(folder.address, folder.storage))


def _addresses(tables: Mapping[str, Folder]) -> dict[str, str]:
    return {name: one.address.spark for name, one in tables.items()}


def texts(rows: pa.Table, converted: Callable[[Any], Any] = lambda value: value) -> list[str]:
    """The rows as sorted JSON texts."""
    plain = ({name: converted(value) for name, value in row.items()} for row in rows.to_pylist())
    return sorted(json.dumps(row, sort_keys=True, default=_text) for row in plain)


def _number(value: Any) -> Any:
    """5 and 5.0 as one text."""
    return float(value) if isinstance(value, int) else value


def _text(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat()
    return value.isoformat() if isinstance(value, date) else bytes(value).hex()
