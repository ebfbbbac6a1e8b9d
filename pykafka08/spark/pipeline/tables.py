"""Rows of DataFrames into tables, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.aggregating import BATCH, windowed
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, accepted, decoded, rejected
from pykafka08.spark.pipeline.settings import Aggregate, Decode
from pykafka08.spark.pipeline.table import ACCEPTED, REJECTED, Added, Entry, Table

__all__ = ["ACCEPTED", "REJECTED", "ROWS", "commit", "gold_schema", "read", "silver_schema", "write"]

ROWS = "rows"
"""The one part of gold."""


def silver_schema(spark: SparkSession, decode: Decode, part: str) -> StructType:
    """The columns of a part of silver."""
    empty = decoded(spark.createDataFrame([], BRONZE_SCHEMA), decode, "")
    return (accepted(empty) if part == ACCEPTED else rejected(empty)).schema


def gold_schema(spark: SparkSession, decode: Decode, aggregate: Aggregate) -> StructType:
    """The columns of gold."""
    empty = spark.createDataFrame([], silver_schema(spark, decode, ACCEPTED))
    return gold_rows(windowed(empty, aggregate), 0).schema


def gold_rows(windows: DataFrame, batch: int) -> DataFrame:
    """Windows with the batch they are of."""
    return windows.withColumn(BATCH, F.lit(batch).cast("long"))


def read(spark: SparkSession, table: Table, files: Iterable[Added], schema: StructType) -> DataFrame:
    """The rows of files of a table; none: an empty DataFrame."""
    paths = table.paths(files)
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(*paths)


def write(table: Table, attempt: str, parts: Mapping[str, DataFrame]) -> list[Added]:
    """Rows as files of an attempt, one for each day and part; nobody sees them before an entry names them."""
    for part, rows in parts.items():
        folder = str(table.folder / attempt / part)
        if "event_date" in rows.columns:
            rows = rows.withColumn("day", F.col("event_date")).repartition("day")
            rows.write.partitionBy("day").parquet(folder)
        else:
            rows.coalesce(1).write.parquet(folder)
    return [one for part in parts for one in _files(table, attempt, part)]


def _files(table: Table, attempt: str, part: str) -> list[Added]:
    files = []
    for path in sorted((table.folder / attempt / part).rglob("*.parquet")):
        rows = pq.read_metadata(path).num_rows
        if rows:
            day = path.parent.name.removeprefix("day=") if path.parent.name.startswith("day=") else ""
            files.append(Added(_relative(path, table), part, day, rows, path.stat().st_size))
    return files


def _relative(path: Path, table: Table) -> str:
    return path.relative_to(table.folder).as_posix()


def commit(table: Table, kind: str, query: str, batch: int, added: Iterable[Added], **counts: int) -> None:
    """An entry behind whatever others have made meanwhile."""
    files = tuple(added)
    while not table.commit(Entry(table.version + 1, kind, query, batch, files, (), counts)):
        pass
