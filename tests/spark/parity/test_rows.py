"""Rows, options and splits beside Spark's own connector: the same of both, on real brokers.

All cases of Spark's connector are one query, in which each row has the number of its case.  Ours are planned and read
by the classes that Spark calls; that Spark passes their rows on unchanged is ``test_batch_spark``'s, and of all cases
``make spark-soak``'s.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timezone
from functools import reduce
from typing import Any

import anyio
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pykafka08 import NewRecord, Producer
from pykafka08.spark.batch_reader import KafkaBatchReader
from pykafka08.spark.columns import schema_of
from pykafka08.spark.options import read_options
from tests.integration.clusters import Clusters, RealCluster
from tests.spark.queries import INTERPRETED, with_conf

RELEASES = ["0.11.0.3", "2.8.2", "3.9.2", "4.3.1"]
T0 = 1_600_000_000_000
SOON = {"kafka.fetch.max.wait.ms": "20"}
"""For Spark's connector where a case says nothing: at the end of each partition it waits for that long."""
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]


@dataclass(frozen=True)
class Topics:
    """``a`` has 40 and 20 records, one a second from T0 on; ``b`` has 10 and none; ``x`` has transactions."""

    a: str
    b: str
    x: str
    group: str = "my-group"
    """Spark's connector keeps consumers by group and partition, of another cluster too."""

    def offsets(self, topic: str, *each: int) -> str:
        return json.dumps({topic: {str(number): offset for number, offset in enumerate(each)}})


def cases(t: Topics) -> list[dict[str, str]]:
    """Options of batch reads, each beside the brokers' address."""
    a, b, x = {"subscribe": t.a}, {"subscribe": t.b}, {"subscribe": t.x}
    second = {"startingTimestamp": str(T0 + 5_000), "endingTimestamp": str(T0 + 15_000)}
    from_middle, to_middle = t.offsets(t.a, 10, -2), t.offsets(t.a, 20, -1)
    all_of_a = {"startingOffsets": t.offsets(t.a, 0, 0), "endingOffsets": t.offsets(t.a, 40, 20)}
    committed = {"kafka.isolation.level": "read_committed"}
    return [
        a,
        {"subscribe": f" {t.a}, {t.b}"},
        {"subscribePattern": t.a[1:-1] + "."},
        {"subscribePattern": f"^({t.a}|{t.b})$"},
        {"assign": json.dumps({t.a: [0]})},
        {"assign": json.dumps({t.a: [1], t.b: [0, 1]})},
        {"assign": json.dumps({t.a: [1]}), "startingOffsets": json.dumps({t.a: {"1": 7}})},
        {**a, "startingOffsets": "earliest", "endingOffsets": "latest"},
        {**a, "startingOffsets": from_middle},
        {**a, "endingOffsets": to_middle},
        {**a, "startingOffsets": t.offsets(t.a, 10, 3), "endingOffsets": t.offsets(t.a, 20, 3)},
        {**a, "startingOffsets": t.offsets(t.a, -2, -2), "endingOffsets": t.offsets(t.a, -1, -1)},
        {**a, "startingTimestamp": str(T0 + 5_000)},
        {**a, "endingTimestamp": str(T0 + 5_500)},
        {**a, **second},
        {**a, "endingTimestamp": str(T0 + 10_000_000)},
        {**a, "startingOffsetsByTimestamp": t.offsets(t.a, T0 + 29_000, T0 + 3_001)},
        {**a, "endingOffsetsByTimestamp": t.offsets(t.a, T0 + 29_000, T0 + 3_001)},
        {**a, "startingTimestamp": str(T0 + 25_000), "startingOffsetsByTimestampStrategy": "latest"},
        {**a, **second, "startingOffsets": from_middle, "endingOffsets": to_middle},
        {**a, "startingOffsetsByTimestamp": t.offsets(t.a, T0, T0 + 9_000), "startingOffsets": from_middle},
        {**a, "minPartitions": "5"},
        # Between offsets that the options say: between others Spark's connector splits batches by minPartitions alone.
        {**a, **all_of_a, "maxRecordsPerPartition": "19"},
        {**a, **all_of_a, "minPartitions": "5", "maxRecordsPerPartition": "25"},
        {**a, "minPartitions": "3", "startingOffsets": from_middle},
        {**a, "includeHeaders": "true"},
        {**b, "includeHeaders": "true", "minPartitions": "3"},
        b,
        {**x, **committed},
        {**x, "kafka.isolation.level": "read_uncommitted"},
        {**x, **committed, "startingOffsets": t.offsets(t.x, 3), "endingOffsets": t.offsets(t.x, 9)},
        {**x, **committed, "minPartitions": "3"},
        {**a, "failOnDataLoss": "false", "groupIdPrefix": "mine"},
        {**a, "kafka.group.id": t.group, "kafkaConsumer.pollTimeoutMs": "60000", "fetchOffset.numRetries": "5"},
        {**a, "kafka.max.partition.fetch.bytes": "200", "kafka.check.crcs": "false", "kafka.client.id": "me"},
        {**a, "kafka.fetch.max.bytes": "1000", "kafka.fetch.min.bytes": "100", "kafka.fetch.max.wait.ms": "50"},
        {**a, "kafka.client.rack": "nowhere"},
        {
            **a,
            "endingOffsets": t.offsets(t.a, 60, 20),  # the log has 40
            "failOnDataLoss": "false",
            "kafkaConsumer.pollTimeoutMs": "2000",
        },
        {**a, "maxOffsetsPerTrigger": "5"},
    ]


async def write(servers: str, t: Topics) -> None:
    async with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        for topic, counts in ((t.a, (40, 20)), (t.b, (10, 0))):
            for partition, count in enumerate(counts):
                await producer.send_many(
                    topic,
                    [
                        NewRecord(
                            None if n % 7 == 3 else b"value %d" % n,
                            key=None if n % 3 else b"key %d" % n,
                            partition=partition,
                            timestamp_ms=T0 + 1000 * n,
                            headers=[("h", b"%d" % n), ("none", None)] if n % 2 else [],
                        )
                        for n in range(count)
                    ],
                )
    settings = {"bootstrap_servers": servers, "transactional_id": f"{t.x}-writer", "linger_ms": 0}
    async with Producer(**settings) as producer:
        for number in range(4):
            try:
                async with producer.transaction():
                    for n in range(3):
                        await producer.send(t.x, b"%d" % n, partition=0, timestamp_ms=T0 + n)
                    if number % 2:
                        raise _GivenUp
            except _GivenUp:
                pass


class _GivenUp(Exception):
    """Aborts a transaction."""


def filled(kafka: RealCluster) -> Topics:
    names = (kafka.new_topic("parity-a", 2), kafka.new_topic("parity-b", 2), kafka.new_topic("parity-x", 1))
    topics = Topics(*names, group=f"group-of-{kafka.version}")
    anyio.run(write, kafka.bootstrap, topics)
    return topics


Row = tuple[Any, ...]


def rows_in_spark(
    spark: SparkSession, servers: str, given: list[dict[str, str]], form: str = "kafka"
) -> dict[int, list[Row]]:
    """The rows of each case, in order; the last column is the task that read it."""

    def case(number: int, options: dict[str, str]) -> DataFrame:
        frame = spark.read.format(form).options(**{"kafka.bootstrap.servers": servers, **options}).load()
        if "headers" not in frame.columns:
            frame = frame.withColumn("headers", F.lit(None).cast("array<struct<key:string,value:binary>>"))
        return frame.select(F.lit(number).alias("case"), F.spark_partition_id().alias("task"), *COLUMNS)

    found: dict[int, list[Row]] = defaultdict(list)
    for row in reduce(DataFrame.unionAll, [case(*each) for each in enumerate(given)]).collect():
        headers = [(each.key, plain(each.value)) for each in row.headers] if row.headers else None
        milliseconds = round(row.timestamp.replace(tzinfo=timezone.utc).timestamp() * 1000)
        place = (row.topic, row.partition, row.offset)
        found[row.case].append(
            (place, plain(row.key), plain(row.value), milliseconds, row.timestampType, headers, row.task)
        )
    return {number: sorted(rows) for number, rows in found.items()}


def rows_of_ours(servers: str, options: dict[str, str]) -> list[Row]:
    """The same of one case, planned and read as Spark would, without its processes."""
    read_with = read_options({"kafka.bootstrap.servers": servers, **options}, streaming=False)
    reader = KafkaBatchReader(read_with, schema_of(None, include_headers=read_with.settings.include_headers))
    return sorted(
        (
            (row["topic"], row["partition"], row["offset"]),
            row["key"],
            row["value"],
            round(row["timestamp"].timestamp() * 1000),
            row["timestampType"],
            [(each["key"], each["value"]) for each in row["headers"]] if row.get("headers") else None,
            task,
        )
        for task, partition in enumerate(reader.partitions())
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    )


def plain(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def tasks_of(rows: list[Row]) -> list[list[Row]]:
    """Which rows were read by the same task."""
    tasks: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        tasks[row[-1]].append(row[0])
    return sorted(tasks.values())


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    with with_conf(spark, INTERPRETED):
        yield spark


@pytest.mark.parametrize("release", RELEASES)
def test_rows_are_those_of_sparks_own_connector(interpreted: SparkSession, clusters: Clusters, release: str) -> None:
    kafka = clusters.running(release)
    given = cases(filled(kafka))
    theirs = rows_in_spark(interpreted, kafka.bootstrap, [{**SOON, **options} for options in given])
    assert len(given) >= 30
    assert sum(map(len, theirs.values())) > 800
    for number, options in enumerate(given):
        expected, found = theirs.get(number, []), rows_of_ours(kafka.bootstrap, options)
        assert [row[:-1] for row in found] == [row[:-1] for row in expected], options
        if {"minPartitions", "maxRecordsPerPartition"} & options.keys():
            assert tasks_of(found) == tasks_of(expected), options


@pytest.mark.soak
@pytest.mark.parametrize("release", RELEASES)
def test_spark_passes_them_on(interpreted: SparkSession, clusters: Clusters, release: str) -> None:
    kafka = clusters.running(release)
    given = cases(filled(kafka))
    theirs, ours = (rows_in_spark(interpreted, kafka.bootstrap, given, form) for form in ("kafka", "pykafka08"))
    for number, options in enumerate(given):
        expected, found = theirs.get(number, []), ours.get(number, [])
        assert [row[:-1] for row in found] == [row[:-1] for row in expected], options
