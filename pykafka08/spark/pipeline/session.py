"""The Spark session of a pipeline."""

from __future__ import annotations

import os

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from pykafka08.errors import ConfigError
from pykafka08.spark import local_python, register, session_conf
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.table_source import TableDataSource

__all__ = ["cause_of", "session"]

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.speculation": "false",
}
"""What the stages rely on."""


TELLING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that write each error of an expression with a traceback; who asks is told in one line."""


def session(pipeline: Pipeline) -> SparkSession:
    """The session that the settings ask for; on this machine it listens to nobody else.

    Raises:
        ConfigError: master or conf are none of Spark's; what the JVM says of it is on standard error.
    """
    for name in TELLING:
        PySparkLogger.getLogger(name).disabled = True
    conf = dict(session_conf())
    if pipeline.spark.master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", local_python())  # else the first python3 on the path
        conf["spark.driver.bindAddress"] = conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.ui.enabled"] = "false"
        conf["spark.ui.showConsoleProgress"] = "false"
        conf["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    builder = SparkSession.builder.master(pipeline.spark.master).appName(pipeline.name)
    try:
        spark = builder.config(map={**conf, **pipeline.spark.conf, **ALWAYS}).getOrCreate()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"spark: no session at {pipeline.spark.master}: {cause_of(error)}") from error
    spark.sparkContext.setLogLevel("ERROR")  # its warnings are about each query of each batch
    prepare(spark)
    return spark


def cause_of(error: PySparkException | Py4JJavaError) -> str:
    """What it says first, in one line; of Java's own that of the innermost."""
    if not isinstance(error, Py4JJavaError):
        return str(error).strip().splitlines()[0]
    innermost = error.java_exception
    while (cause := innermost.getCause()) is not None:
        innermost = cause
    return str(innermost.getMessage() or innermost).strip().splitlines()[0]


def prepare(spark: SparkSession) -> None:
    """Make the formats of the stages known to a session that exists."""
    for name, value in ALWAYS.items():
        if name.startswith("spark.sql."):
            spark.conf.set(name, value)
    register(spark)
    spark.dataSource.register(TableDataSource)
