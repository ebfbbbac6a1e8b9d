"""Batch writes from Spark against Spark's own connector, turn by turn in one session.

    python -m benchmarks.spark.writing --servers HOST:PORT [--records 1000000] [--rounds 3] [--acks all]

The broker is one that runs (``tests/brokers/kafka-up``).  Rows of 100 bytes go to a new topic of six partitions in each
turn, and are counted there afterwards.  What is measured, and how, is ``reading``'s.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.reading import FORMATS, PARTITIONS, processor_seconds, session

TARGET = 1.6
VALUE = "concat(lpad(cast(id as string), 12, '0'), repeat('v', 88))"
SHAPES = {
    "values": [f"{VALUE} as value"],
    "keys": [f"{VALUE} as value", "cast(id % 50000 as string) as key"],
    "partitions": [f"{VALUE} as value", "cast(id % 6 as int) as partition"],
}


def main() -> int:
    """Write, time, count; 1 if rows are missing."""
    parser = argparse.ArgumentParser(description="Batch writes from Spark, against Spark's own connector.")
    parser.add_argument("--servers", required=True)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--acks", default="all")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    options = parser.parse_args()
    spark = session()
    wrong = sum(compare(spark, options, name) for name in options.shapes.split(","))
    spark.stop()
    return 1 if wrong else 0


def compare(spark: SparkSession, options: argparse.Namespace, name: str) -> int:
    """One row: each connector in turn; how many turns have lost rows."""
    frame = spark.range(0, options.records, 1, PARTITIONS).selectExpr(*SHAPES[name])
    admin = AdminClient({"bootstrap.servers": options.servers})
    seconds: dict[str, list[float]] = {each: [] for each in FORMATS}
    processor: dict[str, list[float]] = {each: [] for each in FORMATS}
    wrong = 0
    for turn in range(options.rounds + 1):
        for each in FORMATS if turn % 2 else reversed(FORMATS):
            topic = f"spark-write-{name}-{each}-{turn}-{os.getpid()}"
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
            started, used = time.perf_counter(), processor_seconds()
            write(frame, each, topic, options)
            if turn:
                seconds[each].append(time.perf_counter() - started)
                processor[each].append(processor_seconds() - used)
            wrong += count(spark, topic, options) != options.records
            admin.delete_topics([topic])[topic].result()
    ratio, of_processor = (
        statistics.median(theirs / ours for ours, theirs in zip(*(each[name] for name in FORMATS), strict=True))
        for each in (seconds, processor)
    )
    rates = {each: options.records / statistics.median(seconds[each]) / 1000 for each in FORMATS}
    print(
        f"{name:12} {ratio:5.2f} x (target {TARGET}), by the processors {of_processor:.2f} x   "
        + ", ".join(f"{each} {rate:,.0f}" for each, rate in rates.items())
        + f" k rows/s   load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return wrong


def write(frame: DataFrame, connector: str, topic: str, options: argparse.Namespace) -> None:
    """One turn."""
    (
        frame.write.format(connector)
        .mode("append")
        .option("kafka.bootstrap.servers", options.servers)
        .option("kafka.acks", options.acks)
        .option("topic", topic)
        .save()
    )


def count(spark: SparkSession, topic: str, options: argparse.Namespace) -> int:
    """How many rows the topic has."""
    reader = spark.read.format("pykafka08").option("kafka.bootstrap.servers", options.servers)
    return reader.option("subscribe", topic).option("columns", "partition").load().count()


if __name__ == "__main__":
    sys.exit(main())
