"""``enqueue_columns``: columns of one partition, as they were given."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pyarrow as pa
import pytest

from pykafka08 import (
    ClosedError,
    Consumer,
    EmbeddedCluster,
    KafkaError,
    LocalProtocolError,
    Producer,
    RecordTooLargeError,
    RecordTypeError,
    TopicPartition,
    TransactionStateError,
)
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


@pytest.mark.parametrize("times", [[1.0], [True], ["1"], [None], [2**63], [-(2**63)], [2**70]])
async def test_times_that_no_record_has_are_refused(times: list[Any]) -> None:
    """Else the batch cannot be encoded, and with it the records of others."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            with pytest.raises((RecordTypeError, LocalProtocolError)):
                await producer.enqueue_columns("t", 0, [b"a", b"b"], timestamps_ms=[5, *times])
            sent = await producer.enqueue_columns("t", 0, [b"a", b"b"], timestamps_ms=[-1, 2**63 - 2])
            await producer.flush()
            assert [each.offset for each in sent] == [0, 1]


@pytest.mark.parametrize("each", [None, 5, (("a",),), (("a", "b"),), ((b"a", b"b"),), (("\udcff", b""),)])
async def test_headers_that_are_none_are_refused(each: Any) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            with pytest.raises((RecordTypeError, LocalProtocolError)):
                await producer.enqueue_columns("t", 0, [b"a", b"b"], headers=[(), each])
            pairs: Any = [["name", bytearray(b"a")]]
            sent = await producer.enqueue_columns("t", 0, [b"a", b"b"], headers=[pairs, ()])
            await producer.flush()
            assert [record.offset for record in sent] == [0, 1]


@pytest.mark.parametrize("is_idempotent", [False, True])
async def test_a_time_too_far_from_the_others_of_its_batch_fails_alone(is_idempotent: bool) -> None:
    """Each call may be right, and yet their records do not fit one batch."""
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        settings: dict[str, Any] = {"linger_ms": 60_000, "enable_idempotence": is_idempotent}
        async with Producer(cluster.bootstrap_servers, **settings) as producer:
            for done in (0, 3):
                before = await producer.enqueue_columns("t", 0, [b"a", b"b"], timestamps_ms=[-5, 6])
                far = await producer.enqueue_columns("t", 0, [b"far"], timestamps_ms=[2**63 - 1])
                after = producer.enqueue("t", b"c", partition=0)
                other = producer.enqueue("t", b"d", partition=1)
                await producer.flush()
                with pytest.raises(LocalProtocolError, match="63 bits apart"):
                    far[0]
                assert [each.offset for each in [*before, await after]] == list(range(done, done + 3))
                assert (await other).partition == 1


async def test_more_than_the_buffer_is_taken_bit_by_bit() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, buffer_memory=50_000, batch_size=8_000) as producer:
            sent = await producer.enqueue_columns("t", 0, [b"x" * 500] * 1000)
            await producer.flush()
            assert [each.offset for each in sent] == list(range(1000))


async def test_an_outcome_is_not_told_before_it_is_known() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, linger_ms=600_000) as producer:
            sent = await producer.enqueue_columns("t", 0, [b"a", b"b"])
            for ask in (lambda: sent[0], lambda: list(sent), sent.raise_first_error):
                with pytest.raises(KafkaError, match="under way"):
                    ask()
            await producer.flush()
            assert [each.offset for each in sent] == [0, 1]
            sent.raise_first_error()


async def test_columns_that_were_given_room_when_the_producer_is_closed_are_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            await producer.send("t", b"before")
            waited = producer._wait_for_room

            async def closed_in_between(size: int, topic: str | None) -> None:
                await waited(size, topic)
                await producer._close()

            producer._wait_for_room = closed_in_between  # type: ignore[method-assign]
            with pytest.raises(ClosedError):
                await producer.enqueue_columns("t", 0, [b"late"])
            assert producer.counters.in_buffer == 0
        assert [record.value for record in cluster.records("t", 0)] == [b"before"]


@pytest.mark.parametrize("size", [20_000, 100_000])
@pytest.mark.parametrize("is_columns", [True, False])
async def test_who_waits_for_room_in_a_transaction_gets_none_in_the_next(size: int, *, is_columns: bool) -> None:
    settings = {"transactional_id": "id", "buffer_memory": 200_000, "linger_ms": 0}
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, **settings) as producer, anyio.create_task_group() as tasks:
            refused: list[KafkaError] = []

            async def late() -> None:
                value = b"l" * size
                with pytest.raises(TransactionStateError) as raised:
                    await (
                        producer.enqueue_columns("t", 0, [value]) if is_columns else producer.send_many("t", [value])
                    )
                refused.append(raised.value)

            async with producer.transaction():
                await producer.send("t", b"first")
                cluster.faults.delay("Produce", 0.5, times=1)
                producer.enqueue("t", b"f" * 190_000)
                for _ in range(3):
                    tasks.start_soon(late)
                while len(producer._room._line) < 3:
                    await anyio.lowlevel.checkpoint()
            assert len(refused) == 3
            with anyio.fail_after(60):
                async with producer.transaction():
                    await producer.send("t", b"f" * 190_000)
            await producer.flush()
            assert producer.counters.in_buffer == 0
        lengths = [len(record.value or b"") for record in cluster.records("t", 0, committed=True)]
        assert lengths == [5, 190_000, 190_000]


async def test_a_partition_that_is_new_is_found() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, retry_backoff_ms=5, retry_backoff_max_ms=20) as producer:
            await producer.send("t", b"before")
            cluster.add_partitions("t", 2)
            sent = await producer.enqueue_columns("t", 1, [b"a"])
            await producer.flush()
            assert sent[0].offset == 0


async def test_rows_of_a_table_are_taken_for_one_partition_and_nobody_waits() -> None:
    table = pa.table({"value": [b"a", None, b"c"], "key": ["k", None, ""], "timestamp": [1_600_000_000_000, None, 7]})
    async with EmbeddedCluster(topics={"t": 3}) as cluster:
        async with Producer(cluster.bootstrap_servers, linger_ms=60_000) as producer:
            sent = await producer.enqueue_arrow("t", table, 2)
            others = await producer.enqueue_arrow("t", table.select(["value"]))
            assert not sent.is_done
            assert len(others) == 3
            await producer.flush()
            assert sent.is_done
            assert others.is_done
            assert {each.partition for each in sent} == {2}
            with pytest.raises(RecordTypeError, match="partition already"):
                await producer.enqueue_arrow("t", table.append_column("partition", pa.array([0, 0, 0])), 1)
        async with Consumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("t", 2)])
            records = (await read(consumer, 3))[:3]
    assert [(each.key, each.value) for each in records] == [(b"k", b"a"), (None, None), (b"", b"c")]
    assert records[0].timestamp_ms == 1_600_000_000_000
    assert records[2].timestamp_ms == 7
