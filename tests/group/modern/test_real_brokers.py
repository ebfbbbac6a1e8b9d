"""The new protocol on real brokers, also in one group with Java's consumers of both protocols."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

import anyio
import pytest

from pykafka08 import Consumer, NewRecord, Producer
from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.coordinator import OffsetAndMetadata
from pykafka08.group.pattern import SubscriptionPattern
from pykafka08.records.record import TopicPartition
from tests.group.members import Member, all_of, member, wait_shared
from tests.group.test_real_brokers import FIRST_GROUP_S, java_member, wait_shared_with_java
from tests.integration.clusters import Clusters, RealCluster

RELEASE = "4.3.1"
PARTITIONS = 12
MODERN = {"group_protocol": "consumer", "session_timeout_ms": 6_000, "max_poll_interval_ms": 15_000}

pytestmark = [pytest.mark.anyio, pytest.mark.cluster(release=RELEASE)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what differs between the two is tested on embedded clusters, which need no minutes."""
    return "asyncio"


@pytest.fixture
def brokers(clusters: Clusters) -> RealCluster:
    return clusters.running(RELEASE)


async def wait_even(members: list[Member], parts: list[TopicPartition]) -> None:
    """Until each has the same share: Kafka 4.3 takes a second before it assigns anew."""
    with anyio.fail_after(FIRST_GROUP_S):
        while True:
            await wait_shared(members, parts, FIRST_GROUP_S)
            if {len(each.partitions) for each in members} == {len(parts) // len(members)}:
                return
            with anyio.move_on_after(1):
                await members[0].group.news


async def test_three_members_come_one_is_killed_one_leaves(brokers: RealCluster) -> None:
    topic = brokers.new_topic("modern", PARTITIONS)
    parts = all_of(topic, PARTITIONS)
    async with AsyncExitStack() as stack:
        members: list[Member] = []
        for _ in range(3):
            members.append(await stack.enter_async_context(member(brokers.bootstrap, topic, group_id=topic, **MODERN)))
            members[-1].heard.rivals = members
            await wait_even(members, parts)
        mine = members[0].partitions[0]
        assert await members[0].group.commit({mine: OffsetAndMetadata(42, -1, "note")}) == {}
        killed = members.pop()
        await killed.client.aclose()
        killed.heard.rivals = []
        await wait_shared(members, parts, FIRST_GROUP_S)
        await members.pop(0).group.aclose()
        await wait_shared(members, parts, FIRST_GROUP_S)
        found = await members[0].group.committed(parts)
        assert found == dict.fromkeys(parts) | {mine: OffsetAndMetadata(42, -1, "note")}


async def test_a_static_member_comes_back_to_its_partitions(brokers: RealCluster) -> None:
    topic = brokers.new_topic("static", 4)
    parts = all_of(topic, 4)
    async with member(brokers.bootstrap, topic, group_id=topic, **MODERN) as first:
        async with member(brokers.bootstrap, topic, group_id=topic, group_instance_id="i", **MODERN) as second:
            await wait_even([first, second], parts)
            before = second.partitions
        async with member(brokers.bootstrap, topic, group_id=topic, group_instance_id="i", **MODERN) as second:
            await wait_shared([first, second], parts, FIRST_GROUP_S)
            assert second.partitions == before


async def test_topics_by_a_pattern_and_new_ones(brokers: RealCluster) -> None:
    topic = brokers.new_topic("pattern", 2)
    async with member(brokers.bootstrap, group_id=topic, **MODERN) as only:
        only.group.subscribe([SubscriptionPattern(f"{topic}|{topic}x-.*")])
        await wait_shared([only], all_of(topic, 2), FIRST_GROUP_S)
        later = brokers.new_topic(f"{topic}x", 1)
        await wait_shared([only], all_of(topic, 2) + all_of(later, 1), FIRST_GROUP_S)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_one_group_with_a_java_consumer(protocol: str, brokers: RealCluster) -> None:
    """Java joins ours, and ours joins Java: with the classic protocol its group is moved to the new one, and back."""
    topic = brokers.new_topic("shared", 4)
    parts = all_of(topic, 4)
    async with AsyncExitStack() as stack:
        joins = AsyncExitStack()
        first = await joins.enter_async_context(member(brokers.bootstrap, topic, group_id=topic, **MODERN))
        await wait_shared([first], parts, FIRST_GROUP_S)
        with java_member(brokers, topic, (f"group.protocol={protocol}",)):
            await wait_shared_with_java(first, 2)
            await joins.aclose()
            second = await stack.enter_async_context(
                member(brokers.bootstrap, topic, group_id=topic, **{**MODERN, "group_protocol": "auto"})
            )
            await wait_shared_with_java(second, 2)
        await wait_shared([second], parts, FIRST_GROUP_S)


@pytest.mark.cluster(release="3.9.2")
async def test_a_release_that_has_it_switched_off(clusters: Clusters) -> None:
    """3.9 lists the API, and answers that it is not there."""
    kafka = await anyio.to_thread.run_sync(clusters.running, "3.9.2")
    topic = kafka.new_topic("off", 2)
    async with member(kafka.bootstrap, topic, group_id=topic, group_protocol="auto") as auto:
        await wait_shared([auto], all_of(topic, 2), FIRST_GROUP_S)
    async with member(kafka.bootstrap, topic, group_id=f"{topic}-new", **MODERN) as modern:
        with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.0 has it"):
            await modern.group.wait_stable(timeout=30)


async def test_three_consumers_read_all_though_one_is_killed(brokers: RealCluster) -> None:
    """Nothing is lost: what the dead one had in hand comes again, and what it had finished and committed does not."""
    topic = brokers.new_topic("read", PARTITIONS)
    settings = {
        "bootstrap_servers": brokers.bootstrap,
        "group_id": topic,
        "group_protocol": "consumer",
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": 100,
        "session_timeout_ms": 6_000,
    }
    sent = {b"%d" % number for number in range(1_200)}
    seen: list[bytes] = []

    async def read(reader: Consumer) -> None:
        async for record in reader:
            assert record.value is not None
            seen.append(record.value)

    async with Producer(bootstrap_servers=brokers.bootstrap) as producer, AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(Consumer(topic, **settings)) for _ in range(3)]
        tasks = await stack.enter_async_context(anyio.create_task_group())
        for reader in readers[1:]:
            tasks.start_soon(read, reader)
        await until(lambda: {len(each.assignment()) for each in readers} == {PARTITIONS // 3})
        await producer.send_many(topic, [NewRecord(value, partition=int(value) % PARTITIONS) for value in sent])
        taken = [(await readers[0].getone(timeout=30)).value for _ in range(10)]
        await until(lambda: len(seen) >= len(sent) * 2 // 3)
        await readers[0]._client.aclose()
        await until(lambda: {*seen, *taken} == sent and taken[-1] in seen)
        assert [len(each.assignment()) for each in readers[1:]] == [PARTITIONS // 2] * 2
        tasks.cancel_scope.cancel()
    assert len(set(seen)) == len(seen), "those who live on handed nothing out twice"


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(FIRST_GROUP_S):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.02)
