"""The consumer against embedded brokers: what an application does with it when nothing goes wrong."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from unittest.mock import AsyncMock

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import (
    ClosedError,
    ConfigError,
    Consumer,
    EmbeddedCluster,
    NewRecord,
    NoBrokersError,
    NoOffsetError,
    Producer,
    RequestTimeoutError,
    TopicPartition,
    UnknownTopicError,
)
from pykafka08.consumer.offsets import OffsetAndTimestamp
from tests.consumer.embedded import fill, log_of, numbers, read, read_values, store, values
from tests.consumer.world import batch_bytes, marker_bytes

pytestmark = pytest.mark.anyio

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def consumer_of(cluster: EmbeddedCluster, *topics: str, **settings: object) -> Consumer:
    return Consumer(
        *topics, bootstrap_servers=cluster.bootstrap_servers, **{"auto_offset_reset": "earliest", **settings}
    )


async def test_records_of_all_partitions() -> None:
    async with EmbeddedCluster(brokers=3, topics={"t": 3, "u": 2}) as cluster:
        for number in range(3):
            await fill(cluster, "t", values(0, 100), partition=number)
        await fill(cluster, "u", values(0, 50), partition=1)
        async with consumer_of(cluster, "t", "u") as consumer:
            records = await read(consumer, 350)
            assert consumer.assignment() == (T0, T1, T2, TopicPartition("u", 0), TopicPartition("u", 1))
        by_partition: dict[tuple[str, int], list[int]] = {}
        for record in records:
            assert record.offset == int(record.value or b"")
            by_partition.setdefault((record.topic, record.partition), []).append(record.offset)
        assert by_partition == {
            **{tp: list(range(100)) for tp in (T0, T1, T2)},
            ("u", 1): list(range(50)),
        }


async def test_a_record_has_all_that_was_sent() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            headers = (("h", b"1"), ("h", None))
            await producer.send("t", b"v", key=b"k", headers=headers, timestamp_ms=1_500_000_000_000)
            await producer.send("t", None, key=b"k")
        async with consumer_of(cluster, "t") as consumer:
            first, second = await read(consumer, 2)
        assert (first.topic, first.partition, first.offset, first.key, first.value) == ("t", 0, 0, b"k", b"v")
        assert (first.headers, first.timestamp_ms) == (headers, 1_500_000_000_000)
        assert (second.key, second.value, second.headers) == (b"k", None, ())


async def test_batches_hold_records_values_and_places() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 600))
        await fill(cluster, "t", values(600, 700))
        async with consumer_of(cluster, "t") as consumer:
            seen: list[int] = []
            with anyio.fail_after(30):
                async for batch in consumer.batches():
                    assert (batch.topic, batch.partition, batch.base_offset) == ("t", 0, len(seen))
                    assert batch.next_offset == len(seen) + len(batch)
                    assert await consumer.position(T0) == batch.next_offset
                    assert [record.value for record in batch] == batch.values()
                    seen += numbers(batch.values())
                    if len(seen) == 700:
                        break
            assert seen == list(range(700))


async def test_getone_waits_no_longer_than_its_timeout() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 2))
        async with consumer_of(cluster, "t") as consumer:
            assert (await consumer.getone(timeout=30)).value == b"0"
            assert (await consumer.getone()).value == b"1"
            with pytest.raises(RequestTimeoutError, match="no record"):
                await consumer.getone(timeout=0.05)
            with pytest.raises(TimeoutError):
                await consumer.getone(timeout=0)
            await fill(cluster, "t", values(2, 3))
            assert (await consumer.getone(timeout=30)).value == b"2"


async def test_a_seek_by_another_task_while_records_are_loaded() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 2000))
        async with consumer_of(cluster, "t", max_partition_fetch_bytes=1000) as consumer:
            sought: list[int] = []
            seen: list[int] = []

            async def seek() -> None:
                for offset in (1500, 300, 1000, 5, 1800):
                    await anyio.lowlevel.checkpoint()
                    await consumer.seek(T0, offset)
                    sought.append(offset)

            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(seek)
                    while not seen or seen[-1] != 1999 or len(sought) < 5:
                        seen.append((await consumer.getone()).offset)
            jumps = [after for before, after in pairwise(seen) if after != before + 1]
            assert set(jumps) <= set(sought)
            assert seen[-200:] == list(range(1800, 2000))


async def test_getmany_gives_what_is_there() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1000))
        async with consumer_of(cluster, "t") as consumer:
            assert numbers([record.value for record in await consumer.getmany(max_records=10)]) == list(range(10))
            assert await consumer.position(T0) == 10
            taken = 10
            while taken < 1000:
                records = await consumer.getmany(max_records=300, timeout=30)
                assert [record.offset for record in records] == list(range(taken, taken + len(records)))
                taken += len(records)
            assert await consumer.getmany(timeout=0.05) == []
            with pytest.raises(ConfigError, match="max_records"):
                await consumer.getmany(max_records=0)


async def test_a_loop_that_was_left_goes_on_where_it_was() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1000))
        async with consumer_of(cluster, "t") as consumer:
            assert numbers(await read_values(consumer, 300)) == list(range(300))
            assert await consumer.position(T0) == 300
            assert (await consumer.getone()).offset == 300
            assert [record.offset for record in await consumer.getmany(max_records=9)] == list(range(301, 310))
            # Batches take over in the midst of a batch, and records after them.
            batch = await anext(consumer.batches())
            assert next(iter(batch)).offset == 310
            await consumer.seek(T0, 400)
            assert numbers(await read_values(consumer, 600)) == list(range(400, 1000))


async def test_latest_reads_what_is_produced_after_entering() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 10))
        async with consumer_of(cluster, "t", auto_offset_reset="latest") as consumer:
            await fill(cluster, "t", values(10, 12))
            assert numbers(await read_values(consumer, 2)) == [10, 11]


async def test_reading_waits_for_records() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster, consumer_of(cluster, "t") as consumer:
        async with anyio.create_task_group() as group:

            async def produce() -> None:
                for number in range(20):
                    await fill(cluster, "t", [b"%d" % number], partition=number % 2)

            group.start_soon(produce)
            assert sorted(numbers(await read_values(consumer, 20))) == list(range(20))


async def test_assigned_partitions_only() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 3}) as cluster:
        for number in range(3):
            await fill(cluster, "t", values(0, 5), partition=number)
        async with consumer_of(cluster) as consumer:
            assert consumer.assignment() == ()
            consumer.assign([T2, T0])
            assert consumer.assignment() == (T0, T2)
            assert {record.partition for record in await read(consumer, 10)} == {0, 2}
            consumer.assign([T0, T1])
            assert [record.partition for record in await read(consumer, 5)] == [1] * 5
            assert await consumer.position(T0) == 5
            with pytest.raises(ConfigError, match="not assigned") as caught:
                await consumer.position(T2)
            assert (caught.value.topic, caught.value.partition) == T2


async def test_assign_before_entering() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 3), partition=1)
        consumer = consumer_of(cluster)
        consumer.assign([T1])
        async with consumer:
            assert numbers(await read_values(consumer, 3)) == [0, 1, 2]


async def test_topics_that_are_assigned_away_leave_the_metadata() -> None:
    async with EmbeddedCluster(topics={"t": 1, "u": 1, "v": 1}) as cluster, consumer_of(cluster) as consumer:
        u = TopicPartition("u", 0)
        consumer.assign([T0, u])
        await consumer.position(T0)
        consumer.assign([u, TopicPartition("v", 0)])
        client = consumer._client
        assert client is not None
        assert set((await client.refresh(timeout=20)).topics) == {"u", "v"}


async def test_assigning_away_what_is_being_read() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 400))
        await fill(cluster, "t", values(0, 3), partition=1)
        async with consumer_of(cluster) as consumer:
            consumer.assign([T0])
            seen = []
            with anyio.fail_after(30):
                async for record in consumer:
                    seen.append((record.partition, record.offset))
                    if seen[-1] == (0, 5):
                        consumer.assign([T1])
                    if seen[-1] == (1, 2):
                        break
            assert seen == [*((0, offset) for offset in range(6)), (1, 0), (1, 1), (1, 2)]


async def test_seek_in_the_midst_of_reading() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1000))
        async with consumer_of(cluster, "t") as consumer:
            seen = []
            with anyio.fail_after(30):
                async for record in consumer:
                    seen.append(record.offset)
                    if len(seen) == 10:
                        await consumer.seek(T0, 900)
                        assert await consumer.position(T0) == 900
                    if record.offset == 999:
                        break
            assert seen == [*range(10), *range(900, 1000)]
            for offset in (-1, True, "5"):
                with pytest.raises(ConfigError):
                    await consumer.seek(T0, offset)  # type: ignore[arg-type]


async def test_seek_to_the_ends() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 10))
        await fill(cluster, "t", values(0, 20), partition=1)
        cluster.delete_records("t", 0, 4)
        async with consumer_of(cluster, "t") as consumer:
            await consumer.seek_to_end()
            assert [await consumer.position(tp) for tp in (T0, T1)] == [10, 20]
            await consumer.seek_to_beginning(T0)
            assert [await consumer.position(tp) for tp in (T0, T1)] == [4, 20]
            assert numbers(await read_values(consumer, 6)) == list(range(4, 10))
            assert await consumer.lag(T0) == 0
            await consumer.seek(T0, 7)
            assert await consumer.lag(T0) == 3
            assert await consumer.beginning_offsets([T0, T1]) == {T0: 4, T1: 0}
            assert await consumer.end_offsets([T1]) == {T1: 20}


async def test_pause_and_resume() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 500))
        await fill(cluster, "t", values(0, 500), partition=1)
        async with consumer_of(cluster, "t") as consumer:
            first = await read(consumer, 3)
            assert {record.partition for record in first} == {0}
            consumer.pause(T0)
            assert consumer.paused() == (T0,)
            assert await consumer.position(T0) == 3
            assert [record.offset for record in await read(consumer, 500)] == list(range(500))
            with pytest.raises(TimeoutError):
                await consumer.getone(timeout=0.05)
            consumer.resume(T0)
            records = await read(consumer, 497)
            assert [(record.partition, record.offset) for record in records] == [(0, n) for n in range(3, 500)]
            with pytest.raises(ConfigError, match="not assigned"):
                consumer.pause(T2)


async def test_partitions_added_later_are_read_from_their_beginning() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with consumer_of(cluster, "t", auto_offset_reset="latest", metadata_max_age_ms=50) as consumer:
            topic = cluster._state.topics.find("t")
            assert topic is not None
            cluster._state.topics.grow(topic, 2, 1)
            await fill(cluster, "t", values(0, 3), partition=1)
            assert numbers(await read_values(consumer, 3)) == [0, 1, 2]
            assert consumer.assignment() == (T0, T1)


async def test_offsets_for_times() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            records = [NewRecord(b"v", timestamp_ms=1000 * number, partition=0) for number in range(1, 6)]
            await producer.send_many("t", records)
        async with consumer_of(cluster, "t") as consumer:
            found = await consumer.offsets_for_times({T0: 2500, T1: 0})
            assert found == {T0: OffsetAndTimestamp(2, 3000), T1: None}
            assert await consumer.offsets_for_times({T0: 5001}) == {T0: None}
            with pytest.raises(ConfigError, match="since 1970"):
                await consumer.offsets_for_times({T0: -5})


async def test_times_of_a_broker_that_knows_segments_only() -> None:
    async with EmbeddedCluster(version="0.8.2", topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 3))
        async with consumer_of(cluster, "t") as consumer:
            # The segment is younger than that: its first offset is the last one that skips nothing.
            assert await consumer.offsets_for_times({T0: 1000}) == {T0: OffsetAndTimestamp(0, -1)}


async def test_unknown_topics_and_partitions() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        with pytest.raises(UnknownTopicError) as caught:
            async with consumer_of(cluster, "nowhere", default_api_timeout_ms=3000):
                pass
        assert caught.value.topic == "nowhere"
        async with consumer_of(cluster) as consumer:
            assert await consumer.partitions_for_topic("t") == (0,)
            with pytest.raises(UnknownTopicError):
                await consumer.partitions_for_topic("nowhere", timeout=3)
            with pytest.raises(UnknownTopicError) as caught:
                await consumer.end_offsets([TopicPartition("t", 9)], timeout=3)
            assert (caught.value.topic, caught.value.partition) == ("t", 9)


async def test_an_assigned_partition_that_does_not_exist_is_told_of() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with consumer_of(cluster, default_api_timeout_ms=3000) as consumer:
            consumer.assign([TopicPartition("t", 7)])
            with pytest.raises(UnknownTopicError) as caught:
                await consumer.getone(timeout=20)
            assert (caught.value.topic, caught.value.partition) == ("t", 7)


async def test_no_record_in_time_says_what_stands_in_the_way() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        consumer.assign([TopicPartition("t", 7)])
        with pytest.raises(RequestTimeoutError, match=r"no record came .*; last: .*partition 7") as caught:
            await consumer.getone(timeout=2)
        assert isinstance(caught.value.__cause__, UnknownTopicError)


async def test_no_position_and_no_policy() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 10))
        cluster.delete_records("t", 0, 3)
        async with consumer_of(cluster, "t", auto_offset_reset="none") as consumer:
            for call in (consumer.getone(timeout=20), consumer.position(T0, timeout=20)):
                with pytest.raises(NoOffsetError) as caught:
                    await call
                error = caught.value
                assert (error.topic, error.partition, error.earliest, error.latest) == ("t", 0, 3, 10)
            await consumer.seek(T0, error.earliest)
            assert numbers(await read_values(consumer, 7)) == list(range(3, 10))


async def test_compacted_gaps_and_hidden_batches() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        store(cluster, "t", batch_bytes(0, [1, 4], last=9), 9)
        store(cluster, "t", marker_bytes(10, 5, is_commit=True), 10)
        store(cluster, "t", batch_bytes(11, [13], last=15), 15)
        store(cluster, "t", marker_bytes(16, 5, is_commit=False), 16)
        async with consumer_of(cluster, "t") as consumer:
            assert [record.offset for record in await read(consumer, 3)] == [1, 4, 13]
            assert await consumer.position(T0) == 17
            assert await consumer.lag(T0) == 0


async def test_fair_between_partitions() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        for number in range(2):
            for first in range(0, 100, 10):
                await fill(cluster, "t", values(first, first + 10), partition=number)
        async with consumer_of(cluster, "t", max_partition_fetch_bytes=500) as consumer:
            order = [record.partition for record in await read(consumer, 200)]
            assert set(order[:60]) == {0, 1}, "a turn is what one fetch brought"


async def test_a_small_buffer_bounds_what_is_asked() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 8}) as cluster:
        for number in range(8):
            for _ in range(8):
                await fill(cluster, "t", [b"x" * 1000] * 10, partition=number)
        async with consumer_of(cluster, "t", fetch_buffer_bytes=40_000, max_partition_fetch_bytes=12_000) as consumer:
            await read(consumer, 1)
            most = 0
            for _ in range(639):
                states = consumer._machine.assignment.states.values()
                most = max(most, sum(state.buffered_bytes for state in states))
                await consumer.getone(timeout=30)
            # A broker's share may be passed by one batch, which always comes whole.
            assert most <= 40_000 + 2 * 12_000
        assert len(cluster.requests) > 60


async def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="group_id"):
        Consumer("t", bootstrap_servers="localhost", group_id="")
    with pytest.raises(ConfigError, match="unknown setting nonsense"):
        Consumer("t", bootstrap_servers="localhost", nonsense=1)
    with pytest.raises(ConfigError, match="auto_offset_reset"):
        Consumer("t", bootstrap_servers="localhost", auto_offset_reset="first")
    with pytest.raises(ConfigError, match="a topic is a string"):
        Consumer(["t"], bootstrap_servers="localhost")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="leave the topics out"):
        Consumer("t", bootstrap_servers="localhost").assign([T0])
    consumer = Consumer(bootstrap_servers="localhost")
    for wrong in ("t", "ab", ("t", -1), ("t", "0"), ("t", 2**31), (1, 1), 5):
        with pytest.raises(ConfigError, match="TopicPartition"):
            consumer.assign([wrong])  # type: ignore[list-item]
    for name in ("", "..", "no blanks", "\ud800", "x" * 40_000, b"t", None):
        with pytest.raises(ConfigError, match="topic"):
            Consumer(name, bootstrap_servers="localhost")  # type: ignore[arg-type]
    for pattern in (b"t", re.compile(b"t"), "(", 5):
        with pytest.raises(ConfigError, match="pattern="):
            Consumer(pattern=pattern, bootstrap_servers="localhost")  # type: ignore[arg-type]
    for listener in (5, PlainListener(), PlainListener):
        with pytest.raises(ConfigError, match="listener="):
            Consumer("t", bootstrap_servers="localhost", group_id="g", listener=listener)  # type: ignore[arg-type]


class PlainListener:
    """Its methods could not be awaited."""

    def partitions_assigned(self, added: object) -> None: ...
    def partitions_revoked(self, partitions: object) -> None: ...
    def partitions_lost(self, partitions: object) -> None: ...


WRONG_CALLS: list[Callable[[Consumer], Awaitable[object]]] = [
    lambda consumer: consumer.partitions_for_topic(None),  # type: ignore[arg-type]
    lambda consumer: consumer.partitions_for_topic(b"t"),  # type: ignore[arg-type]
    lambda consumer: consumer.partitions_for_topic("x" * 40_000),
    lambda consumer: consumer.partitions_for_topic("\ud800"),
    lambda consumer: consumer.partitions_for_topic("t", timeout=float("nan")),
    lambda consumer: consumer.end_offsets([TopicPartition("\ud800", 0)]),
    lambda consumer: consumer.beginning_offsets([TopicPartition("x" * 40_000, 0)]),
    lambda consumer: consumer.beginning_offsets([T0], timeout="1"),  # type: ignore[arg-type]
    lambda consumer: consumer.offsets_for_times([T0]),  # type: ignore[arg-type]
    lambda consumer: consumer.offsets_for_times({T0: 2**63}),
    lambda consumer: consumer.seek(T0, 2**63),
    lambda consumer: consumer.seek("t", 1),  # type: ignore[arg-type]
    lambda consumer: consumer.seek_to_beginning([T0]),  # type: ignore[arg-type]
    lambda consumer: consumer.seek_to_end("t"),  # type: ignore[arg-type]
    lambda consumer: consumer.position("t"),  # type: ignore[arg-type]
    lambda consumer: consumer.lag(5),  # type: ignore[arg-type]
    lambda consumer: consumer.getone(timeout=float("nan")),
    lambda consumer: consumer.getmany(max_records=2.5),  # type: ignore[arg-type]
    lambda consumer: consumer.getmany(max_records=0),
]


async def test_wrong_arguments_are_refused_and_the_consumer_goes_on() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 1))
        async with consumer_of(cluster, "t", default_api_timeout_ms=20_000) as consumer:
            for call in WRONG_CALLS:
                with pytest.raises(ConfigError):
                    await call(consumer)
            for at_once in (consumer.pause, consumer.resume):
                for wrong in ("t", [T0], None):
                    with pytest.raises(ConfigError, match="TopicPartition"):
                        at_once(wrong)  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match="neither a record, nor a batch"):
                consumer.acknowledge(None)  # type: ignore[arg-type]
            assert await consumer.partitions_for_topic("t") == (0,)
            assert await read_values(consumer, 1) == [b"0"]


async def test_with_nothing_to_read_reading_says_so() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        await fill(cluster, "t", values(0, 1))
        batches = consumer.batches()
        ways: list[Callable[[], Awaitable[object]]] = [
            consumer.getone,
            lambda: consumer.getmany(timeout=0),
            lambda: anext(aiter(consumer)),
            lambda: anext(batches),
            lambda: consumer.process(AsyncMock()),
        ]
        for _ in range(2):
            for way in ways:
                with anyio.fail_after(20), pytest.raises(ConfigError, match=r"nothing to read: .*assign\(\)"):
                    await way()
            consumer.assign([TopicPartition("t", 0)])
            await consumer.seek_to_beginning()
            assert (await consumer.getone(timeout=30)).offset == 0
            consumer.assign([])


async def test_a_consumer_is_used_inside_its_block() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        consumer = consumer_of(cluster, "t")
        with pytest.raises(ClosedError, match="async with"):
            await consumer.getone()
        async with consumer:
            with pytest.raises(ClosedError, match="cannot be reused"):
                await consumer.__aenter__()
            records, batches = aiter(consumer), consumer.batches()
        with pytest.raises(ClosedError, match="closed"):
            await consumer.getone()
        for begin in (lambda: aiter(consumer), consumer.batches, consumer.arrow):
            with pytest.raises(ClosedError, match="closed"):
                begin()
        for stream in (records, batches):
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        with pytest.raises(ClosedError, match="closed"):
            aiter(batches)
        with pytest.raises(ClosedError):
            await consumer.seek(T0, 1)
        with pytest.raises(ClosedError, match="cannot be reused"):
            await consumer.__aenter__()


async def test_no_broker_at_the_address() -> None:
    async with EmbeddedCluster() as cluster:
        address = cluster.bootstrap_servers
    with pytest.raises(NoBrokersError) as caught:
        async with Consumer("t", bootstrap_servers=address):
            pass
    assert list(caught.value.causes) == [address]


@pytest.mark.parametrize("way", ["loop", "batches", "getone"])
async def test_closing_ends_the_reading_of_other_tasks(way: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ended = anyio.Event()
        async with consumer_of(cluster, "t") as consumer, anyio.create_task_group() as group:

            async def read_all() -> None:
                if way == "loop":
                    async for _ in consumer:
                        pass
                elif way == "batches":
                    async for _ in consumer.batches():
                        pass
                else:
                    with pytest.raises(ClosedError):
                        await consumer.getone()
                ended.set()

            group.start_soon(read_all)
            await anyio.wait_all_tasks_blocked()
            assert not ended.is_set()
            await consumer.aclose()
            with anyio.fail_after(20):
                await ended.wait()


async def test_closing_by_another_task_ends_the_reading() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group, consumer_of(cluster, "t") as consumer:
                group.start_soon(consumer.aclose)
                assert [record async for record in consumer] == []


async def test_leaving_during_a_long_poll_does_not_wait_for_it() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        with anyio.fail_after(20):
            async with consumer_of(cluster, "t", fetch_max_wait_ms=60_000) as consumer:
                while "Fetch" not in [request.api for request in cluster.requests]:
                    with pytest.raises(TimeoutError):
                        await consumer.getone(timeout=0.05)
        assert [request.api for request in cluster.requests].count("Fetch") == 1
        assert log_of(cluster, "t").end_offset == 0
