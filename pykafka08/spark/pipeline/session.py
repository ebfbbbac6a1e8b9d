"""The Spark session of a pipeline."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from pykafka08.errors import ConfigError
from pykafka08.spark import register, session_conf
from pykafka08.spark.pipeline.addresses import Address, Storage, options_for_hadoop
from pykafka08.spark.pipeline.connect import check_reach, connected, without_parameters
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.tables.stream import TableDataSource

__all__ = ["WITHOUT_CALL_SITES", "brief", "cause_of", "prepare", "reach", "session", "stop_logging", "without_stack"]

ALWAYS = {
    "spark.sql.ansi.enabled": "false",  # else one value that an expression cannot convert ends its batch, for ever
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.speculation": "false",
}
"""What the stages rely on."""


WITHOUT_CALL_SITES = {"spark.python.sql.dataFrameDebugging.enabled": "false"}
"""Saves several calls to the JVM for each column, by which PySpark's errors would name lines of this package."""


TELLING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that write each error of an expression with a traceback; who asks is told in one line."""


TRACEBACK = "Traceback (most recent call last):"
LONGEST = 1500
"""Characters of an error that is told to Spark."""


def session(pipeline: Pipeline) -> SparkSession:
    """The session that the settings ask for; on this machine it listens to nobody else.

    Raises:
        ConfigError: master or conf are none of Spark's, and what the JVM says of it is on standard error; or conf has
            another value for what the stages rely on.
    """
    for name, value in ALWAYS.items():
        if pipeline.spark.conf.get(name, value) != value:
            raise ConfigError(f"spark.conf.{name}: the stages rely on {value!r}")
    for name in TELLING:
        PySparkLogger.getLogger(name).disabled = True
    if pipeline.spark.is_connect:
        return _connected(pipeline)
    conf = {**session_conf(), **WITHOUT_CALL_SITES}
    conf["spark.ui.showConsoleProgress"] = "false"  # progress bars would overwrite messages
    if pipeline.spark.master.startswith("local"):
        conf["spark.driver.bindAddress"] = conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.ui.enabled"] = "false"
        conf["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    builder = SparkSession.builder.master(pipeline.spark.master).appName(pipeline.name)
    try:
        with _own_interrupt():
            spark = builder.config(map={**conf, **pipeline.spark.conf, **ALWAYS}).getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"spark: no session at {pipeline.spark.master}: {cause_of(error)}") from error
    try:
        reach(spark, pipeline.root.address, pipeline.storage)
    except ConfigError:
        spark.stop()
        raise
    spark.sparkContext.setLogLevel("ERROR")  # its warnings are about each query of each batch
    prepare(spark)
    return spark


def _connected(pipeline: Pipeline) -> SparkSession:
    """A session on a Spark Connect server."""
    spark = connected(pipeline.spark.master, ALWAYS, pipeline.spark.conf)
    try:
        prepare(spark)
        for name, value in options_for_hadoop(pipeline.root.address, pipeline.storage).items():
            spark.conf.set(name, value)
        if not pipeline.root.is_local:
            check_reach(spark, pipeline.root.address)
    except ConfigError:
        spark.stop()
        raise
    except PySparkException as error:
        spark.stop()
        raise ConfigError(
            f"spark.master: no session at {without_parameters(pipeline.spark.master)}: {cause_of(error)}"
        ) from error
    return spark


def stop_logging(spark: SparkSession) -> None:
    """Log nothing more in this process; the log of a Spark Connect server does not change."""
    if not is_remote():
        spark.sparkContext.setLogLevel("OFF")


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """PySpark puts a handler for SIGINT in the place of who runs the pipeline; it is put back."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def cause_of(error: PySparkException | Py4JJavaError) -> str:
    """The error in one line: the innermost cause of a Java exception, or the last line of a worker's traceback."""
    said = str(error)
    if isinstance(error, Py4JJavaError):
        *_, innermost = _causes(error)
        said = str(innermost.getMessage() or innermost)
    _, _, of_python = said.partition(TRACEBACK)
    return next(line for line in (of_python or said).splitlines() if line and not line[0].isspace())


def without_stack(error: Exception) -> str:
    """The text of an error without the server's stack, which Spark Connect adds to it."""
    return str(error).partition("\n\nJVM stacktrace:")[0]


def brief(error: PySparkException | Py4JJavaError) -> str:
    """What it and its causes say, without stacks, none of it twice; at most :data:`LONGEST` characters."""
    if isinstance(error, Py4JJavaError):
        said = [line for cause in _causes(error) for line in str(cause.getMessage() or cause).splitlines()[:1]]
    else:
        said = [line for line in str(error).splitlines() if line and not line[0].isspace()]
    return "; ".join(dict.fromkeys(said))[:LONGEST]


def _causes(error: Py4JJavaError) -> Iterator[Any]:
    """Java's exceptions, each before its cause."""
    cause = error.java_exception
    while cause is not None:
        yield cause
        cause = cause.getCause()


def prepare(spark: SparkSession) -> None:
    """Make the formats of the stages known to a session that exists."""
    for name, value in ALWAYS.items():
        if name.startswith("spark.sql."):
            spark.conf.set(name, value)
    register(spark)
    spark.dataSource.register(TableDataSource)


CONNECTORS = {
    "s3a": "org.apache.hadoop:hadoop-aws:{}",
    "abfss": "org.apache.hadoop:hadoop-azure:{}",
    "gs": "org.apache.hadoop:hadoop-gcp:{}",
}
"""Scheme → the Maven package of Hadoop's file system, whose version is the one of Spark's Hadoop."""


def reach(spark: SparkSession, address: Address, storage: Storage) -> None:
    """Configure the file system of an address in a session.

    The settings go into Hadoop's configuration, because the list of processes and Spark's UI show Spark's own.

    Raises:
        ConfigError: Spark has no file system for such an address.
    """
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in options_for_hadoop(address, storage).items():
        hadoop.set(name, value)
    if address.scheme in CONNECTORS:
        apache: Any = spark._jvm.org.apache  # type: ignore[union-attr]
        try:
            apache.hadoop.fs.FileSystem.getFileSystemClass(address.scheme, hadoop)
        except Py4JJavaError as error:
            wanted = CONNECTORS[address.scheme].format(apache.hadoop.util.VersionInfo.getVersion())
            raise ConfigError(
                f"folder: Spark has no file system for {address.scheme}: ({cause_of(error)}); "
                f'set spark.conf."spark.jars.packages" to {wanted}, or add its jars to the class path'
            ) from None
