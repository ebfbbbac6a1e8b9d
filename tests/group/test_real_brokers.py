"""Groups on real brokers of every era, also one that is shared with Java's own consumer."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import IO, Any

import anyio
import pytest
from kazoo.client import KazooClient

from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.coordinator import OffsetAndMetadata
from tests.brokers.tools import release_tool_command
from tests.group.members import Member, all_of, member, wait_shared
from tests.integration.clusters import Clusters, RealCluster

RELEASES = ("0.9.0.1", "0.10.2.2", "2.8.2", "4.3.1")
STEADY = {"session_timeout_ms": 30_000, "heartbeat_interval_ms": 200, "max_poll_interval_ms": 15_000}
FIRST_GROUP_S = 90
"""__consumer_offsets is being made, and a new group waits three seconds for members (0.11 and later)."""
PARTITIONS = 12

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what differs between the two is tested on embedded clusters, which need no minutes."""
    return "asyncio"


@pytest.fixture(params=RELEASES, scope="session")
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def brokers(version: str, clusters: Clusters) -> RealCluster:
    return clusters.running(version)


async def test_four_members_come_and_go(brokers: RealCluster) -> None:
    topic = brokers.new_topic("group", PARTITIONS)
    parts = all_of(topic, PARTITIONS)
    async with AsyncExitStack() as stack:
        members: list[Member] = []
        for count in range(1, 5):
            joins = member(brokers.bootstrap, topic, group_id=topic, **STEADY)
            members.append(await stack.enter_async_context(joins))
            members[-1].heard.rivals = members
            await wait_shared(members, parts, FIRST_GROUP_S)
            assert {len(each.partitions) for each in members} == {PARTITIONS // count}
        last = members.pop()
        mine = last.partitions[0]
        assert await last.group.commit({mine: OffsetAndMetadata(42, -1, "note")}) == {}
        await last.group.aclose()
        await wait_shared(members, parts, FIRST_GROUP_S)
        found = await members[0].group.committed(parts)
        assert found == dict.fromkeys(parts) | {mine: OffsetAndMetadata(42, -1, "note")}


async def test_cooperative_members_give_up_only_what_they_must(brokers: RealCluster) -> None:
    topic = brokers.new_topic("cooperative", 6)
    parts = all_of(topic, 6)
    settings: dict[str, Any] = {**STEADY, "partition_assignment_strategy": ("cooperative-sticky",)}
    async with member(brokers.bootstrap, topic, group_id=topic, **settings) as first:
        await wait_shared([first], parts, FIRST_GROUP_S)
        async with member(brokers.bootstrap, topic, group_id=topic, **settings) as second:
            await wait_shared([first, second], parts, FIRST_GROUP_S)
            assert len(first.partitions) == len(second.partitions) == 3
            assert [heard for what, heard in first.heard.calls if what == "revoked"] == [second.partitions]


async def test_a_member_that_falls_silent_loses_its_partitions_and_joins_again(brokers: RealCluster) -> None:
    """Its heartbeats are too rare: by its own clock the session is over when it is by the broker's."""
    topic = brokers.new_topic("silent", 4)
    parts = all_of(topic, 4)
    async with member(brokers.bootstrap, topic, group_id=topic, **STEADY) as first:
        settings = {**STEADY, "session_timeout_ms": 6_000}
        async with member(brokers.bootstrap, topic, group_id=topic, **settings) as mute:
            await wait_shared([first, mute], parts, FIRST_GROUP_S)
            mute.group._machine.heartbeats.interval = 60.0  # no settings allow that
            generation, mine = mute.group.generation, mute.partitions
            with anyio.fail_after(FIRST_GROUP_S):
                while not any(what == "lost" for what, _ in mute.heard.calls):
                    await mute.group.news
            assert ("lost", mine) in mute.heard.calls
            await wait_shared([first, mute], parts, FIRST_GROUP_S)
            assert mute.group.generation > generation


@pytest.mark.parametrize("old", ["0.8.0", "0.8.1.1", "0.8.2.2"])
async def test_offsets_where_there_are_no_groups(old: str, clusters: Clusters) -> None:
    """0.8.1 keeps them in ZooKeeper, 0.8.2 in Kafka, 0.8.0 nowhere; none of them says which it is."""
    kafka = clusters.running(old)
    topic = kafka.new_topic("offsets", 2)
    parts = all_of(topic, 2)
    async with member(kafka.bootstrap, group_id=topic) as outsider:
        if old == "0.8.0":
            with pytest.raises(UnsupportedVersionError, match=r"0\.8\.0"):
                await outsider.group.committed(parts)
            return
        assert await outsider.group.committed(parts) == dict.fromkeys(parts)
        assert await outsider.group.commit({parts[1]: OffsetAndMetadata(4, -1, "note")}) == {}
        found = await outsider.group.committed(parts)
        assert found[parts[0]] is None
        kept = found[parts[1]]
        assert kept is not None
        assert kept.offset == 4
    assert kafka.zookeeper is not None
    client = KazooClient(kafka.zookeeper)
    client.start()
    try:
        path = f"/consumers/{topic}/offsets/{topic}/1"
        assert (client.exists(path) is not None) == (old == "0.8.1.1")
    finally:
        client.stop()
        client.close()


@contextmanager
def java_member(
    brokers: RealCluster,
    topic: str,
    settings: tuple[str, ...] = ("heartbeat.interval.ms=500",),
    output: int | IO[bytes] = subprocess.DEVNULL,
) -> Iterator[None]:
    """A console consumer of the release in the group that is called like the topic; ``range`` is its assignor."""
    words = ["--bootstrap-server", brokers.bootstrap, "--topic", topic]
    settings = (f"group.id={topic}", *settings)
    if brokers.release < (0, 10, 1):
        file = brokers.folder / "java-group.properties"
        file.write_text("\n".join((*settings, "session.timeout.ms=6000", "")), encoding="utf-8")
        words += ["--new-consumer", "--consumer.config", str(file)]
    else:
        option = "--command-property" if brokers.release >= (4, 2) else "--consumer-property"
        words += [word for setting in settings for word in (option, setting)]
    command = release_tool_command(brokers.version, "console-consumer", *words)
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


async def test_one_group_with_a_java_consumer(brokers: RealCluster) -> None:
    """First ours leads and Java follows; then, ours having gone, a new one of ours follows Java's lead."""
    topic = brokers.new_topic("shared", 4)
    parts = all_of(topic, 4)
    async with AsyncExitStack() as stack:
        joins = AsyncExitStack()
        first = await joins.enter_async_context(member(brokers.bootstrap, topic, group_id=topic, **STEADY))
        await wait_shared([first], parts, FIRST_GROUP_S)
        with java_member(brokers, topic):
            await wait_shared_with_java(first, 2)
            assert first.group.is_leader
            await joins.aclose()
            second = await stack.enter_async_context(member(brokers.bootstrap, topic, group_id=topic, **STEADY))
            await wait_shared_with_java(second, 2)
            assert not second.group.is_leader
        await wait_shared([second], parts, FIRST_GROUP_S)


async def wait_shared_with_java(ours: Member, share: int) -> None:
    """Until ours is stable with so many partitions: the others are Java's."""
    with anyio.fail_after(FIRST_GROUP_S):
        while not (ours.group._machine.is_settled and len(ours.heard.owned) == share):
            ours.group.check()
            await ours.group.news
