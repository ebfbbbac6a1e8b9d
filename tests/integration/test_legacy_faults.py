"""Members of old groups on real brokers, while sessions end, leaders move, brokers are away and logs lose their head.

The numbers are those of the checklist that the old consumer is held to.  In CI 0.8.2.2 alone, and no leaders that move;
``make zookeeper-soak`` takes all of it, on every release that has a JVM's old consumer, and brokers of later ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from kazoo.client import KazooClient

from pykafka08 import TopicPartition
from pykafka08.errors import NoNodeError
from pykafka08.records.record import Record
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
from pykafka08.zookeeper.assignment import thread_ids
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.java_old_consumer import JavaMember, java_member
from tests.integration.legacy_group import (
    DEADLINE_S,
    PAIRS,
    STEADY,
    Values,
    by_range,
    has_all,
    named,
    owners,
    send,
    until,
    wait_owners,
    zookeeper_of,
)

PARTITIONS = 4
PATIENT = {**STEADY, "zookeeper_session_timeout_ms": 18_000}
"""No session ends because this machine stood still."""

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(420)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what differs between the two is tested on embedded clusters."""
    return "asyncio"


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: f"{pair[0]}+{pair[1]}")
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The release of the brokers, and that of the JVM's consumer."""
    return request.param  # type: ignore[no-any-return]


@asynccontextmanager
async def mixed_group(
    brokers: RealCluster, java: str, topic: str, group: str
) -> AsyncIterator[tuple[ZooKeeper, JavaMember, LegacyConsumer, Values, dict[TopicPartition, str]]]:
    """A JVM's member of one thread and ours of two that is read from; settled, and some records have been read.

    Also ZooKeeper, what ours have read, and the owners that there must be.
    """
    where, ours = zookeeper_of(brokers), Values()
    options: dict[str, Any] = {"zookeeper": where, "group_id": group, "consumer_id": "ours", "streams": 2, **PATIENT}
    async with ZooKeeper(where) as zk, AsyncExitStack() as stack:
        member = java_member(java, where, group, "java", "--topic", topic, "--from-beginning")
        other = await stack.enter_async_context(member)
        await wait_owners(zk, group, by_range(topic, PARTITIONS, [other.thread(0)]))
        consumer = await stack.enter_async_context(LegacyConsumer(topic, **options))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        for stream in consumer.streams:
            tasks.start_soon(ours.follow, stream)
        split = by_range(topic, PARTITIONS, [other.thread(0)], thread_ids(consumer.member_id, 2))
        await wait_owners(zk, group, split)
        assert len(set(split.values())) == 3
        await wait_read(brokers, topic, ours, other, "a")
        yield zk, other, consumer, ours, split
        tasks.cancel_scope.cancel()


async def wait_read(brokers: RealCluster, topic: str, ours: Values, other: JavaMember, prefix: str) -> None:
    """Send some records, until the group has them."""
    await send(brokers, topic, PARTITIONS, named(prefix, 40))
    await until(lambda: has_all(ours, other, named(prefix, 40)), f"records {prefix}")


async def nodes_of(zk: ZooKeeper, group: str, topic: str) -> dict[int, tuple[int, int]]:
    """When each owner node was made, and by which session."""
    found = {}
    for name in await zk.children(paths.owners(group, topic)):
        with suppress(NoNodeError):  # the JVM's member gives up and claims anew what it keeps
            stat = (await zk.read(paths.owner(group, topic, int(name)))).stat
            found[int(name)] = (stat.czxid, stat.ephemeral_owner)
    return found


async def is_led_by(zk: ZooKeeper, topic: str, broker: int) -> bool:
    """Whether nobody else is in sync for any partition."""
    states = [json.loads((await zk.read(paths.partition_state(topic, p))).data) for p in range(PARTITIONS)]
    return all(state["leader"] == broker and state["isr"] == [broker] for state in states)


def end_session(consumer: LegacyConsumer, zookeeper: str) -> None:
    """Close it from elsewhere, as an administrator can who has the session's id and password."""
    kazoo = consumer._zk._driver._kazoo
    assert kazoo is not None
    client = KazooClient(zookeeper, client_id=kazoo._client.client_id)
    client.start(timeout=DEADLINE_S)
    client.stop()
    client.close()


async def is_of_another_session(zk: ZooKeeper, path: str, session_id: int) -> bool:
    stat = await zk.exists(path)
    return stat is not None and stat.ephemeral_owner != session_id


async def test_a_session_that_ends_beside_the_jvm(pair: tuple[str, str], clusters: Clusters) -> None:
    """10: ours registers anew and owns its share again, and reads nothing before it does."""
    brokers = clusters.running(pair[0])
    topic, group = brokers.new_topic("expired", PARTITIONS), "expired"
    async with mixed_group(brokers, pair[1], topic, group) as (zk, other, consumer, ours, split):
        not_owned: list[str] = []

        async def look(record: Record) -> None:
            owner = "nobody"
            with suppress(NoNodeError):
                owner = (await zk.read(paths.owner(group, topic, record.partition))).data.decode()
            if not owner.startswith(consumer.member_id):
                not_owned.append(f"{record.partition}/{record.offset} is {owner}'s")

        registration = paths.consumer_id(group, consumer.member_id)
        before = (await zk.read(registration)).stat.ephemeral_owner
        owned = await nodes_of(zk, group, topic)
        await anyio.to_thread.run_sync(end_session, consumer, zookeeper_of(brokers))
        ours.look = look
        await until(lambda: is_of_another_session(zk, registration, before), "a new registration")
        await send(brokers, topic, PARTITIONS, named("b", 40))
        await wait_owners(zk, group, split)
        after = await nodes_of(zk, group, topic)
        for tp, thread in split.items():
            if thread.startswith(consumer.member_id):
                assert after[tp.partition][1] not in (before, owned[tp.partition][1])
        await until(lambda: has_all(ours, other, named("b", 40)), "what was sent meanwhile")
        await wait_read(brokers, topic, ours, other, "c")
        assert not_owned == []
        counts = Counter(ours.read)
        assert [value for value in named("c", 40) if (counts[value] == 1) == (value in other.lines())] == []


@pytest.mark.soak  # a cluster of its own
async def test_leaders_that_move_change_no_owner(pair: tuple[str, str], clusters: Clusters) -> None:
    """14: a broker that is stopped, and an election of preferred leaders; both go on where they were."""
    brokers = clusters.running(pair[0], brokers=2)
    topic, group = brokers.new_topic("moving", PARTITIONS, 2), "moving"
    async with mixed_group(brokers, pair[1], topic, group) as (zk, other, consumer, ours, split):
        owned = await nodes_of(zk, group, topic)
        placed = json.loads((await zk.read(paths.topic(topic))).data)["partitions"]  # 0.10's brokers forget the order
        preferred = {p: placed[str(p)][0] for p in range(PARTITIONS)}
        assert set(preferred.values()) == {1, 2}
        await wait_read(brokers, topic, ours, other, "b")

        await anyio.to_thread.run_sync(brokers.stop, 1)
        # else a record waits for the replica that is gone, is sent anew, and is twice in the log
        await until(lambda: is_led_by(zk, topic, 2), "broker 2 alone in sync")
        await wait_read(brokers, topic, ours, other, "c")

        await anyio.to_thread.run_sync(brokers.start, 1)
        await until(lambda: brokers.in_sync(topic) == [2] * PARTITIONS, "replicas in sync")
        async with ZooKeeperAdmin(zookeeper_of(brokers), force=brokers.release >= (2, 4)) as admin:
            await admin.elect_preferred_leaders([(topic, p) for p in range(PARTITIONS)])
        await until(lambda: brokers.leaders(topic, 2) == preferred, "the preferred leaders")
        await wait_read(brokers, topic, ours, other, "d")

        assert await owners(zk, group, topic) == split
        assert await nodes_of(zk, group, topic) == owned
        counts = Counter([*ours.read, *other.lines()])
        values = [value for prefix in "bcd" for value in named(prefix, 40)]
        assert {value: counts[value] for value in values if counts[value] != 1} == {}, "the same offsets"
        assert consumer.health().trouble is None


async def test_no_brokers_at_first_and_logs_without_what_is_committed(
    pair: tuple[str, str], clusters: Clusters
) -> None:
    """13, 15: members that own nothing until a broker registers, and whose offsets are before and beyond its log."""
    brokers = clusters.running(pair[0])
    where, topic = zookeeper_of(brokers), brokers.new_topic("headless", 1, 1, **{"segment.bytes": "2000"})
    values = [f"{number:0100}" for number in range(40)]
    await send(brokers, topic, 1, values)
    await anyio.to_thread.run_sync(brokers.stop, 1)
    start = await anyio.to_thread.run_sync(cut_head, Path(brokers.folder, "data", "1", f"{topic}-0"))
    assert 0 < start < 40
    groups = {f"{at}-{reset}": (at, reset) for at in (0, 10_000) for reset in ("smallest", "largest")}
    found: dict[str, int] = {}
    async with ZooKeeper(where) as zk, AsyncExitStack() as stack:
        members = {}
        for group, (at, reset) in groups.items():
            await zk.create(paths.offset(group, topic, 0), str(at).encode(), make_parents=True)
            options = {**PATIENT, "auto_offset_reset": reset}
            consumer = LegacyConsumer(topic, zookeeper=where, group_id=group, **options)
            members[group] = await stack.enter_async_context(consumer)
            assert await zk.children(paths.consumer_ids(group)) == [consumer.member_id]
            assert await owners(zk, group, topic) == {}
            assert consumer.assignment() == ()

        async def first(group: str) -> None:
            found[group] = (await members[group].getone()).offset

        tasks = await stack.enter_async_context(anyio.create_task_group())
        for group in groups:
            tasks.start_soon(first, group)
        await anyio.to_thread.run_sync(brokers.start, 1)
        for group, member in members.items():
            await wait_owners(zk, group, {TopicPartition(topic, 0): f"{member.member_id}-0"})

        async def all_have_read() -> bool:
            await send(brokers, topic, 1, ["more"])
            return len(found) == len(groups)

        await until(all_have_read, "a record for each")
    for group, (_, reset) in groups.items():
        assert (found[group] == start) if reset == "smallest" else (found[group] >= 40), group


def cut_head(log: Path) -> int:
    """Delete all segments of a stopped broker's log but the last two; where it starts now."""
    starts = sorted(int(file.stem) for file in log.glob("*.log"))
    for base in starts[:-2]:
        for file in log.glob(f"{base:020}.*"):
            file.unlink()
    return starts[-2]
