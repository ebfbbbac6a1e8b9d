"""Schema, expressions and rules of the settings, tried on no rows: what Spark would refuse is told before a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline import tables
from pykafka08.spark.pipeline.settings import Pipeline

__all__ = ["validate"]


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
