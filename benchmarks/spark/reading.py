"""Batch reads on Spark against Spark's own connector, turn by turn in one session.

    python -m benchmarks.spark.reading --servers HOST:PORT [--records 1000000] [--rounds 3] [--codecs none,gzip]

The broker is one that runs (``tests/brokers/kafka-up``).  A topic of six partitions is filled by librdkafka for each
codec, with values of 100 bytes, random text for ``none`` and JSON-like for the others.  A turn is one action, timed
from its call to its result; connectors alternate, and the ratios are medians over the rounds after one that is not
counted.  Beside the time of the clock stands that of the processors, of the JVM and its Python workers together, which
says more on a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

import pykafka08.spark
from tests.spark.connector import connector_jars

FORMATS = ("pykafka08", "kafka")
PARTITIONS = 6
TARGETS = {"count": 3.5, "sum of lengths": 3.5, "Parquet": 2.2}
CODEC_TARGET = 4.0


def main() -> int:
    """Fill, time, print a line for each row; 1 if a count is wrong."""
    parser = argparse.ArgumentParser(description="Batch reads on Spark, against Spark's own connector.")
    parser.add_argument("--servers", required=True)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--codecs", default="none,gzip,snappy,lz4,zstd")
    options = parser.parse_args()
    topics = {codec: filled(options.servers, codec, options.records) for codec in options.codecs.split(",")}
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        actions: dict[str, Callable[[DataFrame], int]] = {
            "count": lambda frame: frame.count(),
            "sum of lengths": lambda frame: frame.selectExpr("sum(length(value)) div 100").collect()[0][0],
            "Parquet": lambda frame: parquet(frame, folder),
        }
        rows = [(name, topics["none"], actions[name]) for name in actions if "none" in topics]
        rows += [(f"count, {codec}", topic, actions["count"]) for codec, topic in topics.items() if codec != "none"]
        wrong = 0
        for name, topic, act in rows:
            wrong += compare(spark, options, name, topic, act)
    spark.stop()
    return 1 if wrong else 0


def session() -> SparkSession:
    """Two task slots, as in the targets; what makes it fast is what ``register`` does."""
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, connector_jars())))
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pykafka08.spark.register(spark)
    return spark


def compare(
    spark: SparkSession, options: argparse.Namespace, name: str, topic: str, act: Callable[[DataFrame], int]
) -> int:
    """One row: each connector in turn; the number of wrong counts."""
    seconds: dict[str, list[float]] = {each: [] for each in FORMATS}
    processor: dict[str, list[float]] = {each: [] for each in FORMATS}
    wrong = 0
    for turn in range(options.rounds + 1):
        for each in FORMATS if turn % 2 else reversed(FORMATS):
            frame = (
                spark.read.format(each)
                .option("kafka.bootstrap.servers", options.servers)
                .option("subscribe", topic)
                .load()
            )
            started, used = time.perf_counter(), processor_seconds()
            found = act(frame)
            if turn:
                seconds[each].append(time.perf_counter() - started)
                processor[each].append(processor_seconds() - used)
            wrong += found != options.records
    ours, theirs = (seconds[each] for each in FORMATS)
    ratio, of_processor = (
        statistics.median(b / a for a, b in zip(*(each[name] for name in FORMATS), strict=True))
        for each in (seconds, processor)
    )
    target = TARGETS.get(name, CODEC_TARGET)
    print(f"{name:16} {ratio:5.2f} x, by the processors {of_processor:.2f} x (target {target})", end="   ")
    print(f"pykafka08 {_rate(options.records, ours)}, kafka {_rate(options.records, theirs)} k rows/s", end="   ")
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    return wrong


def processor_seconds() -> float:
    """What all processes of this session have used: ours, the JVM and its Python workers, also those that ended."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        pid = int(entry.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used.get(pid, 0) for pid in ours) / os.sysconf("SC_CLK_TCK")


def _rate(records: int, seconds: list[float]) -> str:
    return f"{records / statistics.median(seconds) / 1000:,.0f}"


def parquet(frame: DataFrame, folder: str) -> int:
    """Write all columns, and count the rows in the files' footers, which takes no time beside that."""
    frame.write.mode("overwrite").parquet(f"{folder}/rows")
    return sum(pyarrow.parquet.read_metadata(file).num_rows for file in Path(folder, "rows").glob("*.parquet"))


def filled(servers: str, codec: str, records: int) -> str:
    """A topic with so many records, made if it is not there."""
    topic = f"spark-read-{codec}-{records}"
    admin = AdminClient({"bootstrap.servers": servers})
    if topic in admin.list_topics(timeout=30).topics:
        return topic
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    text = random.Random(7).choices(string.ascii_letters, k=1 << 16)
    blob = "".join(text)
    for index in range(records):
        start = index * 31 % (len(blob) - 100)
        value = blob[start : start + 100] if codec == "none" else _json_of(index)
        while True:
            try:
                producer.produce(topic, value, partition=index % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return topic


def _json_of(index: int) -> str:
    text = f'{{"id": {index}, "user": "user-{index % 5000}", "amount": {index * 7919 % 100000}, "currency": "EUR"'
    return text.ljust(99)[:99] + "}"


if __name__ == "__main__":
    sys.exit(main())
