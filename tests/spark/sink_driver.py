"""A driver that writes lines ``exactlyOnce`` and fails as it is told: ``sink_driver.py SERVERS TOPIC FOLDER``.

Each blow falls once: in a task, and with SIGKILL before, within and after the second phase.  The folder has a file for
each that has fallen.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from pykafka08.spark import local_python, session_conf
from pykafka08.spark.data_source import KafkaDataSource
from pykafka08.spark.options import write_options
from pykafka08.spark.sink.stream_writer import KafkaStreamWriter, Part
from pykafka08.spark.sink.two_phase import Prepared
from tests.spark.queries import SHORT_LIVED

BLOWS = ("task failed", "before the decision", "between two commits", "after the last commit")
"""Each in the batch of its number."""
FOLDER = "SINK_DRIVER_FOLDER"


def falls(batch: int) -> bool:
    """Whether the batch's blow falls now, for the first time."""
    marker = Path(os.environ[FOLDER], BLOWS[batch])
    is_new = not marker.exists()
    marker.touch()
    return is_new


def kill_driver() -> None:
    """The driver and its JVM; this process, which is Spark's, too."""
    os.killpg(os.getsid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def broken(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches
    raise ConnectionAbortedError(BLOWS[0])


class StruckWriter(KafkaStreamWriter):
    """The sink's own, with the blows."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        place = context.getLocalProperty("streaming.sql.batchId"), context.partitionId()
        return super().write(broken(iterator) if place == ("0", 1) and falls(0) else iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        if batchId == 1 and falls(1):
            kill_driver()
        if batchId == 2 and falls(2):
            first, *others = [each.prepared for each in messages if isinstance(each, Part)]
            unfinished = [Part(Prepared(each.place, each.totals, None)) for each in others]
            super().commit([Part(first), *unfinished], batchId)
            kill_driver()
        super().commit(messages, batchId)
        if batchId == 3 and falls(3):
            kill_driver()


class StruckSource(KafkaDataSource):
    """The format ``struck``."""

    @classmethod
    def name(cls) -> str:
        return "struck"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StruckWriter:
        return StruckWriter(write_options(self.options), schema)


def main(servers: str, topic: str, folder: Path) -> None:
    os.environ[FOLDER] = str(folder)
    os.environ["PYSPARK_PYTHON"] = local_python()
    settings = {
        **session_conf(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.ui.enabled": "false",
    }
    spark = SparkSession.builder.master("local[2,3]").config(map=settings).getOrCreate()  # a task has three attempts
    spark.dataSource.register(StruckSource)
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "input")).repartition(3)
    query = (
        lines.writeStream.format("struck")
        .options(**{"kafka.bootstrap.servers": servers, "topic": topic, "exactlyOnce": "true"})
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    from tests.spark import sink_driver  # by its name, by which Spark's workers find its classes

    sink_driver.main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
