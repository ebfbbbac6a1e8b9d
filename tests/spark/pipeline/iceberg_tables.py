"""Iceberg tables of tests: their settings, and their rows as read by pyiceberg, polars and DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table as IcebergTable

from pykafka08.spark.pipeline import addresses
from pykafka08.spark.pipeline.addresses import Storage, address_of, options_for_delta
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.iceberg.catalogs import catalog_of, identifier_of
from tests.spark.pipeline.other_readers import CONDITIONS, tables_of, texts

__all__ = ["check_readers", "iceberg", "root"]


def root(folder: Path, **catalog: Any) -> Folder:
    """The folder of a pipeline with Iceberg tables; by default the catalog is a SQLite file there."""
    given: Mapping[str, Any] = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "namespace": "shop", **catalog}
    storage = Storage(format="iceberg", catalog=addresses.Catalog(**given))
    return Folder(address_of(str(folder / "out"), Path()), storage)


def iceberg(folder: Folder) -> IcebergTable:
    """pyiceberg's table of a folder."""
    return catalog_of(folder.storage).load_table(identifier_of(folder))


def check_readers(pipeline: Pipeline, catalog: Catalog | None = None) -> None:
    """Check that polars, pyiceberg and DuckDB find equal rows in each table, also with conditions that skip files.

    ``catalog``: pyiceberg's catalog, if it is not that of the settings.
    DuckDB downloads its reader of Iceberg tables as an extension, so here it reads what pyiceberg's scan gives.
    """
    for name, folder in tables_of(pipeline).items():
        table = iceberg(folder) if catalog is None else catalog.load_table(identifier_of(folder))
        options = options_for_delta(folder.address, folder.storage)
        rows, scanned = _polars(table, options), table.scan().to_arrow()
        assert texts(rows) == texts(_of_files(table)), name
        columns = [one for one in rows.column_names if one != NULL_LISTS]
        expected = texts(rows.select(columns))
        assert expected, name
        assert texts(scanned.select(columns)) == texts(_duckdb(scanned).select(columns)) == expected, name
        for sql, expression in CONDITIONS[name.partition("-")[0]]:
            some = texts(_polars(table, options, expression).select(columns))
            assert some == texts(_duckdb(scanned, sql).select(columns)), (name, sql)
            assert 0 < len(some) < len(expected), (name, sql)


NULL_LISTS = "headers"
"""The column of bronze and rejects with lists of structs: pyiceberg's scan gives an empty list for a null."""


def _of_files(table: IcebergTable) -> pa.Table:
    """The rows of the live files, without field ids or name mapping."""
    tables = []
    for task in table.scan().plan_files():
        with table.io.new_input(task.file.file_path).open() as file:
            tables.append(pq.read_table(file))
    return pa.concat_tables(tables, promote_options="default")


def _polars(table: IcebergTable, options: Mapping[str, str], condition: pl.Expr | None = None) -> pa.Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # polars warns if another package is missing
        rows = pl.scan_iceberg(table, storage_options=dict(options))
        return (rows if condition is None else rows.filter(condition)).collect().to_arrow()


def _duckdb(rows: pa.Table, condition: str = "") -> pa.Table:
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.from_arrow(rows)
        return (found.filter(condition) if condition else found).to_arrow_table()
