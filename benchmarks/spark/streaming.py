"""Streams on Spark against Spark's own connector, turn by turn in one session.

    python -m benchmarks.spark.streaming --servers HOST:PORT [--records 3000000] [--rounds 3] [--seconds 20]

The broker is one that runs (``tests/brokers/kafka-up``).  Three rows, each with its target:

- ``one batch``: ``Trigger.AvailableNow`` over a topic of ``reading``'s, into the sink that drops rows; timed from the
  start of the query to its end.
- ``batches of 60 000``: the same with ``maxOffsetsPerTrigger``.
- ``live``: another process sends 10,000 records a second; micro-batches follow one another as fast as they can, and
  each is aggregated in ``foreachBatch``.  The age of a record is the time between its sending and the end of that.

Ratios are medians over the rounds after one that is not counted.  Below each row stands where the time of a micro-batch
went, as Spark's own progress reports it (medians in milliseconds).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.reading import FORMATS, PARTITIONS, filled, processor_seconds, session

PER_BATCH = 60_000
PER_SECOND = 10_000
TARGETS = {"one batch": 2.4, "batches of 60 000": 1.4, "live": 1.25}
"""How many times the other connector's speed; of the live row the other's age by ours (0.8 the other way round)."""
STEPS = ("latestOffset", "queryPlanning", "addBatch", "walCommit", "commitOffsets", "triggerExecution")
WARM_UP_S = 6.0


def main() -> int:
    """Fill, time, print a line for each row; 1 if a count is wrong."""
    parser = argparse.ArgumentParser(description="Streams on Spark, against Spark's own connector.")
    parser.add_argument("--servers", required=True)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20, help="of one turn of the live row")
    parser.add_argument("--rows", default=",".join(TARGETS))
    parser.add_argument("--send", metavar="TOPIC", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.rows.split(",")) - set(TARGETS):
        parser.error(f"no such rows: {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    if options.send is not None:
        send_live(options.servers, options.send)
        return 0
    topic = filled(options.servers, "none", options.records)
    spark = session()
    wrong = 0
    for name in options.rows.split(","):
        wrong += live(spark, options) if name == "live" else available_now(spark, options, name, topic)
    spark.stop()
    return 1 if wrong else 0


def available_now(spark: SparkSession, options: argparse.Namespace, name: str, topic: str) -> int:
    """One row of a topic that is full; how many turns have lost rows."""
    limit = {"maxOffsetsPerTrigger": str(PER_BATCH)} if name != "one batch" else {}
    turns: dict[str, list[Turn]] = {each: [] for each in FORMATS}
    wrong = 0
    for turn in range(options.rounds + 1):
        for each in FORMATS if turn % 2 else reversed(FORMATS):
            frame = load(spark, each, options.servers, topic, startingOffsets="earliest", **limit)
            with tempfile.TemporaryDirectory() as checkpoint:
                started, used = time.perf_counter(), processor_seconds()
                writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
                query = writer.trigger(availableNow=True).start()
                query.awaitTermination()
                done = Turn(time.perf_counter() - started, processor_seconds() - used, query.recentProgress)
            if turn:
                turns[each].append(done)
            wrong += done.rows != options.records
    show(name, turns)
    return wrong


def live(spark: SparkSession, options: argparse.Namespace) -> int:
    """The row of records that come while they are read; 0."""
    turns: dict[str, list[Turn]] = {each: [] for each in FORMATS}
    topic = f"spark-live-{os.getpid()}"
    admin = AdminClient({"bootstrap.servers": options.servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    with sending(options.servers, topic):
        for turn in range(options.rounds + 1):
            for each in FORMATS if turn % 2 else reversed(FORMATS):
                done = follow(load(spark, each, options.servers, topic, startingOffsets="latest"), options.seconds)
                if turn:
                    turns[each].append(done)
    show("live", turns)
    return 0


def follow(frame: DataFrame, seconds: float) -> Turn:
    """One turn of the live row: its mean age in seconds, without the first batches, which start processes."""
    ages: list[tuple[float, int]] = []
    counted_from = time.monotonic() + WARM_UP_S

    def aggregate(batch: DataFrame, number: int) -> None:
        rows, sent = batch.selectExpr("count(*)", "avg(cast(timestamp as double))").collect()[0]
        if rows and time.monotonic() >= counted_from:
            ages.append((time.time() - sent, rows))

    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.foreachBatch(aggregate).option("checkpointLocation", checkpoint)
        query = writer.start()
        query.awaitTermination(WARM_UP_S)
        used = processor_seconds()
        query.awaitTermination(seconds)
        used = processor_seconds() - used
        query.stop()
    rows = sum(count for _, count in ages)
    return Turn(sum(age * count for age, count in ages) / rows, used, query.recentProgress)


class Turn:
    """What one turn took: seconds (or an age), seconds of the processors, and the batches' own times."""

    def __init__(self, seconds: float, processor: float, progress: Sequence[Any]) -> None:
        self.seconds = seconds
        self.processor = processor
        self.rows = sum(each["numInputRows"] for each in progress)
        self.batches = [each["durationMs"] for each in progress if each["numInputRows"]]

    def step(self, name: str) -> float:
        """The median of a step in milliseconds."""
        return statistics.median(each.get(name, 0) for each in self.batches)


def show(name: str, turns: dict[str, list[Turn]]) -> None:
    """One row."""
    pairs = list(zip(*(turns[each] for each in FORMATS), strict=True))
    ratio = statistics.median(theirs.seconds / ours.seconds for ours, theirs in pairs)
    of_processor = statistics.median(theirs.processor / ours.processor for ours, theirs in pairs)
    print(f"{name:18} {ratio:5.2f} x, by the processors {of_processor:.2f} x (target {TARGETS[name]})", end="   ")
    for each in FORMATS:
        middle = statistics.median(turn.seconds for turn in turns[each])
        print(f"{each} {middle:.2f} s in {len(turns[each][-1].batches)} batches", end="   ")
    print(f"load {os.getloadavg()[0]:.1f}")
    for each in FORMATS:
        steps = [f"{step} {statistics.median(turn.step(step) for turn in turns[each]):.0f}" for step in STEPS]
        print(f"    {each:10} {', '.join(steps)}", flush=True)


def load(spark: SparkSession, connector: str, servers: str, topic: str, **more: str) -> DataFrame:
    """The stream of one connector."""
    reader = spark.readStream.format(connector).option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).options(**more).load()


@contextlib.contextmanager
def sending(servers: str, topic: str) -> Iterator[None]:
    """Records come, from another process, until the block ends."""
    command = [sys.executable, "-m", "benchmarks.spark.streaming", "--servers", servers, "--send", topic]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.terminate()


def send_live(servers: str, topic: str) -> None:
    """Send while the parent lives, in steps of a hundredth of a second; what the machine holds up is caught up."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    parent, value, sent, started = os.getppid(), b"v" * 100, 0, time.monotonic()
    while os.getppid() == parent:
        due = int((time.monotonic() - started) * PER_SECOND)
        for index in range(sent, due):
            producer.produce(topic, value, partition=index % PARTITIONS)
        sent = due
        producer.poll(0.01)


if __name__ == "__main__":
    sys.exit(main())
