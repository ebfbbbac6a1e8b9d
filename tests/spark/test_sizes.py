"""Small ranges of large records do not share a task; without Spark, on embedded brokers of all ages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pykafka08 import NewRecord, Producer
from pykafka08.error_codes import ErrorCode
from pykafka08.spark import sizes
from pykafka08.spark.batch_reader import KafkaBatchReader
from pykafka08.spark.columns import schema_of
from pykafka08.spark.options import read_options
from pykafka08.spark.ranges import Range
from pykafka08.spark.runtime import run
from pykafka08.spark.tasks import TaskPartition
from tests.spark.sinks import ThreadedCluster, embedded

RELEASES = ["0.8.2", "0.9.0", "0.10.0", "0.11.0", "2.8", "4.3"]


def fill(cluster: ThreadedCluster, topic: str, value: bytes, each: int, **settings: Any) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=cluster.servers, **settings) as producer:
            records = [NewRecord(value, partition=partition) for partition in range(4) for _ in range(each)]
            await producer.send_many(topic, records)

    run(send())


def tasks(cluster: ThreadedCluster, **given: str) -> list[list[Range]]:
    """What the driver plans of topics with large records and of ones with small records."""
    options = {"kafka.bootstrap.servers": cluster.servers, "subscribePattern": ".*", **given}
    reader = KafkaBatchReader(read_options(options, streaming=False), schema_of(None, include_headers=False))
    return [list(each.task.ranges) for each in reader.partitions() if isinstance(each, TaskPartition)]


@pytest.mark.parametrize("version", RELEASES)
def test_large_records_make_more_tasks(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(sizes, "SAMPLE_BYTES", 4096)  # less than one record
    with embedded(version=version, topics={"large": 4, "small": 4}) as cluster:
        fill(cluster, "large", bytes(900_000), 10)
        fill(cluster, "small", bytes(10), 100)
        planned = tasks(cluster)
        assert [[each.topic for each in task] for task in planned] == [["large"]] * 4 + [["small"] * 4]
        assert 10 < planned[-1][0].average_bytes < 120
        assert len(tasks(cluster, targetRecordsPerTask="100")) > 5


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "4.3"])
@pytest.mark.parametrize(("start", "sample"), [(2300, 1 << 20), (600, 100_000)])
def test_what_lies_before_a_range_and_what_is_cut_off_do_not_count(
    monkeypatch: pytest.MonkeyPatch, version: str, start: int, sample: int
) -> None:
    """A broker gives whole batches, and of the last as much as there is room for."""
    monkeypatch.setattr(sizes, "SAMPLE_BYTES", sample)
    with embedded(version=version, topics={"large": 4}) as cluster:
        fill(cluster, "large", bytes(100), 2500, batch_size=64_000)  # some 590 records each
        starts = json.dumps({"large": dict.fromkeys("0123", start)})
        planned = tasks(cluster, startingOffsets=starts)
        assert [len(each) for each in planned] == [4]
        assert all(100 < each.average_bytes < 140 for each in planned[0])


def test_without_an_answer_tasks_go_by_records() -> None:
    with embedded(topics={"large": 4}) as cluster:
        fill(cluster, "large", bytes(900_000), 10)
        cluster.faults.answer("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert [len(task) for task in tasks(cluster)] == [4]
