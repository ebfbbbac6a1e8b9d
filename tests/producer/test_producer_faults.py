"""Producing while things go wrong: brokers that fail, leaders that move, callers that give up."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from pykafka08 import (
    BrokerError,
    BufferFullError,
    ClosedError,
    ConfigError,
    DeliveryTimeoutError,
    EmbeddedCluster,
    ErrorCode,
    KafkaError,
    Producer,
    RecordTooLargeError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.errors import ClientFailedError
from pykafka08.producer.delivery import Delivery

from .clusters import FAST, assert_in_order, log_values, logs, producing

pytestmark = pytest.mark.anyio


WAYS: dict[str, Callable[[Producer, str], Awaitable[object]]] = {
    "send": lambda producer, topic: producer.send(topic, b"v"),
    "send_many": lambda producer, topic: producer.send_many(topic, [b"v"] * 3),
    "enqueue": lambda producer, topic: producer.enqueue(topic, b"v"),
}


async def test_a_topic_that_is_never_created_fails_with_the_brokers_reason() -> None:
    async with (
        EmbeddedCluster(1, topics={"t": 1}, auto_create_topics=False) as cluster,
        Producer(cluster.bootstrap_servers, **FAST) as producer,
    ):
        cluster.faults.answer("CreateTopics", ErrorCode.INVALID_TOPIC_EXCEPTION, times=None)
        deliveries = [producer.enqueue("a_b", b"v") for _ in range(3)]
        with anyio.fail_after(30), pytest.raises(BrokerError) as raised:
            await producer.send_many("a_b", [b"v"] * 3)
        error = raised.value
        assert (error.code, error.topic, error.api) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "a_b", "CreateTopics")
        assert error.broker is not None
        assert set(map(type, await outcomes_of(deliveries))) == {BrokerError}


async def test_columns_of_a_topic_that_is_never_created_fail() -> None:
    async with (
        EmbeddedCluster(1, topics={"t": 1}, auto_create_topics=False) as cluster,
        Client(ClientConfig(bootstrap_servers=(("127.0.0.1", cluster.brokers[0].port),))) as client,
    ):
        cluster.faults.answer("CreateTopics", ErrorCode.POLICY_VIOLATION, times=None)
        with anyio.fail_after(30), pytest.raises(BrokerError) as raised:
            await client.wait_for_topics(["t", "a_b"])
        assert (raised.value.code, raised.value.topic) == (ErrorCode.POLICY_VIOLATION, "a_b")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "\u00e4", "n" * 250, "a\n"])
async def test_a_name_that_no_topic_can_have_is_refused_at_once(name: str) -> None:
    async with producing() as (cluster, producer):
        asked = len(cluster.requests)
        for way in WAYS.values():
            with pytest.raises(BrokerError, match="name") as raised:
                await way(producer, name)
            assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert len(cluster.requests) == asked


async def outcomes_of(deliveries: list[Delivery]) -> list[KafkaError | None]:
    found: list[KafkaError | None] = []
    for delivery in deliveries:
        try:
            await delivery
        except KafkaError as error:
            found.append(error)
        else:
            found.append(None)
    return found


def assert_delivered_in_order(cluster: EmbeddedCluster, deliveries: list[Delivery]) -> None:
    """Each record is in the log, and each partition has its records in the order in which they were sent."""
    partitions = [[int(record.value or b"") for record in log] for log in logs(cluster)]
    for numbers in partitions:
        assert_in_order(numbers)
    assert {number for numbers in partitions for number in numbers} == set(range(len(deliveries)))


async def test_a_new_leader_is_told_with_the_error_and_written_to_though_metadata_fails() -> None:
    async with producing(brokers=3) as (cluster, producer):
        for turn in range(9):
            if turn == 3:  # connections to all brokers are there
                cluster.faults.close_before("Metadata", times=None)
            with anyio.fail_after(30):
                assert (await producer.send("t", b"%d" % turn)).offset == turn
            cluster.move_leader("t", 0, (cluster.leader("t", 0) + 1) % 3)


# --- error codes and connections --------------------------------------------------------------------------------------


RETRIED = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
]


@pytest.mark.parametrize("code", RETRIED, ids=lambda code: code.name)
@pytest.mark.parametrize("release", ["0.8.2", "4.3"])
async def test_codes_that_are_mended_without_the_application(code: ErrorCode, release: str) -> None:
    async with producing(version=release, topics={"t": 2}, batch_size=500) as (cluster, producer):
        cluster.faults.answer("Produce", code)
        deliveries = [producer.enqueue("t", b"%d" % i, partition=i % 2) for i in range(100)]
        await producer.flush()
        assert await outcomes_of(deliveries) == [None] * 100
        assert_delivered_in_order(cluster, deliveries)
        assert len(log_values(cluster)) == 100


@pytest.mark.parametrize(
    "code",
    [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR],
    ids=lambda code: code.name,
)
async def test_codes_that_fail_the_records_name_the_place(code: ErrorCode) -> None:
    async with producing(topics={"t": 2}) as (cluster, producer):
        cluster.faults.answer("Produce", code, partition=1)
        good, bad = producer.enqueue("t", b"v", partition=0), producer.enqueue("t", b"v", partition=1)
        assert (await good).offset == 0
        with pytest.raises(BrokerError) as caught:
            await bad
        error = caught.value
        assert error.code is code
        assert (error.topic, error.partition, error.api) == ("t", 1, "Produce")
        assert cluster.bootstrap_servers in (error.broker or "")
        assert producer.counters[:5] == (2, 1, 1, 0, 0)


async def test_corrupt_every_time_is_not_retried_for_ever() -> None:
    async with producing() as (cluster, producer):
        cluster.faults.answer("Produce", ErrorCode.CORRUPT_MESSAGE, times=None)
        with pytest.raises(BrokerError, match="CORRUPT_MESSAGE"):
            await producer.send("t", b"v")


@pytest.mark.parametrize("release", ["0.8.0", "0.10.2", "4.3"])
async def test_a_broker_that_takes_less_than_the_batch_gets_it_in_parts(release: str) -> None:
    async with EmbeddedCluster(version=release) as cluster:
        cluster.create_topic("t", config={"max.message.bytes": "5000"})
        async with Producer(cluster.bootstrap_servers, compression_type="gzip", **FAST) as producer:
            noise = random.Random(1)
            small = [producer.enqueue("t", noise.randbytes(1000)) for _ in range(20)]
            large = producer.enqueue("t", noise.randbytes(6000))
            more = producer.enqueue("t", b"more")
            await producer.flush()
            assert await outcomes_of([*small, more]) == [None] * 21
            with pytest.raises(RecordTooLargeError) as caught:
                await large
            assert (caught.value.topic, caught.value.partition) == ("t", 0)
            assert [(await delivery).offset for delivery in [*small, more]] == list(range(21))


@pytest.mark.parametrize("fault", ["close_before", "close_after", "drop_answer"])
@pytest.mark.parametrize("acks", [1, "all"])
async def test_a_lost_answer_is_asked_for_again_in_order(fault: str, acks: int | str) -> None:
    async with producing(topics={"t": 2}, acks=acks, request_timeout_ms=4000, batch_size=1000) as (cluster, producer):
        getattr(cluster.faults, fault)("Produce", times=2)
        deliveries = [producer.enqueue("t", b"%d" % i, partition=i % 2) for i in range(200)]
        assert await outcomes_of(deliveries) == [None] * 200
        assert_delivered_in_order(cluster, deliveries)
        assert producer.counters.retries >= 1


async def test_with_acks_0_a_closed_connection_does_not_stop_the_rest() -> None:
    async with producing(acks=0) as (cluster, producer):
        cluster.faults.close_before("Produce")
        await producer.send("t", b"may be lost")
        for _ in range(1000):
            await producer.send("t", b"v")
            if log_values(cluster):
                break
        assert producer.counters.failed == 0


async def test_when_nothing_is_ever_answered_the_deadline_ends_it() -> None:
    async with producing(delivery_timeout_ms=3000, request_timeout_ms=1000) as (cluster, producer):
        cluster.faults.drop_answer("Produce", times=None)
        with pytest.raises(DeliveryTimeoutError, match=r"3 s") as caught:
            await producer.send("t", b"v")
        assert (caught.value.topic, caught.value.partition) == ("t", 0)
        cluster.faults.clear()
        assert (await producer.send("t", b"w")).topic == "t"
        assert producer.counters[1:4] == (1, 1, 0)


# --- leaders and brokers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.8.2", "0.11.0", "4.3"])
async def test_leaders_move_while_records_flow(release: str) -> None:
    async with producing(brokers=3, version=release, topics={"t": 3}, batch_size=2000) as (cluster, producer):
        deliveries = []
        for turn in range(12):
            for _ in range(200):
                await producer.ready()
                deliveries.append(producer.enqueue("t", b"%d" % len(deliveries), partition=len(deliveries) % 3))
            for partition in range(3):
                cluster.move_leader("t", partition, (partition + turn) % 3)
            await deliveries[-150]
        await producer.flush()
        assert await outcomes_of(deliveries) == [None] * len(deliveries)
        assert_delivered_in_order(cluster, deliveries)
        assert len(log_values(cluster)) == len(deliveries)


async def test_a_broker_goes_and_comes_back() -> None:
    async with producing(brokers=3, topics={"t": 3}, batch_size=2000) as (cluster, producer):
        deliveries: list[Delivery] = []

        async def produce(count: int) -> None:
            for _ in range(count):
                await producer.ready()
                deliveries.append(producer.enqueue("t", b"%d" % len(deliveries), partition=len(deliveries) % 3))
            await producer.flush()

        await produce(300)
        for node_id in range(3):
            async with anyio.create_task_group() as group:
                group.start_soon(produce, 300)
                await cluster.stop_broker(node_id)
            await produce(300)
            await cluster.start_broker(node_id)
        await produce(300)
        assert await outcomes_of(deliveries) == [None] * len(deliveries)
        assert_delivered_in_order(cluster, deliveries)


async def test_with_every_broker_gone_records_wait_for_their_return() -> None:
    async with producing(brokers=2, topics={"t": 2}) as (cluster, producer):
        await producer.send("t", b"0", partition=0)
        for node_id in range(2):
            await cluster.stop_broker(node_id)
        deliveries = [producer.enqueue("t", b"%d" % i, partition=i % 2) for i in range(1, 20)]
        new = producer.enqueue("new", b"v")
        with pytest.raises(RequestTimeoutError, match="under way"):
            await producer.flush(timeout=0.2)
        for node_id in range(2):
            await cluster.start_broker(node_id)
        assert await outcomes_of(deliveries) == [None] * 19
        assert (await new).offset == 0
        assert producer.counters.failed == 0


async def test_with_every_broker_gone_for_good_every_call_ends() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(
            cluster.bootstrap_servers, delivery_timeout_ms=400, max_block_ms=200, buffer_memory=1000, **FAST
        ) as producer:
            await producer.send("t", b"v")
            await cluster.stop_broker(0)
            unknown = producer.enqueue("new", b"v")
            with pytest.raises(DeliveryTimeoutError, match="no broker has told"):
                await unknown
            known = [producer.enqueue("t", bytes(400)) for _ in range(2)]
            with pytest.raises(BufferFullError, match="max_block_ms"):
                await producer.send("t", bytes(400))
            assert [type(error) for error in await outcomes_of(known)] == [DeliveryTimeoutError] * 2
            left = producer.enqueue("t", b"v")
        with pytest.raises(DeliveryTimeoutError):
            await left
        assert producer.counters[:5] == (5, 1, 4, 0, 0)


async def test_closing_with_a_time_out_fails_what_is_left() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        producer = Producer(cluster.bootstrap_servers, **FAST)
        async with producer:
            await producer.send("t", b"v")
            await cluster.stop_broker(0)
            left = [producer.enqueue("t", b"v"), producer.enqueue("new", b"v")]
            await producer.aclose(timeout=0.05)
            assert [type(error) for error in await outcomes_of(left)] == [ClosedError, ClosedError]
        assert producer.counters[:5] == (3, 1, 2, 0, 0)


async def leave_by_exception(cluster: EmbeddedCluster, *, is_broker_gone: bool) -> tuple[Producer, Delivery]:
    """What a block leaves behind that raised with a record enqueued."""
    producer = Producer(cluster.bootstrap_servers, **FAST)
    deliveries = []

    async def block() -> None:
        async with producer:
            await producer.send("t", b"sent")
            if is_broker_gone:
                await cluster.stop_broker(0)
            deliveries.append(producer.enqueue("t", b"enqueued"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await block()
    return producer, deliveries[0]


async def test_an_exception_in_the_block_still_delivers_but_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        producer, delivery = await leave_by_exception(cluster, is_broker_gone=False)
        assert (await delivery).offset == 1
        assert producer.counters[:5] == (2, 2, 0, 0, 0)
        monkeypatch.setattr("pykafka08.producer.producer.GRACE_S", 0.05)
        producer, delivery = await leave_by_exception(cluster, is_broker_gone=True)
        with pytest.raises(ClosedError):
            await delivery
        assert producer.counters[:5] == (2, 1, 1, 0, 0)


async def test_a_cancelled_block_ends_at_once() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        with anyio.CancelScope() as scope:
            async with Producer(cluster.bootstrap_servers, linger_ms=60_000, **FAST) as producer:
                left = producer.enqueue("t", b"v")
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        with pytest.raises(ClosedError):
            await left


# --- callers that give up ---------------------------------------------------------------------------------------------


async def give_up(call: Callable[[], Any], when: Callable[[], bool]) -> None:
    """Start ``call``, and cancel it as soon as ``when`` says that it waits."""
    async with anyio.create_task_group() as group:
        group.start_soon(call)
        while True:
            await anyio.lowlevel.checkpoint()
            if when():
                break
        group.cancel_scope.cancel()


async def test_a_send_cancelled_while_it_waits_for_the_answer_is_delivered_all_the_same() -> None:
    async with producing() as (cluster, producer):
        await producer.send("t", b"first")
        cluster.faults.delay("Produce", 0.1)
        await give_up(lambda: producer.send("t", b"cancelled"), lambda: producer.counters.requests == 2)
        after = await producer.send("t", b"after")
        assert (after.offset, log_values(cluster)) == (2, [b"first", b"cancelled", b"after"])
        assert producer.counters[:5] == (3, 3, 0, 0, 0)


async def test_a_send_cancelled_while_it_waits_for_metadata_is_delivered_all_the_same() -> None:
    async with producing() as (cluster, producer):
        cluster.faults.delay("Metadata", 0.1)
        await give_up(lambda: producer.send("new", b"cancelled"), lambda: producer.counters.enqueued == 1)
        await producer.flush()
        assert log_values(cluster, "new") == [b"cancelled"]


async def test_one_of_many_that_await_a_delivery_gives_up() -> None:
    async with producing() as (cluster, producer):
        await producer.send("t", b"first")
        cluster.faults.delay("Produce", 0.1)
        delivery = producer.enqueue("t", b"v")

        async def wait() -> None:
            await delivery

        await give_up(wait, lambda: producer.counters.requests == 2)
        assert not delivery.is_done
        assert (await delivery).offset == 1


async def test_callers_cancelled_in_the_line_for_room_leave_it_to_the_others() -> None:
    async with producing(buffer_memory=1000) as (cluster, producer):
        await producer.send("t", b"first")
        cluster.faults.delay("Produce", 0.1)
        held = producer.enqueue("t", bytes(900))
        sent = []

        async def send(value: bytes) -> None:
            sent.append(await producer.send("t", value))

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(send, b"%d" % number * 100)
            await anyio.lowlevel.checkpoint()
            await give_up(lambda: producer.send("t", b"x" * 900), lambda: producer.counters.requests == 2)
            for number in range(3, 6):
                group.start_soon(send, b"%d" % number * 100)
        await held
        assert len(sent) == 6
        assert {(value or b"")[:1] for value in log_values(cluster)[2:]} == {b"0", b"1", b"2", b"3", b"4", b"5"}


async def test_a_cancelled_send_many_and_flush_leave_the_rest_alone() -> None:
    async with producing(buffer_memory=50_000) as (cluster, producer):
        await producer.send("t", b"first")
        cluster.faults.delay("Produce", 0.1)
        await give_up(lambda: producer.send_many("t", [bytes(100)] * 5000), lambda: producer.counters.enqueued > 100)
        await give_up(producer.flush, lambda: True)
        await producer.flush()
        counters = producer.counters
        assert counters.acknowledged == counters.enqueued == len(log_values(cluster))
        assert counters.buffered_bytes == 0


async def test_many_senders_share_a_small_buffer() -> None:
    async with producing(topics={"t": 3}, buffer_memory=5_000, linger_ms=0) as (cluster, producer):
        most = 0

        async def send(sender: int) -> None:
            nonlocal most
            for number in range(20):
                await producer.send("t", b"%d" % (sender * 100 + number), key=b"%d" % sender, headers=[("h", b"v")])
                most = max(most, producer.counters.buffered_bytes)

        async with anyio.create_task_group() as group:
            for sender in range(100):
                group.start_soon(send, sender)
        assert producer.counters[:5] == (2000, 2000, 0, 0, 0)
        assert 0 < most <= 5_000
        by_key: dict[bytes | None, list[int]] = {}
        for log in logs(cluster):
            for record in log:
                by_key.setdefault(record.key, []).append(int(record.value or b""))
        assert by_key == {b"%d" % s: [s * 100 + n for n in range(20)] for s in range(100)}


# --- faults of our own ------------------------------------------------------------------------------------------------


async def test_the_death_of_a_background_task_is_raised_to_every_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        producer = await Producer(cluster.bootstrap_servers, **FAST).__aenter__()
        await producer.send("t", b"v")

        def broken(now: float) -> list[Any]:
            raise AssertionError("a fault of the machine")

        monkeypatch.setattr(producer._machine, "poll", broken)
        delivery = producer.enqueue("t", b"w")
        with pytest.raises(ClientFailedError, match="a fault of the machine"):
            await delivery
        with pytest.raises(ClientFailedError):
            producer.enqueue("t", b"x")
        for call in (producer.send("t", b"x"), producer.flush(), producer.ready()):
            with pytest.raises(ClientFailedError):
                await call
        with pytest.raises(ClientFailedError):
            await producer.__aexit__(None, None, None)
        assert producer.counters[:5] == (2, 1, 1, 0, 0)


async def test_a_partitioner_of_the_application_that_raises() -> None:
    def broken(key: bytes | None, partitions: tuple[int, ...], available: tuple[int, ...]) -> int:
        raise UnsupportedVersionError("mine") if key == b"k" else KeyError(key)

    async with producing(partitioner=broken) as (_, producer):
        await producer.send("t", b"v", partition=0)
        with pytest.raises(ConfigError) as caught:
            await producer.send("t", b"v")
        assert isinstance(caught.value.__cause__, KeyError)
        with pytest.raises(ConfigError) as caught:
            producer.enqueue("t", b"v", key=b"k")
        assert isinstance(caught.value.__cause__, UnsupportedVersionError)
        assert producer.counters[:5] == (1, 1, 0, 0, 0)
