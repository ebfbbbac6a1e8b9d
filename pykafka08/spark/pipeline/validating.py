"""Checks before a run: clusters of sinks, and schema, expressions and rules, tried without rows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.errors import ConfigError, NoBrokersError
from pykafka08.spark.options import write_options
from pykafka08.spark.pipeline import changes
from pykafka08.spark.pipeline.aggregating import windowed
from pykafka08.spark.pipeline.decoding import BRONZE_SCHEMA, COORDINATES, columns_of, decoded
from pykafka08.spark.pipeline.definitions import check_definitions
from pykafka08.spark.pipeline.gold_sql import check_as_stream, empty_stream, resolved
from pykafka08.spark.pipeline.judging import referenced_keys
from pykafka08.spark.pipeline.refusals import REFUSALS, refusal_at
from pykafka08.spark.pipeline.registry.client import TYPES, RegistryError, SchemaRegistry
from pykafka08.spark.pipeline.registry.decoding import check_packages
from pykafka08.spark.pipeline.session import cause_of
from pykafka08.spark.pipeline.settings import Aggregate, DeadLetters, Decode, Pipeline, Reference
from pykafka08.spark.pipeline.starting import check_options, start_options
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.rows import (
    BRONZE_PARTITIONS,
    analysed,
    bronze_schema,
    gold_schema,
    rejects_schema,
    silver_schema,
)
from pykafka08.spark.pipeline.tables.table_log import EXTRA
from pykafka08.spark.pipeline.widening import check_types

__all__ = ["check_offline", "check_starts", "reach_catalog", "reach_registry", "reach_sinks", "validate"]


def check_offline(pipeline: Pipeline) -> None:
    """Check options of sources and sinks, files and folders, without connecting to clusters and without writing.

    Raises:
        ConfigError: one of them means nothing, or is not there, or is none that can be written to; its key is named.
    """
    for source in pipeline.sources.values():
        check_options(source)
    for where, sink in pipeline.sinks.items():
        _sink_options(where, sink)
    _check_folder(pipeline.root)
    decode = pipeline.decode
    if decode.registry is not None:
        check_packages(decode.format)
        ca = decode.registry.ssl_ca_location
        if ca and not os.access(ca, os.R_OK):
            raise ConfigError(f"decode.registry.ssl_ca_location: {ca} cannot be read")
    schema = decode.avro_schema
    if schema and not os.access(schema, os.R_OK):
        raise ConfigError(f"decode.avro_schema: {schema} cannot be read")


def check_starts(pipeline: Pipeline, stages: Collection[str]) -> None:
    """Look up the start offsets of the stages that read Kafka, before Spark starts; raises their errors."""
    for name, source in pipeline.sources.items():
        if f"ingest-{name}" in stages:
            start_options(pipeline, source)


def reach_sinks(pipeline: Pipeline) -> Iterator[str]:
    """Connect to the cluster of each sink; a line for each.  Errors name the sink or its key."""
    for where, sink in pipeline.sinks.items():
        try:
            count = asyncio.run(_brokers(_sink_options(where, sink)))
        except NoBrokersError as error:
            raise NoBrokersError(f"{where}.bootstrap_servers: {error.message}", error.causes) from error
        except REFUSALS as error:
            raise refusal_at(where, error) from error
        yield f"{where}: topic {sink.topic}, {count} brokers"


def reach_registry(pipeline: Pipeline) -> Iterator[str]:
    """Ask the schema registry of the settings for its formats; a line.

    Raises:
        ConfigError: the registry does not answer, or lacks the format.
    """
    decode = pipeline.decode
    if decode.registry is None:
        return
    try:
        types = SchemaRegistry(decode.registry).types()
    except RegistryError as error:
        raise ConfigError(str(error)) from None
    if TYPES[decode.format] not in types:
        raise ConfigError(
            f"decode.registry: {decode.registry.url} has schemas of {', '.join(types)}, not {decode.format}"
        )
    yield f"decode.registry: {decode.registry.url}, schemas of {', '.join(types)}"


def reach_catalog(pipeline: Pipeline) -> Iterator[str]:
    """Ask the catalog of Iceberg tables for the namespace; one line about it, none with Delta tables.

    Raises:
        ConfigError: the catalog does not answer, or a package of the extra ``iceberg`` is missing.
    """
    if pipeline.storage.catalog is None:
        return
    try:
        from pykafka08.spark.pipeline.tables.iceberg.catalogs import check_catalog
    except ImportError as error:
        raise ConfigError(f"storage.format: {error}; {EXTRA}") from error
    yield check_catalog(pipeline.storage)


def _sink_options(where: str, sink: DeadLetters | Aggregate) -> ClientConfig:
    try:
        return write_options({"kafka.bootstrap.servers": sink.bootstrap_servers, **sink.options}).client
    except ConfigError as error:
        raise ConfigError(f"{where}.options: {error}") from error


def _check_folder(root: Folder) -> None:
    if not root.is_local:
        root.names()  # ConfigError if the store cannot be reached
        return
    there = Path(root)
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise ConfigError(f"folder: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"folder: {there} cannot be written to")


async def _brokers(settings: ClientConfig) -> int:
    async with Client(settings) as client:
        return len(client.metadata.brokers)


def validate(spark: SparkSession, pipeline: Pipeline) -> Pipeline:
    """Check schema, expressions, rules and queries without rows, and options of decoding with one row.

    The types of columns and the definitions of aggregates are compared with those in the folder.  Returns the pipeline
    with the columns of its queries, as :func:`gold_sql.resolved` does.

    Raises:
        ConfigError: one of them is wrong; the text names its key.
    """
    decode = pipeline.decode
    columns = _decoded_columns(spark, decode)
    for name in decode.duplicates.key if decode.duplicates is not None else ():
        if name not in columns:
            raise ConfigError(f"decode.duplicates.key: there is no column {name!r}")
    for where, keys in (("uniqueness", decode.uniqueness), ("references", decode.references)):
        for column in (column for each in keys for column in each.key):
            if column not in columns:
                raise ConfigError(f"decode.{where}.key: there is no column {column!r}")
    for reference in decode.references:
        _tried(f"decode.references.to: {reference.to}", partial(_analyse_keys, spark, pipeline, reference))
    pipeline = resolved(spark, pipeline)
    for name, aggregate in pipeline.aggregates.items():
        if aggregate.sql:
            continue
        for column in aggregate.group_by:
            if column not in columns:
                raise ConfigError(f"aggregates.{name}.group_by: there is no column {column!r}")
        _check_measures(spark, decode, name, aggregate)
    _check_clustering(spark, pipeline)
    check_types(spark, pipeline)
    check_definitions(spark, pipeline)
    return pipeline


def _check_measures(spark: SparkSession, decode: Decode, name: str, aggregate: Aggregate) -> None:
    """Plan all measures at once.  If Spark refuses them, plan each alone, so that the error names the measure."""
    try:
        _plan_as_stream(spark, decode, aggregate)
    except (PySparkException, Py4JJavaError) as error:
        for measure, expression in aggregate.measures.items():
            alone = replace(aggregate, measures={measure: expression})
            _tried(f"aggregates.{name}.measures.{measure}", partial(_plan_as_stream, spark, decode, alone))
        raise ConfigError(f"aggregates.{name}: {cause_of(error)}") from error


def _analyse_keys(spark: SparkSession, pipeline: Pipeline, reference: Reference) -> None:
    _ = referenced_keys(
        spark, pipeline, reference
    ).schema  # Spark Connect analyses a query only when its result is used


def _check_clustering(spark: SparkSession, pipeline: Pipeline) -> None:
    for table, columns in pipeline.compaction.cluster_by.items():
        kind, _, name = table.partition("/")
        where = f"compaction.cluster_by.{table}"
        there = _tried(where, partial(_columns_of_table, spark, pipeline, kind, name))
        for column in columns:
            if column not in there:
                raise ConfigError(f"{where}: there is no column {column!r} in the files; there are {', '.join(there)}")


def _columns_of_table(spark: SparkSession, pipeline: Pipeline, kind: str, name: str) -> list[str]:
    """The columns in the files of a table; the files do not have the partition columns."""
    if kind == "bronze":
        return [one for one in bronze_schema(spark).names if one not in BRONZE_PARTITIONS]
    if kind == "gold":
        return gold_schema(spark, pipeline.decode, pipeline.aggregates[name]).names
    return (silver_schema if kind == "silver" else rejects_schema)(spark, pipeline.decode).names


def _plan_as_stream(spark: SparkSession, decode: Decode, aggregate: Aggregate) -> None:
    check_as_stream(windowed(empty_stream(spark, decode), aggregate))


def _decoded_columns(spark: SparkSession, decode: Decode) -> list[str]:
    """The columns of accepted rows.  Each setting is tried alone, so that an error belongs to it."""
    bare = replace(decode, rules={}, event_time="current_timestamp()")
    _tried("decode.schema", partial(analysed, spark, bare))
    for name in columns_of(decode):
        if name.lower() in OWN_COLUMNS:
            raise ConfigError(f"decode.schema: {name!r} is a column that the pipeline makes")
    if decode.options:
        row = spark.createDataFrame([(b"x", b"x", 0, 0, None, 0, None, "x", None)], BRONZE_SCHEMA)
        _tried("decode.options", decoded(row, bare, "").collect)
    for name, pattern in decode.options.items():
        if name.lower() in PATTERNS:
            time = spark.range(1).select(F.date_format(F.timestamp_seconds("id"), pattern))
            _tried(f"decode.options.{name}", time.collect)
    timed = replace(decode, rules={})
    schema = _tried("decode.event_time", partial(analysed, spark, timed))
    for name, rule in decode.rules.items():
        alone = replace(decode, rules={name: rule})
        _tried(f"decode.rules.{name!r}", partial(analysed, spark, alone))
    return list(schema.fieldNames())


PATTERNS = {"dateformat", "timestampformat", "timestampntzformat"}
"""Options with a pattern, which Spark checks only with rows: a wrong one makes every field null."""
OWN_COLUMNS = {
    *COORDINATES,
    "event_time",
    "event_date",
    "day",
    "_raw",
    "_broken",
    "_fields",
    "_text",
    "_first",
    "_why",
    "_key",
    *changes.COLUMNS,
}
"""Columns that the pipeline adds to silver, or uses while it decodes."""


def _tried(where: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"{where}: {cause_of(error)}") from error
