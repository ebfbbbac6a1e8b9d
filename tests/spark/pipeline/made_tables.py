"""Tables made without Spark, and their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.model import Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["commit", "fields", "file", "made"]

NO_BROKER = """
name = "orders"
folder = "out"

[sources.shop]
bootstrap_servers = "nowhere:1"
topics = ["orders"]
"""
"""The settings of a pipeline before ``[decode]``, for tests that do not read its source."""


def fields(**columns: str) -> str:
    """The schema of columns with types by Delta's names, in Spark's JSON."""
    each = [{"name": name, "type": kind, "nullable": False, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": each})


def made(folder: Path | Folder, **columns: str) -> Table:
    """The table in a folder; with a column ``day``, partitioned by it."""
    table = Table(folder)
    table.prepare(fields(**(columns or {"id": "long"})), [one for one in columns if one == "day"])
    return table


def file(table: Table, name: str, columns: Mapping[str, Any] | pa.Table, day: str = "") -> DataFile:
    """A Parquet file of the table."""
    values = {"day": day} if day else {}
    path = f"data/{name}/day={day}/one.parquet" if day else f"data/{name}/one.parquet"
    table.location.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
    with table.location.filesystem.open_output_stream(path) as out:
        pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(dict(columns)), out)
    return table.data_file(path, values)


def commit(
    table: Table, kind: str, *added: DataFile, query: str = "q", batch: int | None = None, **counts: int
) -> None:
    """The next version; by default with the next batch of the query."""
    batch = table.newest(query) + 1 if batch is None else batch
    assert table.commit(Commit(table.version + 1, kind, query, batch, added, (), counts))
