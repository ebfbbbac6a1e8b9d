"""DataFrames written into tables, and read from them."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pykafka08.spark.pipeline.aggregating import BATCH, windowed
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, accepted, decoded, rejected
from pykafka08.spark.pipeline.settings import Aggregate, Decode
from pykafka08.spark.pipeline.tables.model import Commit, DataFile
from pykafka08.spark.pipeline.tables.table import Table

__all__ = [
    "BRONZE_PARTITIONS",
    "DAY",
    "analysed",
    "append_commit",
    "bronze_schema",
    "columns_in_files",
    "files_of",
    "gold_rows",
    "gold_schema",
    "partition_in_path",
    "partition_values",
    "read",
    "read_bronze",
    "rejects_schema",
    "silver_schema",
    "write",
    "write_bronze",
    "write_file",
]

DAY = "day"
"""The partition column of rows with an ``event_date``."""
BRONZE_PARTITIONS = ["topic", "ingest_date"]


_known: dict[Hashable, StructType] = {}
"""Analysed columns by the settings that decide them.  Each batch needs them, and Spark analyses them slowly."""


def analysed(spark: SparkSession, decode: Decode) -> StructType:
    """Let Spark analyse all expressions, and return the columns of silver.  Raises Spark's errors about expressions."""
    return accepted(_decoded_nothing(spark, decode)).schema


def silver_schema(spark: SparkSession, decode: Decode) -> StructType:
    """The columns of silver, without the partition."""
    decides = (decode.format, decode.schema, decode.changes, decode.key)
    if decides not in _known:
        _known[decides] = analysed(spark, decode)
    return _known[decides]


def rejects_schema(spark: SparkSession, decode: Decode) -> StructType:
    """The columns of the table of refused records; they do not depend on settings."""
    if "rejects" not in _known:
        _known["rejects"] = rejected(_decoded_nothing(spark, decode)).schema
    return _known["rejects"]


def bronze_schema(spark: SparkSession) -> StructType:
    """The columns of bronze."""
    if "bronze" not in _known:
        _known["bronze"] = _nothing(spark, BRONZE_SCHEMA).schema
    return _known["bronze"]


def _decoded_nothing(spark: SparkSession, decode: Decode) -> DataFrame:
    return decoded(_nothing(spark, bronze_schema(spark)), decode, "")


def _nothing(spark: SparkSession, schema: StructType | str) -> DataFrame:
    return spark.createDataFrame([], schema)


def gold_schema(spark: SparkSession, decode: Decode, aggregate: Aggregate) -> StructType:
    """The columns of gold."""
    empty = _nothing(spark, silver_schema(spark, decode))
    return gold_rows(windowed(empty, aggregate), 0).schema


def gold_rows(windows: DataFrame, batch: int) -> DataFrame:
    """Windows with the number of their batch."""
    return windows.withColumn(BATCH, F.lit(batch).cast("long"))


def read(spark: SparkSession, table: Table, files: Iterable[DataFile], schema: StructType) -> DataFrame:
    """The rows of a table's files; an empty DataFrame without files."""
    paths = table.paths(files)
    if not paths:
        return _nothing(spark, schema)
    return spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(*paths)


def write(table: Table, attempt: str, rows: DataFrame) -> list[DataFile]:
    """Write rows as files of an attempt, one for each day.  Readers see them once a commit names them.

    Creates the table, or adds the columns that it lacks.

    Raises:
        ConfigError: a column has another type in the table.
    """
    if "event_date" in rows.columns:
        return _write(table, attempt, rows.withColumn(DAY, F.col("event_date")).repartition(DAY), [DAY])
    return _write(table, attempt, rows.coalesce(1), [])


def write_file(table: Table, attempt: str, rows: DataFrame) -> list[DataFile]:
    """Write rows as one file of an attempt.  Unlike :func:`write`, this adds no columns to the table."""
    rows.coalesce(1).write.parquet(table.location.of(attempt))
    return files_of(table, attempt)


def write_bronze(table: Table, attempt: str, records: DataFrame) -> list[DataFile]:
    """Write records of Kafka as files of an attempt, one for each task, topic and ingest date."""
    return _write(table, attempt, records, BRONZE_PARTITIONS)


def read_bronze(spark: SparkSession, table: Table, files: Iterable[DataFile]) -> DataFrame:
    """The bronze rows of files.  Partition columns that the files lack are read from the names of the folders."""
    schema, chosen = bronze_schema(spark), list(files)
    if not chosen or table.has_partitions_in_files:
        return read(spark, table, chosen, schema)
    of_files = StructType([one for one in schema if one.name not in BRONZE_PARTITIONS])
    rows = read(spark, table, chosen, of_files)
    for name in BRONZE_PARTITIONS:
        value = F.regexp_extract("_metadata.file_path", partition_in_path(name), 1)
        rows = rows.withColumn(name, value.cast(schema[name].dataType))
    return rows.select(schema.names)


def partition_in_path(name: str) -> str:
    """The pattern of a partition's value in a file's path; the table's own folder may have such a name, too."""
    return f".*/{name}=([^/]+)/"


def _write(table: Table, attempt: str, rows: DataFrame, partition_by: list[str]) -> list[DataFile]:
    table.prepare(rows.schema.json(), partition_by)
    folders = partition_by
    # Spark removes the columns that name the folders from the files, so copies of the columns name the folders.
    if table.has_partitions_in_files:
        folders = [_copy_of(name, rows.columns) for name in partition_by]
        for name, copy in zip(partition_by, folders, strict=True):
            rows = rows.withColumn(copy, F.col(name))
    rows.write.partitionBy(folders).parquet(table.location.of(attempt))
    return files_of(table, attempt, columns=partition_by)


def _copy_of(name: str, columns: Collection[str]) -> str:
    copy = f"{name}_"
    return _copy_of(copy, columns) if copy in columns else copy


def files_of(
    table: Table, folder: str, values: Mapping[str, str] | None = None, *, columns: Sequence[str] = ()
) -> list[DataFile]:
    """The files below a folder that have rows.

    ``values`` are the partition values if the folder is of one partition; otherwise the names of folders have those of
    ``columns``.
    """
    found = []
    for one in table.location.files(folder):
        if one.is_file and one.base_name.endswith(".parquet"):
            below = one.path.removeprefix(folder).split("/")[1:-1]
            if values is None:
                of_file = dict(zip(columns, partition_values(below).values(), strict=True))
            else:
                of_file = dict(values)
            added = table.data_file(one.path, of_file)
            if added.rows:
                found.append(added)
    return found


def columns_in_files(table: Table) -> StructType:
    """The table's columns, without the partition columns if the files lack them."""
    schema, partitioned_by = table.columns()
    every = StructType.fromJson(json.loads(schema))
    missing = () if table.has_partitions_in_files else partitioned_by
    return StructType([one for one in every if one.name not in missing])


def partition_values(folders: Sequence[str]) -> dict[str, str]:
    """The partition values in names of folders, which Spark writes as ``column=value``."""
    pairs = (one.partition("=") for one in folders)
    return {name: unquote(value) for name, _, value in pairs}


def append_commit(table: Table, commit: Commit, *, is_continued: bool = False) -> None:
    """Commit after the newest version, again and again if others commit first; ``commit.version`` is ignored."""
    while not table.commit(replace(commit, version=table.version + 1), is_continued=is_continued):
        pass
