"""Idempotence against embedded brokers: each record once and in order, whatever is lost on the way."""

from __future__ import annotations

import logging
from itertools import count

import anyio
import pytest

from pykafka08 import EmbeddedCluster, ErrorCode, Producer, UnsupportedVersionError
from pykafka08.producer.delivery import Delivery

from .clusters import FAST, log_values, logs, producing

pytestmark = pytest.mark.anyio

WITH_NUMBERS = ["0.11.0", "4.3"]
OLDER = ["0.8.0", "0.8.2", "0.9.0", "0.10.2"]


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["event"] for record in caplog.records if record.levelno >= logging.WARNING]


def assert_exactly_once(cluster: EmbeddedCluster, sent: int) -> None:
    """Every record is in the log once, and each partition is in the order of sending."""
    partitions = [[int(record.value or b"") for record in log] for log in logs(cluster)]
    for numbers in partitions:
        assert numbers == sorted(set(numbers))
    assert sum(map(len, partitions)) == sent


async def assert_acknowledged_where_it_is(cluster: EmbeddedCluster, deliveries: list[Delivery]) -> None:
    contents = [[record.value for record in log] for log in logs(cluster)]
    for number, delivery in enumerate(deliveries):
        metadata = await delivery
        assert contents[metadata.partition][metadata.offset] == b"%d" % number


# --- which brokers have it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLDER)
async def test_older_brokers_get_records_without_numbers_and_one_warning_is_logged(
    release: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with producing(version=release, brokers=2, topics={"t": 2}) as (cluster, producer):
        for i in range(6):
            await producer.send("t", b"%d" % i, partition=i % 2)
        assert len(log_values(cluster)) == 6
    assert warnings_in(caplog) == ["producer.idempotence_off"]


@pytest.mark.parametrize("release", OLDER)
async def test_older_brokers_and_a_demand(release: str) -> None:
    async with producing(version=release, enable_idempotence=True) as (cluster, producer):
        for _ in range(2):
            with pytest.raises(UnsupportedVersionError, match="InitProducerId") as caught:
                await producer.send("t", b"v")
            assert caught.value.topic == "t"
        assert producer.counters[:4] == (2, 0, 2, 0)
        assert log_values(cluster) == []


@pytest.mark.parametrize("settings", [{"acks": 1}, {"acks": 0}, {"enable_idempotence": False}], ids=str)
async def test_where_it_is_not_wanted_nothing_is_asked_and_nothing_logged(
    settings: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    async with producing(**settings) as (cluster, producer):
        await producer.send("t", b"v")
        assert "InitProducerId" not in {request.api for request in cluster.requests}
    assert warnings_in(caplog) == []


async def test_a_principal_without_the_right_to_it_writes_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.answer("InitProducerId", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        async with Producer(cluster.bootstrap_servers, **FAST) as producer:
            await producer.send("t", b"v")
        assert log_values(cluster) == [b"v"]
    assert warnings_in(caplog) == ["producer.idempotence_off"]


@pytest.mark.parametrize("fault", ["close_before", "drop_answer"])
async def test_a_broker_that_gives_no_id_is_not_the_only_one(fault: str) -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        getattr(cluster.faults, fault)("InitProducerId", times=None, broker=0)
        async with Producer(cluster.bootstrap_servers, request_timeout_ms=4000, **FAST) as producer:
            await producer.send("t", b"v")
        asked = [request.broker for request in cluster.requests if request.api == "InitProducerId"]
        assert 1 in asked


# --- exactly once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", WITH_NUMBERS)
@pytest.mark.parametrize("fault", ["close_after", "close_before", "drop_answer"])
async def test_lost_requests_and_answers_double_nothing(release: str, fault: str) -> None:
    settings = {"version": release, "topics": {"t": 2}, "batch_size": 300, "request_timeout_ms": 2000}
    async with producing(**settings) as (cluster, producer):
        deliveries = []
        for turn in range(6):
            getattr(cluster.faults, fault)("Produce", times=1 + turn % 2)
            for _ in range(60):
                deliveries.append(producer.enqueue("t", b"%d" % len(deliveries), partition=len(deliveries) % 2))
            await deliveries[-1]
        await producer.flush()
        assert_exactly_once(cluster, len(deliveries))
        await assert_acknowledged_where_it_is(cluster, deliveries)


@pytest.mark.parametrize("release", WITH_NUMBERS)
@pytest.mark.parametrize(
    ("code", "performed"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS, False),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, False),
        (ErrorCode.UNKNOWN_PRODUCER_ID, False),
        (ErrorCode.INVALID_PRODUCER_EPOCH, False),
    ],
    ids=str,
)
async def test_codes_in_the_middle_of_five_batches_double_nothing(
    release: str, code: ErrorCode, performed: bool
) -> None:
    async with producing(version=release, batch_size=300) as (cluster, producer):
        deliveries: list[Delivery] = []

        def enqueue(many: int) -> None:
            for _ in range(many):
                deliveries.append(producer.enqueue("t", b"%d" % len(deliveries)))

        for turn in range(8):
            enqueue(1)
            await deliveries[-1]  # the broker knows the producer: several batches may be in flight
            cluster.faults.answer("Produce", code, performed=performed, skip=turn % 4)
            enqueue(60)
            await deliveries[-1]
        await producer.flush()
        assert_exactly_once(cluster, len(deliveries))
        await assert_acknowledged_where_it_is(cluster, deliveries)


@pytest.mark.parametrize("release", WITH_NUMBERS)
async def test_short_lived_connections_and_moving_leaders_double_nothing(release: str) -> None:
    async with EmbeddedCluster(brokers=3, version=release, topics={"t": 3}) as cluster:
        cluster.faults.connection_lives(0.05, 0.15, seed=1)
        async with Producer(cluster.bootstrap_servers, batch_size=1000, **FAST) as producer:
            deliveries: list[Delivery] = []
            for turn in count():
                for _ in range(100):
                    await producer.ready()
                    deliveries.append(producer.enqueue("t", b"%d" % len(deliveries), partition=len(deliveries) % 3))
                await deliveries[-30]
                if turn % 10 == 5:
                    cluster.move_leader("t", turn % 3, (cluster.leader("t", turn % 3) + 1) % 3)
                if producer.counters.retries >= 30:
                    break
            cluster.faults.clear()
            await producer.flush()
            assert_exactly_once(cluster, len(deliveries))
            await assert_acknowledged_where_it_is(cluster, deliveries)


async def test_a_wait_that_is_cancelled_stops_no_record() -> None:
    async with producing(batch_size=300) as (cluster, producer):
        cluster.faults.delay("Produce", 0.2, times=3)
        with anyio.move_on_after(0.05) as scope:
            await producer.send("t", b"0")
        assert scope.cancelled_caught
        for i in range(1, 50):
            producer.enqueue("t", b"%d" % i)
        await producer.flush()
        assert_exactly_once(cluster, 50)
        assert producer.counters[:4] == (50, 50, 0, 0)


async def test_batches_that_are_too_large_are_split_in_the_middle_of_others() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("t", config={"max.message.bytes": "2000"})
        async with Producer(cluster.bootstrap_servers, batch_size=5000, linger_ms=1, **FAST) as producer:
            deliveries: list[Delivery] = []
            for _ in range(5):
                for _ in range(300):
                    deliveries.append(producer.enqueue("t", b"%d" % len(deliveries)))
                await deliveries[-1]
            assert_exactly_once(cluster, len(deliveries))
            await assert_acknowledged_where_it_is(cluster, deliveries)


async def test_deleted_segments_and_a_topic_made_again_start_the_numbers_anew() -> None:
    async with producing(version="1.1") as (cluster, producer):
        for i in range(3):
            await producer.send("t", b"%d" % i)
        cluster.delete_records("t", 0, 3)
        assert (await producer.send("t", b"3")).offset == 3
        cluster.delete_topic("t")
        cluster.create_topic("t")
        for i in range(3):
            assert (await producer.send("t", b"%d" % i)).offset == i
        assert log_values(cluster) == [b"0", b"1", b"2"]
