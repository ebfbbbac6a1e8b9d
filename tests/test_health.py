"""`health()` of producers and consumers, and the warning about an event loop that stands still."""

from __future__ import annotations

import logging
import time

import anyio
import pytest

from pykafka08 import ClientFailedError, ClosedError, Consumer, EmbeddedCluster, ErrorCode, Producer, TopicPartition
from pykafka08.group.loop_lag import blocked_for
from tests.consumer.embedded import fill, read
from tests.consumer.groups import consumer, until

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


async def test_of_a_producer() -> None:
    async with EmbeddedCluster() as cluster:
        producer = Producer(bootstrap_servers=cluster.bootstrap_servers)
        with pytest.raises(ClosedError):
            producer.health()
        async with producer:
            health = producer.health()
            assert (health.producer_id, health.transaction, health.failure) == (None, None, None)
            await producer.send("t", b"v")
            delivery = producer.enqueue("t", b"w")
            health = producer.health()
            assert health.counters.in_buffer == 1
            assert health.counters.buffered_bytes > 0
            assert health.connected == (f"{cluster.bootstrap_servers} (id 0)",)
            assert health.producer_id is not None
            assert health.producer_epoch == 0
            await delivery
        health = producer.health()
        assert health.connected == ()
        assert health.requests_in_flight == 0
        assert health.counters.acknowledged == 2


async def test_of_a_transactional_producer() -> None:
    async with (
        EmbeddedCluster() as cluster,
        Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer,
    ):
        assert producer.health().transaction == "ready for a transaction"
        async with producer.transaction():
            assert producer.health().transaction == "in a transaction"


async def test_of_a_member_of_a_group() -> None:
    async with EmbeddedCluster() as cluster:
        await fill(cluster, "t", [b"%d" % number for number in range(10)])
        reader = consumer(cluster, "t")
        with pytest.raises(ClosedError):
            reader.health()
        async with reader:
            await read(reader, 4)
            health = reader.health()
            group = health.group
            assert group is not None
            assert (group.group_id, group.state) == ("g", "stable")
            assert group.coordinator == f"{cluster.bootstrap_servers} (id 0)"
            assert group.member_id
            assert group.generation >= 1
            assert group.heartbeat_age is not None
            assert health.fetch_age is not None
            assert health.lag == {T0: 6}
            await until(lambda: reader.health().requests_in_flight > 0)  # the next long poll
            await read(reader, 6)
            assert reader.health().lag == {T0: 0}
            assert reader.health().buffered_bytes == 0
        group = reader.health().group
        assert group is not None
        assert group.state == "ended"
        assert reader.health().connected == ()


async def test_of_a_member_in_trouble() -> None:
    """What it is at, since when, and why."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer(cluster, "t") as reader:
        group = reader.health().group
        assert group is not None
        assert (group.state, group.trouble) == ("stable", None)
        cluster.faults.answer("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None)
        cluster.faults.answer("Heartbeat", ErrorCode.NOT_COORDINATOR, times=None)
        await until(lambda: "COORDINATOR_NOT_AVAILABLE" in str(reader.health().group.trouble))  # type: ignore[union-attr]
        group = reader.health().group
        assert group is not None
        assert (group.state, group.coordinator) == ("stable", None)
        cluster.faults.clear()
        await until(lambda: reader.health().group.trouble is None)  # type: ignore[union-attr]
        cluster.faults.answer("JoinGroup", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
        cluster.expire_sessions("g")
        await until(lambda: "LOAD_IN_PROGRESS" in str(reader.health().group.trouble))  # type: ignore[union-attr]
        began = anyio.current_time()
        await until(lambda: reader.health().group.state == "joining")  # type: ignore[union-attr]
        group = reader.health().group
        assert group is not None
        assert 0 <= group.state_age <= anyio.current_time() - began + 1
        cluster.faults.clear()
        await until(lambda: reader.health().group.state == "stable")  # type: ignore[union-attr]


async def test_of_a_membership_that_has_ended() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer(cluster, "t") as reader:
        cluster.faults.answer("Heartbeat", ErrorCode.FENCED_INSTANCE_ID)
        await until(lambda: "FENCED" in str(reader.health().group.trouble))  # type: ignore[union-attr]


async def test_lag_of_partitions_that_came_back_is_known() -> None:
    partitions = {TopicPartition("q", number): 0 for number in range(4)}
    async with EmbeddedCluster(topics={"q": 4}) as cluster:
        async with consumer(cluster, "q") as one:

            async def reading() -> None:
                async for _ in one:
                    pass

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reading)
                await until(lambda: one.health().lag == partitions)
                async with consumer(cluster, "q") as two:
                    await until(lambda: len(one.assignment()) == 2)
                    await until(lambda: set(two.health().lag.values()) == {0})
                await until(lambda: one.health().lag == partitions)
                tasks.cancel_scope.cancel()


async def test_without_a_group_and_before_the_first_fetch() -> None:
    async with (
        EmbeddedCluster() as cluster,
        Consumer(bootstrap_servers=cluster.bootstrap_servers) as reader,
    ):
        health = reader.health()
        assert health.group is None
        assert health.fetch_age is None
        assert health.lag == {}


async def test_lag_counts_what_a_transaction_has_committed() -> None:
    async with EmbeddedCluster() as cluster:
        await fill(cluster, "t", [b"before"])
        async with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
            async with producer.transaction():
                await producer.send("t", b"open", partition=0)
                async with consumer(cluster, "t", isolation_level="read_committed") as careful:
                    await read(careful, 1)
                    assert careful.health().lag == {T0: 0}
                async with consumer(cluster, "t", group_id="h") as hasty:
                    await read(hasty, 1)
                    assert hasty.health().lag == {T0: 1}


async def test_it_tells_of_a_death_that_calls_raise() -> None:
    async with EmbeddedCluster() as cluster:
        await fill(cluster, "t", [b"v"])
        async with consumer(cluster, "t") as reader:
            await read(reader, 1)
            cause = RuntimeError("a fault")
            reader._tasks.fail("fetcher", cause)
            failure = reader.health().failure
            assert isinstance(failure, ClientFailedError)
            assert failure.__cause__ is cause
            with pytest.raises(ClientFailedError):
                await reader.getone(timeout=30)


@pytest.mark.parametrize(
    ("session", "slept", "wanted", "blocked"),
    [
        (45.0, 4.6, 4.5, None),
        (45.0, 19.5, 4.5, None),  # exactly a third
        (45.0, 20.5, 4.5, 16.0),
        (6.0, 60.6, 0.6, 60.0),
        (0.0, 100.0, 1.0, None),  # outside of the group nothing is in danger
    ],
)
def test_how_late_is_dangerous(session: float, slept: float, wanted: float, blocked: float | None) -> None:
    assert blocked_for(session, slept, wanted) == blocked


async def test_a_loop_that_stood_still_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="pykafka08")
    async with EmbeddedCluster() as cluster:
        await fill(cluster, "t", [b"v"])
        async with consumer(cluster, "t", session_timeout_ms=6_000) as reader:
            await read(reader, 1)
            await anyio.sleep(
                1.3
            )  # the watch sleeps a tenth of the session at a time, and now by the session's measure
            time.sleep(3)  # noqa: ASYNC251 - what applications must not do
            await until(lambda: any("loop_blocked" in each.getMessage() for each in caplog.records))
    (warning, *_) = [each for each in caplog.records if "loop_blocked" in each.getMessage()]
    assert warning.group_id == "g"  # type: ignore[attr-defined]
    assert warning.seconds > 2  # type: ignore[attr-defined]
    assert warning.session_timeout == 6  # type: ignore[attr-defined]
