"""The consumer against embedded brokers that fail: nothing skipped, nothing twice, errors at their place."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import (
    BrokerError,
    Codec,
    Consumer,
    CorruptRecordError,
    EmbeddedCluster,
    ErrorCode,
    NoOffsetError,
    RequestTimeoutError,
    TopicPartition,
    UnknownTopicError,
)
from pykafka08.errors import AuthorizationError, ClientFailedError, RecordTooLargeError
from pykafka08.records.batch import patch_crc
from pykafka08.records.rewrite import assign_offsets
from pykafka08.records.writer import encode_batch
from tests.consumer.embedded import fill, numbers, read, read_values, store, values
from tests.consumer.world import batch_bytes

pytestmark = pytest.mark.anyio

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)

SMALL = {
    "max_partition_fetch_bytes": 300,
    "fetch_max_wait_ms": 50,
    "retry_backoff_ms": 10,
    "reconnect_backoff_ms": 5,
}
"""Many fetches, so that much can happen between them."""


def consumer_of(cluster: EmbeddedCluster, *topics: str, **settings: object) -> Consumer:
    return Consumer(
        *topics, bootstrap_servers=cluster.bootstrap_servers, **{"auto_offset_reset": "earliest", **settings}
    )


def fill_with_tens(cluster: EmbeddedCluster, topic: str, count: int, *, partition: int = 0) -> None:
    """Batches of ten, so that a small fetch brings few of them."""
    for first in range(0, count, 10):
        store(cluster, topic, batch_bytes(first, range(first, first + 10)), first + 9, partition=partition)


async def test_leaders_that_move_while_reading() -> None:
    async with EmbeddedCluster(brokers=3, topics={"t": 2}) as cluster:
        fill_with_tens(cluster, "t", 300)
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            seen = []
            for move in range(30):
                seen += numbers(await read_values(consumer, 10))
                cluster.move_leader("t", 0, move % 3)
            assert seen == list(range(300))


async def test_a_new_leader_is_told_with_the_error_and_asked_though_metadata_fails() -> None:
    async with (
        EmbeddedCluster(brokers=3, topics={"t": 1}) as cluster,
        consumer_of(cluster, "t", **SMALL) as consumer,
    ):
        seen: list[int] = []
        for turn in range(9):
            if turn == 3:  # connections to all brokers are there
                cluster.faults.close_before("Metadata", times=None)
            end = cluster.log_end_offset("t", 0)
            store(cluster, "t", batch_bytes(end, range(end, end + 10)), end + 9)
            seen += numbers(await read_values(consumer, 10))
            cluster.move_leader("t", 0, (cluster.leader("t", 0) + 1) % 3)
        assert seen == list(range(90))


async def test_a_leader_that_moves_during_a_long_poll() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        async with consumer_of(cluster, "t", fetch_max_wait_ms=20_000) as consumer:
            with pytest.raises(TimeoutError):
                await consumer.getone(timeout=0.05)
            cluster.move_leader("t", 0, 1 - cluster.leader("t", 0))
            await fill(cluster, "t", values(0, 5))
            assert numbers(await read_values(consumer, 5)) == list(range(5))


async def test_a_broker_that_stops_and_one_that_comes_back() -> None:
    async with EmbeddedCluster(brokers=3, topics={"t": 3}) as cluster:
        for partition in range(3):
            fill_with_tens(cluster, "t", 100, partition=partition)
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
            for turn in range(10):
                for record in await read(consumer, 30):
                    seen[record.partition].append(record.offset)
                if turn in (2, 6):
                    await cluster.stop_broker(turn // 3)
                if turn in (4, 8):
                    await cluster.start_broker(turn // 3 - 1 if turn == 4 else 2)
            assert seen == {partition: list(range(100)) for partition in range(3)}


async def test_all_brokers_down_and_up_again() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 3))
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            assert numbers(await read_values(consumer, 3)) == [0, 1, 2]
            for node in range(2):
                await cluster.stop_broker(node)
            with pytest.raises(TimeoutError):
                await consumer.getone(timeout=0.3)
            with pytest.raises(TimeoutError):
                await consumer.end_offsets([T0], timeout=0.3)
            for node in range(2):
                await cluster.start_broker(node)
            await fill(cluster, "t", values(3, 5))
            assert numbers(await read_values(consumer, 2)) == [3, 4]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
    ids=lambda code: code.name,
)
async def test_codes_that_pass(code: ErrorCode) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        fill_with_tens(cluster, "t", 40)
        cluster.faults.answer("Fetch", code, times=2)
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            assert numbers(await read_values(consumer, 20)) == list(range(20))
            cluster.faults.answer("Fetch", code, times=2)
            assert numbers(await read_values(consumer, 20)) == list(range(20, 40))


@pytest.mark.parametrize("fault", ["close_before", "close_after", "drop_answer", "delay"])
async def test_connections_that_fail(fault: str) -> None:
    # Only what is dropped has to time out, and to connect on a busy machine takes its time.
    settings = {"request_timeout_ms": 4000} if fault == "drop_answer" else {}
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        fill_with_tens(cluster, "t", 40)
        async with consumer_of(cluster, "t", **SMALL, **settings) as consumer:
            for first in (0, 20):
                options = {"seconds": 0.1} if fault == "delay" else {}
                getattr(cluster.faults, fault)("Fetch", **options)
                getattr(cluster.faults, fault)("ListOffsets", **options)
                assert numbers(await read_values(consumer, 20)) == list(range(first, first + 20))
                assert await consumer.end_offsets([T0], timeout=20) == {T0: 40}


async def test_a_code_of_the_whole_answer() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        cluster.faults.answer("Fetch", ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            assert numbers(await read_values(consumer, 5)) == list(range(5))


async def test_a_refused_partition_is_raised_once_and_the_other_goes_on() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 5), partition=1)
        await fill(cluster, "t", values(0, 5), partition=0)
        cluster.faults.answer("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED, times=None, partition=0)
        async with consumer_of(cluster, "t", **SMALL, retry_backoff_max_ms=20) as consumer:
            seen, errors = [], []
            with anyio.fail_after(30):
                while len(seen) < 5 or not errors:
                    try:
                        record = await consumer.getone()
                        seen.append((record.partition, record.offset))
                    except AuthorizationError as error:
                        errors.append((error.topic, error.partition, error.api, error.broker))
            assert seen == [(1, offset) for offset in range(5)]
            assert errors == [("t", 0, "Fetch", f"{cluster.bootstrap_servers} (id 0)")]
            assert await consumer.getmany(timeout=0.2) == []  # refused again, and not told again
            cluster.faults.clear()
            while len(seen) < 10:
                seen.append((0, (await consumer.getone(timeout=30)).offset))
            assert seen[5:] == [(0, offset) for offset in range(5)]


@pytest.mark.parametrize("is_sought", [False, True])
async def test_getmany_keeps_an_error_for_the_next_call(is_sought: bool) -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", values(0, 5))
        cluster.faults.answer("Fetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=1)
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            records = await consumer.getmany(timeout=30)
            assert [record.offset for record in records] == list(range(5))
            if is_sought:
                # Who seeks has done with what was before.
                await consumer.seek(T1, 0)
                assert await consumer.getmany(timeout=0.05) == []
            else:
                with pytest.raises(AuthorizationError) as caught:
                    await consumer.getmany(timeout=30)
                assert caught.value.partition == 1


# Retention


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
async def test_records_that_retention_deletes_before_they_are_read(policy: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        fill_with_tens(cluster, "t", 100)
        async with consumer_of(cluster, auto_offset_reset=policy, **SMALL) as consumer:
            consumer.assign([T0])
            await consumer.seek(T0, 0)
            first = await read(consumer, 10)
            assert [record.offset for record in first] == list(range(10))
            cluster.delete_records("t", 0, 80)
            await consumer.seek(T0, 20)  # what is buffered would still come
            if policy == "earliest":
                assert [record.offset for record in await read(consumer, 20)] == list(range(80, 100))
            elif policy == "latest":
                with anyio.fail_after(20):
                    while await consumer.position(T0) != 100:
                        assert await consumer.getmany(timeout=0.05) == []
                await fill(cluster, "t", values(100, 101))
                assert numbers(await read_values(consumer, 1)) == [100]
            else:
                with pytest.raises(NoOffsetError) as caught:
                    await consumer.getone(timeout=20)
                error = caught.value
                assert (error.topic, error.partition, error.offset, error.earliest, error.latest) == (
                    "t",
                    0,
                    20,
                    80,
                    100,
                )
                await consumer.seek(T0, error.latest - 1)
                assert (await consumer.getone(timeout=20)).offset == 99


async def test_a_position_beyond_the_end() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        async with consumer_of(cluster, "t") as consumer:
            await consumer.seek(T0, 1000)
            assert numbers(await read_values(consumer, 5)) == list(range(5))


async def test_a_topic_deleted_and_made_again() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "t", auto_offset_reset="latest", **SMALL) as consumer:
            assert await consumer.position(T0) == 50
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            await fill(cluster, "t", values(0, 3))
            assert numbers(await read_values(consumer, 3)) == [0, 1, 2]


# Damage


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def damaged_inside(data: bytes) -> bytes:
    """A right checksum over a record whose length lies."""
    changed = bytearray(data)
    changed[61] ^= 0x02
    patch_crc(changed)
    return bytes(changed)


@pytest.mark.parametrize("how", [damaged, damaged_inside])
@pytest.mark.parametrize("way", ["records", "batches", "getone", "getmany"])
async def test_a_damaged_batch_is_an_error_at_its_place_and_can_be_passed(how: object, way: str) -> None:
    assert callable(how)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        store(cluster, "t", batch_bytes(0, [0, 1]), 1)
        store(cluster, "t", how(batch_bytes(2, [2, 3])), 3)
        store(cluster, "t", batch_bytes(4, [4, 5]), 5)
        store(cluster, "t", batch_bytes(0, [0, 1, 2, 3]), 3, partition=1)
        seen: list[tuple[int, int]] = []
        errors: list[CorruptRecordError] = []
        seen_before: list[int] = []
        async with consumer_of(cluster, "t", **SMALL) as consumer:

            async def read_on() -> None:
                if way == "records":
                    async for record in consumer:
                        seen.append((record.partition, record.offset))
                        if len(seen) == 8:
                            break
                elif way == "batches":
                    async for batch in consumer.batches():
                        seen.extend([(record.partition, record.offset) for record in batch])
                        if len(seen) == 8:
                            break
                elif way == "getone":
                    record = await consumer.getone(timeout=30)
                    seen.append((record.partition, record.offset))
                else:
                    seen.extend((record.partition, record.offset) for record in await consumer.getmany(timeout=30))

            with anyio.fail_after(30):
                while len(seen) < 8:
                    try:
                        await read_on()
                    except CorruptRecordError as error:
                        errors.append(error)
                        seen_before = [offset for partition, offset in seen if partition == 0]
                        await consumer.seek(T0, 4)
        (error,) = errors
        assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 2, 4)
        assert seen_before == [0, 1]
        assert [offset for partition, offset in seen if partition == 0] == [0, 1, 4, 5]
        assert [offset for partition, offset in seen if partition == 1] == [0, 1, 2, 3]


async def test_a_bomb_is_an_error_of_its_partition() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        bomb = encode_batch(2, Codec.GZIP, timestamps=[1], keys=[None], values=[bytes(3_000_000)])
        store(cluster, "t", bytes(bomb), 0)
        async with consumer_of(cluster, "t", max_unpacked_bytes=1_000_000) as consumer:
            with pytest.raises(RecordTooLargeError, match="max_unpacked_bytes=1000000") as caught:
                await consumer.getone(timeout=30)
            error = caught.value
            assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 0, 1)
            assert "corrupt" not in str(error).lower()
            assert consumer._machine.assignment.state(T0).damaged_at is None  # it is not fetched again
            await consumer.seek(T0, error.next_offset)
            after = encode_batch(2, Codec.GZIP, timestamps=[1], keys=[None], values=[b"next"])
            store(cluster, "t", assign_offsets(after, 1).data, 1)
            assert (await consumer.getone(timeout=30)).value == b"next"


# The client itself


async def test_a_fault_in_the_library_is_raised_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with consumer_of(cluster, "t", fetch_max_wait_ms=50) as consumer:

            def fault(*_: object, **__: object) -> None:
                raise ZeroDivisionError

            monkeypatch.setattr(consumer._machine, "fetch_answered", fault)
            with pytest.raises(ClientFailedError) as caught:
                await consumer.getone(timeout=20)
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            for call in (consumer.position(T0), consumer.seek(T0, 1), consumer.getmany(), consumer.end_offsets([T0])):
                with pytest.raises(ClientFailedError):
                    await call


async def test_codes_of_a_look_up() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with consumer_of(cluster, "t", **SMALL) as consumer:
            cluster.faults.answer("ListOffsets", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
            assert await consumer.end_offsets([T0]) == {T0: 0}
            cluster.faults.answer("ListOffsets", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            with pytest.raises(AuthorizationError):
                await consumer.end_offsets([T0])
            cluster.faults.answer("ListOffsets", ErrorCode.LEADER_NOT_AVAILABLE, times=None)
            with pytest.raises(TimeoutError, match="LEADER_NOT_AVAILABLE"):
                await consumer.end_offsets([T0], timeout=3)
            cluster.faults.answer("ListOffsets", ErrorCode.UNKNOWN_SERVER_ERROR, times=None)
            cluster.faults.clear()
            cluster.faults.answer("ListOffsets", ErrorCode.UNKNOWN_SERVER_ERROR, times=None)
            with pytest.raises(BrokerError) as caught:
                await consumer.beginning_offsets([T0], timeout=3)
            assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
            with pytest.raises(TimeoutError, match="position"):
                await consumer.seek_to_end(timeout=0.2)
            cluster.faults.clear()
            assert await consumer.position(T0, timeout=20) == 0


# Partitions that are not there


ARGUMENTS = {"getone": lambda tp: [], "end_offsets": lambda tp: [[tp]]}
PATIENCE_MS = 4000  # opening takes its part of it, and a busy machine


@pytest.mark.parametrize("missing", [TopicPartition("t", 5), TopicPartition("nowhere", 0)])
async def test_a_partition_that_does_not_exist_is_an_error_in_time(missing: TopicPartition) -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:

        async def told_of_it(call: str) -> None:
            async with consumer_of(cluster, default_api_timeout_ms=PATIENCE_MS, retry_backoff_ms=10) as consumer:
                consumer.assign([missing])
                with pytest.raises(UnknownTopicError) as caught, anyio.fail_after(30):
                    await getattr(consumer, call)(*ARGUMENTS.get(call, lambda tp: [tp])(missing))
                assert caught.value.topic == missing.topic
                assert caught.value.partition in (missing.partition, None)
                told.append(call)

        told: list[str] = []
        calls = ["getone", "position", "seek_to_end", "lag", "end_offsets"]
        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(told_of_it, call)
        assert sorted(told) == sorted(calls)


async def test_a_topic_that_did_not_exist_may_be_made_later() -> None:
    async with (
        EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster,
        consumer_of(cluster, default_api_timeout_ms=PATIENCE_MS, retry_backoff_ms=10) as consumer,
    ):
        consumer.assign([TopicPartition("nowhere", 0)])
        with pytest.raises(UnknownTopicError), anyio.fail_after(30):
            await consumer.getone()
        cluster.create_topic("nowhere", 1)
        await fill(cluster, "nowhere", values(0, 3))
        assert numbers(await read_values(consumer, 3)) == [0, 1, 2]


async def test_a_position_that_is_late_for_another_reason_says_so() -> None:
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        consumer_of(cluster, default_api_timeout_ms=PATIENCE_MS, retry_backoff_ms=10) as consumer,
    ):
        cluster.faults.answer("ListOffsets", ErrorCode.LEADER_NOT_AVAILABLE, times=None)
        consumer.assign([T0])
        with pytest.raises(RequestTimeoutError, match="the last attempt ended in: LEADER_NOT_AVAILABLE"):
            await consumer.position(T0)
