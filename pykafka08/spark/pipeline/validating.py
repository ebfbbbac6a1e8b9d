"""What would end a run, told before it: clusters that are written to, and schema, expressions and rules on no rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.errors import ConfigError
from pykafka08.spark.options import write_options
from pykafka08.spark.pipeline import tables
from pykafka08.spark.pipeline.settings import Aggregate, DeadLetters, Pipeline

__all__ = ["reach_sinks", "validate"]


def reach_sinks(pipeline: Pipeline) -> Iterator[str]:
    """Ask each cluster that is written to; a line for each.  Raises ConfigError, NoBrokersError."""
    for where, sink in _sinks(pipeline):
        try:
            asked = write_options({"kafka.bootstrap.servers": sink.bootstrap_servers, **sink.options})
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        yield f"{where}: topic {sink.topic}, {asyncio.run(_brokers(asked.client))} brokers"


def _sinks(pipeline: Pipeline) -> Iterator[tuple[str, DeadLetters | Aggregate]]:
    if pipeline.dead_letters is not None:
        yield "dead_letters", pipeline.dead_letters
    for name, aggregate in pipeline.aggregates.items():
        if aggregate.topic:
            yield f"aggregates.{name}", aggregate


async def _brokers(settings: ClientConfig) -> int:
    async with Client(settings) as client:
        return len(client.metadata.brokers)


def validate(spark: SparkSession, pipeline: Pipeline) -> None:
    """Raises ConfigError that names the section."""
    columns = _tried("decode", lambda: tables.silver_schema(spark, pipeline.decode, tables.ACCEPTED)).fieldNames()
    duplicates = pipeline.decode.duplicates
    for name in duplicates.key if duplicates is not None else ():
        if name not in columns:
            raise ConfigError(f"decode.duplicates.key: there is no column {name!r}")
    for name, aggregate in pipeline.aggregates.items():
        _tried(f"aggregates.{name}", partial(tables.gold_schema, spark, pipeline.decode, aggregate))


def _tried(where: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except PySparkException as error:
        raise ConfigError(f"{where}: {str(error).strip().splitlines()[0]}") from error
