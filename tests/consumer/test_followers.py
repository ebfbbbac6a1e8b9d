"""Fetching from a replica near by (KIP-392): the machine's part, and whole clusters with racks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.consumer.actions import FetchedPartition
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import TransportError
from tests.consumer.embedded import fill, numbers, read, read_values, values
from tests.consumer.world import World

A = TopicPartition("a", 0)
B = TopicPartition("b", 0)


def sent_to_follower() -> World:
    """A is led by broker 1 and read from broker 2, which leads B."""
    world = World({A: 1, B: 2})
    world.start()
    (fetch,) = [fetch for fetch in world.fetches() if fetch.node_id == 1]
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [FetchedPartition(A, 0, b"", preferred_replica=2)], world.now, is_capped=True)
    world.poll()
    assert asked_of(world, 1) == []
    world.answer_all()  # of B alone, until now
    assert asked_of(world, 2) == [A, B]
    return world


def asked_of(world: World, node_id: int) -> list[TopicPartition]:
    return sorted(ask.tp for fetch in world.fetches() if fetch.node_id == node_id for ask in fetch.asks)


def refuse(world: World, code: int) -> None:
    """Broker 2 answers what it is asked, with that code for A."""
    fetch = world.fetch()
    world.flights.remove(fetch)
    answers = [FetchedPartition(A, int(code)), FetchedPartition(B, 0)]
    world.machine.fetch_answered(fetch, answers, world.now, is_capped=True)
    world.poll()


def test_the_follower_is_asked_until_its_lease_ends() -> None:
    world = sent_to_follower()
    world.now += world.client.metadata_max_age_ms / 1000 - 1
    refuse(world, 0)
    assert asked_of(world, 2) == [A, B]
    world.now += 2
    refuse(world, 0)
    assert (asked_of(world, 1), asked_of(world, 2)) == ([A], [B])


def test_out_of_range_at_the_follower_is_asked_of_the_leader_at_once() -> None:
    world = sent_to_follower()
    refuse(world, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert (asked_of(world, 1), asked_of(world, 2)) == ([A], [B])
    assert world.machine.position(A) == 0


def test_a_follower_that_stays_behind_does_not_make_us_spin() -> None:
    world = sent_to_follower()
    refuse(world, ErrorCode.OFFSET_OUT_OF_RANGE)
    (fetch,) = [fetch for fetch in world.fetches() if fetch.node_id == 1]
    world.redirect(fetch, 2)
    world.answer_all()
    refuse(world, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert (asked_of(world, 1), asked_of(world, 2)) == ([], [B])
    world.wait(0.2)
    assert (asked_of(world, 1), asked_of(world, 2)) == ([A], [B])


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE])
def test_a_follower_that_refuses_is_left(code: ErrorCode) -> None:
    world = sent_to_follower()
    refuse(world, code)
    world.wait(2)
    assert (asked_of(world, 1), asked_of(world, 2)) == ([A], [B])


def lose(world: World) -> None:
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_failed(fetch, TransportError("reset"), world.now)


def move_leader(world: World) -> None:
    world.move_leader(A, 3)
    world.refresh()


def forget_broker(world: World) -> None:
    world.flights.clear()
    world.logs[B].leader = 1
    world.refresh()


@pytest.mark.parametrize(("happens", "leader"), [(lose, 1), (move_leader, 3), (forget_broker, 1)])
def test_the_leader_is_asked_again(happens: Callable[[World], None], leader: int) -> None:
    world = sent_to_follower()
    happens(world)
    world.wait(2)
    assert A in asked_of(world, leader)
    assert A in {fetch.asks[0].tp for fetch in world.fetches() if fetch.node_id == leader}


def test_a_replica_that_metadata_does_not_know_is_asked_about() -> None:
    world = World({A: 1})
    world.start()
    fetch = world.fetch()
    world.flights.remove(fetch)
    world.machine.fetch_answered(fetch, [FetchedPartition(A, 0, b"", preferred_replica=9)], world.now, is_capped=True)
    world.poll()
    assert world.refreshes == [world.generation]
    assert world.flights == []
    world.wait(0.2)
    assert asked_of(world, 1) == [A]


# Clusters


def fetches_of(cluster: EmbeddedCluster) -> Counter[int]:
    return Counter(request.broker for request in cluster.requests if request.api == "Fetch")


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["2.4", "3.9", "4.3"])
async def test_records_come_from_the_rack_of_the_consumer(release: str) -> None:
    async with EmbeddedCluster(brokers=3, version=release, topics={"t": 3}, racks=["a", "b", "c"]) as cluster:
        for number in range(3):
            await fill(cluster, "t", values(0, 100), partition=number)
        async with Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            auto_offset_reset="earliest",
            client_rack="b",
            fetch_max_wait_ms=20,
        ) as consumer:
            await read(consumer, 300)
            cluster.requests.clear()
            for number in range(3):
                await fill(cluster, "t", values(100, 150), partition=number)
            await read(consumer, 150)
            assert set(fetches_of(cluster)) == {1}
            # The broker goes; the leaders are asked, and send nobody elsewhere.
            await cluster.stop_broker(1)
            for number in range(3):
                await fill(cluster, "t", values(150, 200), partition=number)
            records = await read(consumer, 150)
            assert sorted(record.offset for record in records) == sorted([*range(150, 200)] * 3)


@pytest.mark.anyio
async def test_without_a_rack_the_leader_is_read() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}, racks=["a", "b"]) as cluster:
        await fill(cluster, "t", values(0, 10))
        leader = cluster.leader("t", 0)
        for rack in (None, "elsewhere", "ab"[leader]):
            cluster.requests.clear()
            async with Consumer(
                "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", client_rack=rack
            ) as consumer:
                with anyio.fail_after(30):
                    assert numbers(await read_values(consumer, 10)) == list(range(10))
            assert set(fetches_of(cluster)) == {leader}
