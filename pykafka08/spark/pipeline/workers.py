"""Check of a master's workers before a run: their Python must import this package and its dependencies."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from threading import Event, Timer

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from pykafka08.errors import ConfigError
from pykafka08.spark.pipeline.connect import without_parameters
from pykafka08.spark.pipeline.session import cause_of

__all__ = ["try_server", "try_workers"]

NO_EXECUTOR_S = 120.0
"""The longest wait for an executor of the master."""
GROUP = "pykafka08: trying a worker"
TAG = "pykafka08-trying-a-worker"
LOCAL = ("pyarrow",)
"""Packages that the stages import in a worker."""
ON_STORES = ("deltalake",)
"""Further packages in a worker if the folder is on a store."""
ON_SERVER = ("deltalake", "grpc", "pykafka08.spark.pipeline.stages")
"""Further packages in the Python of a Spark Connect server."""


def try_workers(spark: SparkSession, *, is_local: bool = True) -> str:
    """Import the packages of the stages in a worker; a line with its interpreter.

    ``is_local``: the pipeline's folder is not on a store.

    Raises:
        ConfigError: an import failed, the interpreter is missing or of another minor version, or the master gave no
            executor within two minutes.
    """
    context = spark.sparkContext
    python = context.pythonExec
    timer, is_late = _time_limit(lambda: context.cancelJobGroup(GROUP))
    try:
        found = _ask(context, LOCAL if is_local else (*LOCAL, *ON_STORES))
    except (PySparkException, Py4JJavaError) as error:
        why = f"no executor within {NO_EXECUTOR_S:g} s" if is_late.is_set() else cause_of(error)
        raise ConfigError(
            f"spark.master: no worker of {context.master} can run the stages with Python {python}: {why}; "
            "PYSPARK_PYTHON names another"
        ) from error
    finally:
        timer.cancel()
    return f"workers: {found}, started as {python}; PYSPARK_PYTHON names another"


def try_server(spark: SparkSession, master: str, *, is_local: bool = True) -> str:
    """Import the packages of the stages in the Python of a Spark Connect server, and in a worker.

    Returns a line with both interpreters.  ``is_local``: the pipeline's folder is not on a store.

    Raises:
        ConfigError: an import failed, or the server gave no executor within two minutes.
    """
    packages = LOCAL if is_local else (*LOCAL, *ON_STORES)
    timer, is_late = _time_limit(lambda: spark.interruptTag(TAG))
    spark.addTag(TAG)
    try:
        spark.dataSource.register(InterpreterDataSource)
        found = spark.read.format(InterpreterDataSource.name()).option("packages", ",".join(packages)).load()
        on_server = found.schema[0].metadata["comment"]
        row = found.first()
    except PySparkException as error:
        why = f"no executor within {NO_EXECUTOR_S:g} s" if is_late.is_set() else cause_of(error)
        raise ConfigError(
            f"spark.master: the Python of {without_parameters(master)} cannot run the stages: {why}"
        ) from error
    finally:
        timer.cancel()
        spark.removeTag(TAG)
    assert row is not None
    return f"server: {on_server}; workers: {row[0]}"


def _time_limit(give_up: Callable[[], object]) -> tuple[Timer, Event]:
    """A running timer that calls ``give_up``, and an event that is set then."""
    is_late = Event()

    def end() -> None:
        is_late.set()
        give_up()

    timer = Timer(NO_EXECUTOR_S, end)
    timer.daemon = True
    timer.start()
    return timer, is_late


class InterpreterDataSource(DataSource):
    """One row with the interpreter of a worker; the comment of its column names the interpreter of the driver."""

    @classmethod
    def name(cls) -> str:
        return "pykafka08-interpreter"

    def schema(self) -> StructType:
        found = _interpreter((*self._packages(), *ON_SERVER))
        return StructType([StructField("interpreter", StringType(), metadata={"comment": found})])

    def reader(self, schema: StructType) -> DataSourceReader:
        return _InterpreterReader(self._packages())

    def _packages(self) -> tuple[str, ...]:
        return tuple(self.options["packages"].split(","))


class _InterpreterReader(DataSourceReader):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        yield (_interpreter(self._packages),)


def _ask(context: SparkContext, packages: tuple[str, ...]) -> str:
    context.setJobGroup(GROUP, GROUP, interruptOnCancel=True)
    try:
        return context.parallelize([packages], 1).map(_interpreter).collect()[0]
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _interpreter(packages: tuple[str, ...]) -> str:
    """The interpreter of a worker, which has imported this module to find the function."""
    for name in packages:
        import_module(name)
    return f"Python {platform.python_version()} at {sys.executable}"
