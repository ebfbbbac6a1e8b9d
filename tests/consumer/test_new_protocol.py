"""Consumers of the new group protocol (KIP-848), alone and beside classic ones: what they share, commit and lose."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import pytest

from pykafka08 import (
    ConfigError,
    Consumer,
    EmbeddedCluster,
    PollIntervalExceededError,
    RebalanceListener,
    SubscriptionPattern,
    TopicPartition,
    UnsupportedVersionError,
)
from pykafka08.consumer.member import ConsumerMember
from tests.consumer.embedded import read
from tests.consumer.groups import committed_in, consumer, spread, until

PARTITIONS = 4
EACH = 40
ALL = [(partition, offset) for partition in range(PARTITIONS) for offset in range(EACH)]

pytestmark = pytest.mark.anyio

modern = partial(consumer, group_protocol="consumer")


def cluster_of(**settings: Any) -> EmbeddedCluster:
    return EmbeddedCluster(
        **{"brokers": 2, "topics": {"t": PARTITIONS}, "group_consumer_heartbeat_interval_ms": 50, **settings}
    )


async def read_into(reader: Consumer, seen: list[tuple[int, int]]) -> None:
    async for record in reader:
        seen.append((record.partition, record.offset))


def shares(*readers: Consumer) -> list[int]:
    return [len(each.assignment()) for each in readers]


@pytest.mark.parametrize("protocols", [("consumer", "consumer"), ("classic", "auto"), ("auto", "classic")])
async def test_two_share_and_one_takes_over(protocols: tuple[str, str]) -> None:
    """Each record once, since everybody comes back for more before giving up."""
    async with cluster_of() as cluster:
        await spread(cluster, "t", PARTITIONS, EACH)
        seen: list[tuple[int, int]] = []
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(consumer(cluster, "t", group_protocol=protocols[0]))
            seen += [(record.partition, record.offset) for record in await first.getmany(max_records=60)]
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(read_into, first, seen)
            async with consumer(cluster, "t", group_protocol=protocols[1]) as second:
                async with anyio.create_task_group() as others:
                    others.start_soon(read_into, second, seen)
                    await until(lambda: shares(first, second) == [2, 2])
                    assert not set(first.assignment()) & set(second.assignment())
                    await until(lambda: len(set(seen)) == len(ALL))
                    others.cancel_scope.cancel()
            await until(lambda: shares(first) == [PARTITIONS])
            tasks.cancel_scope.cancel()
        assert sorted(set(seen)) == ALL
        assert len(seen) == len(ALL)
        committed = await committed_in(cluster, [TopicPartition("t", number) for number in range(PARTITIONS)])
        assert all(offset in (EACH - 1, EACH) for offset in committed.values())


async def test_what_a_killed_consumer_had_in_hand_comes_again() -> None:
    async with cluster_of(group_consumer_session_timeout_ms=1000) as cluster, AsyncExitStack() as stack:
        await spread(cluster, "t", PARTITIONS, EACH)
        first = await stack.enter_async_context(modern(cluster, "t"))
        killed = await stack.enter_async_context(modern(cluster, "t"))
        await until(lambda: shares(first, killed) == [2, 2])
        in_hand = await read(killed, 5)
        await killed._client.aclose()
        seen: list[tuple[int, int]] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_into, first, seen)
            await until(lambda: len(set(seen)) == len(ALL))
            tasks.cancel_scope.cancel()
        assert {(record.partition, record.offset) for record in in_hand} <= set(seen)


async def test_a_consumer_that_was_thrown_out_loses_all_and_goes_on_from_what_was_committed() -> None:
    async with cluster_of() as cluster:
        await spread(cluster, "t", PARTITIONS, EACH)
        lost: list[object] = []

        class Hears(RebalanceListener):
            async def partitions_lost(self, partitions: object) -> None:
                lost.append(partitions)

        async with modern(cluster, "t", enable_auto_commit=False, listener=Hears()) as only:
            await read(only, 20)
            assert await only.commit() == {}
            before = {tp: await only.position(tp) for tp in only.assignment()}
            await read(only, 20)
            cluster._state.groups.expire("g", None)
            await until(lambda: lost)
            await until(lambda: shares(only) == [PARTITIONS])
            assert {tp: await only.position(tp) for tp in only.assignment()} == before


async def test_who_asks_for_nothing_leaves_and_may_come_back() -> None:
    async with cluster_of() as cluster:
        await spread(cluster, "t", PARTITIONS, EACH)
        async with modern(cluster, "t", max_poll_interval_ms=300) as only:
            await read(only, 1)
            await until(lambda: shares(only) == [0])
            with pytest.raises(PollIntervalExceededError):
                await only.getone(timeout=30)
            assert len(await only.getmany(max_records=5, timeout=30)) > 0


async def test_topics_that_the_broker_finds() -> None:
    async with cluster_of(topics={"a-1": 1, "b-1": 1}) as cluster:
        for topic in ("a-1", "b-1"):
            await spread(cluster, topic, 1, 3)
        async with modern(cluster, pattern=SubscriptionPattern("a-.*")) as reader:
            assert {record.topic for record in await read(reader, 3)} == {"a-1"}
            cluster.create_topic("a-2", 1)
            await spread(cluster, "a-2", 1, 3)
            assert {record.topic for record in await read(reader, 3)} == {"a-2"}
        assert "JoinGroup" not in {request.api for request in cluster.requests}
        for settings in ({"group_protocol": "classic"}, {"group_protocol": "consumer", "group_id": None}):
            with pytest.raises(ConfigError, match="SubscriptionPattern"):
                consumer(cluster, pattern=SubscriptionPattern("a"), **settings)
    with pytest.raises(ConfigError, match="not a regular expression"):
        SubscriptionPattern("")


async def test_a_release_without_it() -> None:
    async with cluster_of(version="2.8") as cluster:
        with pytest.raises(UnsupportedVersionError, match="group_protocol='consumer'"):
            async with modern(cluster, "t") as only:
                await only.getone(timeout=30)
        async with consumer(cluster, "t", group_protocol="auto") as only:
            await until(lambda: shares(only) == [PARTITIONS])


async def test_a_static_member_that_cannot_enter_yet_says_why(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_settled = ConsumerMember.wait_settled

    async def give_up_once_refused(member: ConsumerMember, *, timeout: float) -> None:
        await until(lambda: member.coordinator.trouble is not None, timeout)
        await wait_settled(member, timeout=0)

    async with cluster_of() as cluster, modern(cluster, "t", group_instance_id="one"):
        monkeypatch.setattr(ConsumerMember, "wait_settled", give_up_once_refused)
        async with modern(cluster, "t", group_instance_id="one") as twin:
            (line,) = [each for each in caplog.records if each.message.startswith("group.not_joined_yet")]
            assert "last: UNRELEASED_INSTANCE_ID" in line.getMessage()
            with pytest.raises(TimeoutError, match=r"no record came .*; last: UNRELEASED_INSTANCE_ID"):
                await twin.getone(timeout=0.1)
