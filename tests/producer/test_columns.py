"""``enqueue_columns``: columns of one partition, as they were given."""

from __future__ import annotations

import pytest

from pykafka08 import Consumer, EmbeddedCluster, Producer, RecordTooLargeError, RecordTypeError, TopicPartition
from pykafka08.errors import BrokerError
from tests.consumer.embedded import read

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0", "4.3"])
async def test_columns_arrive_in_order_with_keys_and_times(version: str) -> None:
    count = 3000
    values = [None if number % 7 == 0 else b"v%d" % number for number in range(count)]
    keys = [b"k%d" % number if number % 3 else None for number in range(count)]
    times = [-1 if number % 5 == 0 else 1_500_000_000_000 + number for number in range(count)]
    async with EmbeddedCluster(version=version, topics={"t": 2}) as cluster:
        servers = cluster.bootstrap_servers
        async with Producer(servers, batch_size=10_000) as producer:
            first = await producer.enqueue_columns("t", 1, [b"alone"], timestamps_ms=[5])
            sent = await producer.enqueue_columns("t", 1, values, keys, None, times)
            await producer.flush()
            assert first[0].offset == 0
            assert [each.offset for each in sent] == list(range(1, count + 1))
            assert producer.counters.enqueued == producer.counters.acknowledged == count + 1
        async with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("t", 1)])
            records = (await read(consumer, count + 1))[1:]
    assert [record.value for record in records] == values
    assert [record.key for record in records] == keys
    if version != "0.8.2":
        assert [record.timestamp_ms for record in records] == times


async def test_headers_go_along() -> None:
    headers = [(("name", b"%d" % number),) if number % 2 else () for number in range(10)]
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            await producer.enqueue_columns("t", 0, [b"before"])
            await producer.enqueue_columns("t", 0, [b"v"] * 10, None, headers)
        async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            assert [record.headers for record in await read(consumer, 11)] == [(), *headers]


async def test_what_cannot_be_taken_is_refused_whole() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            with pytest.raises(RecordTypeError):
                await producer.enqueue_columns("t", 0, [b"a", "b"])  # type: ignore[list-item]
            with pytest.raises(RecordTypeError):
                await producer.enqueue_columns("t", 0, [b"a", b"b"], [b"k"])
            with pytest.raises(RecordTooLargeError):
                await producer.enqueue_columns("t", 0, [b"a" * 2_000_000])
            with pytest.raises(BrokerError, match="no partition 3"):
                await producer.enqueue_columns("t", 3, [b"a"])
            assert producer.counters.enqueued == 0


async def test_more_than_the_buffer_is_taken_bit_by_bit() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, buffer_memory=50_000, batch_size=8_000) as producer:
            sent = await producer.enqueue_columns("t", 0, [b"x" * 500] * 1000)
            await producer.flush()
            assert [each.offset for each in sent] == list(range(1000))
