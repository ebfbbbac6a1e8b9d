"""About how many bytes a batch of a stream had; without Spark, on embedded brokers of all ages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pykafka08 import NewRecord, Producer
from pykafka08.records.record import TopicPartition
from pykafka08.spark.record_sizes import RENEWED_S, RecordSizes
from pykafka08.spark.runtime import run
from tests.spark.sinks import ThreadedCluster, embedded

SMALL, LARGE = TopicPartition("small", 0), TopicPartition("large", 0)


def fill(cluster: ThreadedCluster, tp: TopicPartition, value: bytes, count: int) -> None:
    async def send() -> None:
        async with Producer(bootstrap_servers=cluster.servers) as producer:
            await producer.send_many(tp.topic, [NewRecord(value, partition=tp.partition)] * count)

    run(send())


@contextmanager
def sizes_of(cluster: ThreadedCluster, now: list[float]) -> Iterator[RecordSizes]:
    options = {"Kafka.Bootstrap.Servers": cluster.servers, "kafka.default.api.timeout.ms": "1000"}
    sizes = RecordSizes(options, lambda: now[0])
    try:
        yield sizes
    finally:
        sizes.close()


def fetches(cluster: ThreadedCluster) -> int:
    return sum(each.api == "Fetch" for each in cluster.call("requests"))


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "2.8", "4.3"])
def test_each_topic_has_its_own_size(version: str) -> None:
    with embedded(version=version, topics={"small": 1, "large": 1}) as cluster, sizes_of(cluster, [0.0]) as sizes:
        fill(cluster, SMALL, bytes(10), 1000)
        fill(cluster, LARGE, bytes(5000), 300)
        starts, ends = {SMALL: 100, LARGE: 250}, {SMALL: 600, LARGE: 300}
        estimated = sizes.estimated_bytes(starts, ends, 550)
        assert estimated is not None
        assert 500 * 10 + 50 * 5000 < estimated < 500 * 60 + 50 * 5060
        assert sizes.estimated_bytes(ends, ends, 0) == 0
        # Where the first batch of a query began is not told: it is known by its rows.
        first = sizes.estimated_bytes({}, {LARGE: 300}, 10)
        assert first is not None
        assert 10 * 5000 < first < 10 * 5060


def test_a_topic_is_looked_up_once_in_a_while() -> None:
    now = [0.0]
    with embedded(topics={"small": 1, "large": 1}) as cluster, sizes_of(cluster, now) as sizes:
        fill(cluster, SMALL, bytes(10), 100)
        fill(cluster, LARGE, bytes(1000), 10)
        for end in range(1, 6):
            assert sizes.estimated_bytes({SMALL: 0}, {SMALL: end}, end)
        assert fetches(cluster) == 1
        assert sizes.estimated_bytes({LARGE: 0}, {LARGE: 1}, 1)
        assert fetches(cluster) == 2
        now[0] = RENEWED_S
        assert sizes.estimated_bytes({SMALL: 0}, {SMALL: 1}, 1)
        assert fetches(cluster) == 3


def test_many_topics() -> None:
    topics = [TopicPartition(f"topic{number}", 0) for number in range(10)]
    with embedded(topics={tp.topic: 1 for tp in topics}) as cluster, sizes_of(cluster, [0.0]) as sizes:
        for tp in topics:
            fill(cluster, tp, bytes(900_000), 3)  # a sample of each fills its share of a fetch
        estimated = sizes.estimated_bytes(dict.fromkeys(topics, 0), dict.fromkeys(topics, 2), 20)
        assert estimated is not None
        assert 20 * 900_000 < estimated < 20 * 900_200


def test_what_nobody_knows_is_none() -> None:
    with embedded(topics={"small": 1, "large": 1}) as cluster, sizes_of(cluster, [0.0]) as sizes:
        fill(cluster, SMALL, bytes(10), 100)
        assert sizes.estimated_bytes({SMALL: 0, LARGE: 0}, {SMALL: 5, LARGE: 5}, 10) is None
        assert sizes.estimated_bytes({SMALL: 0}, {SMALL: 5}, 5)


def test_without_brokers_a_batch_is_told_without_bytes() -> None:
    sizes = RecordSizes({"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "300"})
    assert sizes.estimated_bytes({SMALL: 0}, {SMALL: 5}, 5) is None
    sizes.close()
