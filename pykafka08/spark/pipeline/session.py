"""The Spark session of a pipeline."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from pykafka08.spark import local_python, register, session_conf
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.table_source import TableDataSource

__all__ = ["session"]

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.speculation": "false",
}
"""What the stages rely on."""


def session(pipeline: Pipeline) -> SparkSession:
    """The session that the settings ask for; on this machine it listens to nobody else."""
    conf = dict(session_conf())
    if pipeline.spark.master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", local_python())  # else the first python3 on the path
        conf["spark.driver.bindAddress"] = conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.ui.enabled"] = "false"
        conf["spark.ui.showConsoleProgress"] = "false"
        conf["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    builder = SparkSession.builder.master(pipeline.spark.master).appName(pipeline.name)
    spark = builder.config(map={**conf, **pipeline.spark.conf, **ALWAYS}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")  # its warnings are about each query of each batch
    prepare(spark)
    return spark


def prepare(spark: SparkSession) -> None:
    """Make the formats of the stages known to a session that exists."""
    for name, value in ALWAYS.items():
        if name.startswith("spark.sql."):
            spark.conf.set(name, value)
    register(spark)
    spark.dataSource.register(TableDataSource)
