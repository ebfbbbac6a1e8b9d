"""Planning time and driver memory of a stream as its partitions grow, beside Spark's own connector.

    python -m benchmarks.spark.growth [--partitions 1,100,1000,10000] [--chart docs/images/partitions.svg]

The embedded broker serves one topic for each size, with five records in each partition.  A query with
``Trigger.AvailableNow`` reads them in five micro-batches.  For each size and connector one line has the medians of the
micro-batches after the first: finding the end offsets, planning, the write-ahead log and the tasks, in milliseconds;
the length of the checkpoint's offsets in KiB; and the most memory of the planning Python process and of the JVM's heap
after a collection, in MiB.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from pyspark.sql import SparkSession

from benchmarks.charts import bar_chart
from benchmarks.spark.memory import Watch
from benchmarks.spark.reading import FORMATS, session
from pykafka08 import Admin, NewTopic, Producer

MIB = 1 << 20
BATCHES = 5
PLANNER = b"python_streaming_source_runner"
STEPS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "triggerExecution")


@dataclass(frozen=True)
class Growth:
    """What one size took with one connector."""

    connector: str
    partitions: int
    steps: dict[str, float]
    """Median milliseconds by the names of Spark's progress."""
    offsets_kib: float
    python_mib: float
    heap_mib: float
    rows: int

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {self.steps[name]:.0f}" for name in STEPS)
        memory = f"offsets {self.offsets_kib:.1f} KiB, planner {self.python_mib:.0f} MiB, heap {self.heap_mib:.0f} MiB"
        return f"{self.partitions:6} partitions {self.connector:10} {steps} ms; {memory}"


def main() -> int:
    """Fill, read, print a line for each size and connector; 1 if rows are missing."""
    parser = argparse.ArgumentParser(description="Streams on Spark over more and more partitions.")
    parser.add_argument("--partitions", default="1,100,1000,10000")
    parser.add_argument("--chart", type=Path, help="write a bar chart of the trigger's time here")
    options = parser.parse_args()
    sizes = [int(one) for one in options.partitions.split(",")]
    found = []
    with broker() as servers:
        for size in sizes:
            anyio.run(fill, servers, size)
        spark = session()
        for connector in FORMATS:  # this turn starts processes, and is not counted
            read(spark, connector, servers, sizes[0])
        for size in sizes:
            for connector in FORMATS:
                found.append(read(spark, connector, servers, size))
                print(found[-1], flush=True)
        spark.stop()
    if options.chart:
        bars = [
            (f"{one.partitions:,} partitions, {one.connector}", one.steps["triggerExecution"], one.connector != "kafka")
            for one in found
        ]
        options.chart.write_text(bar_chart("One micro-batch by the number of partitions", "milliseconds", bars))
    return int(any(one.rows != one.partitions * BATCHES for one in found))


@contextmanager
def broker() -> Iterator[str]:
    """The address of an embedded broker in a process of its own."""
    command = [sys.executable, "-m", "pykafka08", "broker", "--no-auto-create"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().removeprefix("BROKERS=")
        finally:
            process.terminate()


async def fill(servers: str, partitions: int) -> None:
    """One topic; each of its partitions has a record for each micro-batch."""
    topic = topic_of(partitions)
    async with Admin(servers) as admin:
        await admin.create_topics([NewTopic(topic, partitions, 1)])
    async with Producer(servers) as producer:
        for _ in range(BATCHES):
            for partition in range(partitions):
                producer.enqueue(topic, b"v" * 100, partition=partition)
            await producer.flush()


def topic_of(partitions: int) -> str:
    return f"growth-{partitions}"


def read(spark: SparkSession, connector: str, servers: str, partitions: int) -> Growth:
    """One query over all micro-batches."""
    reader = spark.readStream.format(connector).option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", topic_of(partitions)).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", str(partitions)).load()
    with tempfile.TemporaryDirectory() as checkpoint, Watch(PLANNER) as watch:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        offsets = Path(checkpoint, "offsets", str(BATCHES - 1)).stat().st_size
    documents = [one for one in query.recentProgress if one["numInputRows"]]
    later = [one["durationMs"] for one in documents[1:]]
    return Growth(
        connector,
        partitions,
        {name: statistics.median(one.get(name, 0) for one in later) for name in STEPS},
        offsets / 1024,
        max(watch.seen) / MIB,
        heap_used(spark) / MIB,
        sum(one["numInputRows"] for one in documents),
    )


def heap_used(spark: SparkSession) -> int:
    """Bytes that the JVM holds after a collection."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


if __name__ == "__main__":
    sys.exit(main())
