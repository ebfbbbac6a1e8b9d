"""Old groups of JVM members and ours on real brokers: both split the partitions as one, and carry on from each other.

The numbers are those of the checklist that the old consumer is held to.  In CI 0.8.2.2 alone; ``make zookeeper-soak``
takes every release that has a JVM's old consumer, and brokers of later ones in ZooKeeper mode.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import TopicPartition
from pykafka08.errors import ConsumerRebalanceFailedError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.assignment import round_robin_assignment, thread_ids
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
from tests.brokers.releases import version_tuple
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
    told_by_broker,
    told_by_tool,
    until,
    wait_owners,
    zookeeper_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(420)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what differs between the two is tested on embedded clusters."""
    return "asyncio"


@pytest.fixture(scope="module", params=PAIRS, ids="+".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def brokers(pair: tuple[str, str], clusters: Clusters) -> RealCluster:
    return clusters.running(pair[0])


@pytest.fixture
def java(pair: tuple[str, str]) -> str:
    """The release of the JVM's consumer."""
    return pair[1]


def with_java_from(*oldest: int) -> pytest.MarkDecorator:
    """A test of JVM's consumers of this release and later."""
    pairs = [pair for pair in PAIRS if version_tuple(pair[1]) >= oldest]
    return pytest.mark.parametrize("pair", pairs, indirect=True, ids="+".join, scope="module")


async def test_a_mixed_group_splits_by_range_and_survives_a_kill(brokers: RealCluster, java: str) -> None:
    """2, 3, 5, 9, 11: registration, the same split, partitions added, kill -9 of the JVM, its offsets taken over."""
    where, topic, group = zookeeper_of(brokers), brokers.new_topic("mixed", 4), "mixed"
    await send(brokers, topic, 4, named("a", 80))
    ours = Values()
    options: dict[str, Any] = {"zookeeper": where, "group_id": group, "streams": 2, **STEADY}
    async with ZooKeeper(where) as zk:
        async with java_member(java, where, group, "java", "--topic", topic, "--from-beginning") as other:
            await wait_owners(zk, group, by_range(topic, 4, [other.thread(0)]))
            async with (
                LegacyConsumer(topic, consumer_id="ours", **options) as consumer,
                anyio.create_task_group() as tasks,
            ):
                for stream in consumer.streams:
                    tasks.start_soon(ours.follow, stream)
                assert consumer.member_id == f"{group}_ours"
                mine = thread_ids(consumer.member_id, 2)
                await wait_owners(zk, group, by_range(topic, 4, [other.thread(0)], mine))
                await check_registrations(zk, group, other, consumer, topic)
                await send(brokers, topic, 4, named("b", 80))
                await until(
                    lambda: has_all(ours, other, [*named("a", 80), *named("b", 80)]), "all records, once started"
                )

                await anyio.to_thread.run_sync(add_partitions, brokers, topic, 6)
                await wait_owners(zk, group, by_range(topic, 6, [other.thread(0)], mine))
                await send(brokers, topic, 6, named("c", 60))
                await until(lambda: has_all(ours, other, named("c", 60)), "records of partitions that were added")
                await until(lambda: all_committed(zk, group, topic, 6), "commits")
                assert await anyio.to_thread.run_sync(told_by_broker, brokers, group, topic, 6) == [
                    50,
                    50,
                    50,
                    50,
                    10,
                    10,
                ]
                assert await anyio.to_thread.run_sync(told_by_broker, brokers, "nobody", topic, 1) == [(-1, 3)]
                told = await anyio.to_thread.run_sync(told_by_tool, java, where, group)
                assert {member for member in (other.member_id, consumer.member_id) if member not in told} == set(), told

                seen_before = len(ours.read)
                other.kill()
                await wait_owners(zk, group, by_range(topic, 6, mine))
                await send(brokers, topic, 6, named("d", 60))
                await until(lambda: set(named("d", 60)) <= set(ours.read), "what the JVM would have read")
                again = [each for each in ours.read[seen_before:] if not each.startswith("d")]
                assert again == [], "what the JVM had committed is not read again"
                tasks.cancel_scope.cancel()


async def all_committed(zk: ZooKeeper, group: str, topic: str, partitions: int) -> bool:
    numbers = {0: 50, 1: 50, 2: 50, 3: 50, 4: 10, 5: 10}
    for partition in range(partitions):
        stat = await zk.exists(paths.offset(group, topic, partition))
        if stat is None:
            return False
        if (await zk.read(paths.offset(group, topic, partition))).data != str(numbers[partition]).encode():
            return False
    return True


async def check_registrations(
    zk: ZooKeeper, group: str, java: JavaMember, consumer: LegacyConsumer, topic: str
) -> None:
    """The same keys and types; ephemeral."""
    documents = {}
    for name in (java.member_id, consumer.member_id):
        node = await zk.read(paths.consumer_id(group, name))
        assert node.stat.ephemeral_owner != 0
        documents[name] = json.loads(node.data)
    of_java, own = documents[java.member_id], documents[consumer.member_id]
    assert own.keys() == of_java.keys()
    assert {name: type(value) for name, value in own.items()} == {k: type(v) for k, v in of_java.items()}
    assert own["subscription"] == {topic: 2}
    assert of_java["pattern"] == "white_list", "a console consumer registers a wildcard for --topic too"
    assert own["pattern"] == "static"


def add_partitions(brokers: RealCluster, topic: str, count: int) -> None:
    where = ["--zookeeper", "{zookeeper}"] if brokers.release < (3, 0) else ["--bootstrap-server", "{bootstrap}"]
    brokers.tool("topics", "--alter", "--topic", topic, "--partitions", str(count), *where)


async def test_the_jvm_takes_over_from_a_member_of_ours_that_was_killed(brokers: RealCluster, java: str) -> None:
    """4, 5, 11: an idle JVM member takes over within the session, and reads on where ours has committed."""
    where, topic, group = zookeeper_of(brokers), brokers.new_topic("killed", 1), "killed"
    await send(brokers, topic, 1, named("a", 50))
    program = (
        "import anyio\n"
        "from pykafka08.zookeeper.legacy_consumer import LegacyConsumer\n"
        "async def main():\n"
        f"    async with LegacyConsumer({topic!r}, zookeeper={where!r}, group_id={group!r}, consumer_id='-ours',\n"
        "            auto_offset_reset='smallest', auto_commit_enable=False) as consumer:\n"
        "        records = [await consumer.getone() for _ in range(20)]\n"
        "        print(await consumer.commit(), flush=True)\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    process = subprocess.Popen(  # noqa: ASYNC220 - it is only started here
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], text=True
    )
    try:
        assert process.stdout is not None
        assert await anyio.to_thread.run_sync(process.stdout.readline) == "{}\n"
        async with ZooKeeper(where) as zk:
            async with java_member(java, where, group, "java", "--topic", topic) as other:
                await until(lambda: zk.exists(paths.consumer_id(group, other.member_id)), "the JVM's registration")
                assert await owners(zk, group, topic) == {TopicPartition(topic, 0): f"{group}_-ours-0"}
                process.send_signal(signal.SIGKILL)
                await wait_owners(zk, group, {TopicPartition(topic, 0): other.thread(0)})
                await until(lambda: len(other.lines()) >= 30, "the rest")
                assert other.lines() == named("a", 50)[20:]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


@pytest.mark.soak  # three JVM starts
async def test_an_idle_stream_takes_over_at_once(brokers: RealCluster, java: str) -> None:
    """4, 5: three threads for two partitions; a member that stops hands over by itself, on either side."""
    where, topic, group = zookeeper_of(brokers), brokers.new_topic("idle", 2), "idle"
    await send(brokers, topic, 2, named("a", 40))
    ours = Values()
    options: dict[str, Any] = {"zookeeper": where, "group_id": group, "streams": 2, "consumer_id": "-ours", **STEADY}
    async with ZooKeeper(where) as zk:
        async with java_member(java, where, group, "java", "--topic", topic, "--from-beginning") as other:
            await until(lambda: len(other.lines()) == 40, "the JVM alone")
            async with LegacyConsumer(topic, **options) as consumer, anyio.create_task_group() as tasks:
                for stream in consumer.streams:
                    tasks.start_soon(ours.follow, stream)
                mine = thread_ids(consumer.member_id, 2)
                await wait_owners(zk, group, by_range(topic, 2, mine))
                assert (await zk.exists(paths.consumer_id(group, other.member_id))) is not None, "idle, and registered"
                assert consumer.health().trouble is None
                await send(brokers, topic, 2, named("b", 40))
                await until(lambda: len(ours.read) >= 40, "ours alone")
                assert Counter(ours.read) == Counter(named("b", 40)), "on from the JVM's offsets"
                tasks.cancel_scope.cancel()
            left = await owners(zk, group, topic)
            assert [thread for thread in left.values() if thread in mine] == [], "gone when it has left"
            await wait_owners(zk, group, by_range(topic, 2, [other.thread(0)]))
            await send(brokers, topic, 2, named("c", 40))
            await until(lambda: set(named("c", 40)) <= set(other.lines()), "the JVM alone again")
            assert not set(named("b", 40)) & set(other.lines()[40:]), "on from ours"
            async with LegacyConsumer(topic, **{**options, "consumer_id": "z-ours"}) as consumer:
                mine = thread_ids(consumer.member_id, 2)
                await wait_owners(zk, group, by_range(topic, 2, [other.thread(0)], mine))
                assert len(consumer.health().idle_threads) == 1
                await anyio.to_thread.run_sync(other.stop)
                await wait_owners(zk, group, by_range(topic, 2, mine))
                assert consumer.health().idle_threads == ()


async def test_wildcards_with_the_jvm(brokers: RealCluster, java: str) -> None:
    """8, 16: a new matching topic reaches both; a malformed peer is named, and forgotten when it goes."""
    where, group = zookeeper_of(brokers), "wild"
    first = brokers.new_topic("wild.one", 2)
    escapes = (0, 8, 2) <= version_tuple(java) < (1, 0, 1)  # those before write JSON that they cannot read themselves
    pattern = r"wild\.(one|two).*" if escapes else "wild.(one|two).*"
    async with ZooKeeper(where) as zk:
        async with java_member(java, where, group, "java", "--whitelist", pattern) as other:
            options: dict[str, Any] = {"zookeeper": where, "group_id": group, **STEADY}
            async with LegacyConsumer(white_list=pattern, consumer_id="ours", **options) as consumer:
                threads = [other.thread(0), f"{consumer.member_id}-0"]
                await wait_owners(zk, group, by_range(first, 2, threads))
                second = brokers.new_topic("wild.two", 2)
                brokers.new_topic("tame", 2)
                await wait_owners(zk, group, {**by_range(first, 2, threads), **by_range(second, 2, threads)})
                assert {tp.topic for tp in consumer.assignment()} == {first, second}
                broken = paths.consumer_id(group, f"{group}_broken")
                await zk.create(broken, b"{}", ephemeral=True)
                await until(lambda: f"{group}_broken" in (consumer.health().trouble or ""), "the node is named")
                assert consumer.assignment(), "what is read goes on being read"
                await zk.delete(broken)
                await until(lambda: consumer.health().trouble is None, "recovery")


@with_java_from(0, 8, 2)  # 0.8.1 has range alone
async def test_round_robin_with_the_jvm(brokers: RealCluster, java: str) -> None:
    """7: both compute the same turns; the order of hash codes is that of the JVM's release."""
    where, group = zookeeper_of(brokers), "turns"
    topics = {brokers.new_topic("turns-orders", 12): 12, brokers.new_topic("turns-clicks", 3): 3}
    order = "dash" if version_tuple(java) >= (1, 0) else "brackets"
    properties = {"partition.assignment.strategy": "roundrobin"}
    async with ZooKeeper(where) as zk:
        async with java_member(java, where, group, "a-java", "--whitelist", "turns-.*", properties=properties) as other:
            async with LegacyConsumer(
                white_list="turns-.*",
                zookeeper=where,
                group_id=group,
                consumer_id="b-ours",
                partition_assignment_strategy="roundrobin",
                roundrobin_order=order,
                rebalance_max_retries=10,
            ) as consumer:
                threads = [other.thread(0), f"{consumer.member_id}-0"]
                partitions = {topic: range(count) for topic, count in topics.items()}
                expected = round_robin_assignment(partitions, dict.fromkeys(topics, threads), order=order)
                await wait_owners(zk, group, expected)
                assert len(set(expected.values())) == 2


@pytest.mark.soak  # it takes a member's retries
@with_java_from(0, 8, 2)  # 0.8.1 has range alone
async def test_turns_in_the_other_order_than_the_jvm(brokers: RealCluster, java: str) -> None:
    """7: one side gives up, ours says whose the partitions are; no partition has two owners."""
    where, group = zookeeper_of(brokers), "turned"
    while not orders_differ(topic := brokers.new_topic("turned", 11), [f"{group}_a-java-0", f"{group}_b-ours-0"]):
        pass  # the codes of another name
    settings: dict[str, Any] = {
        "partition_assignment_strategy": "roundrobin",
        "roundrobin_order": "brackets" if version_tuple(java) >= (1, 0) else "dash",
        "rebalance_max_retries": 3,
        "rebalance_backoff_ms": 500,
    }
    properties = {"partition.assignment.strategy": "roundrobin"}
    async with ZooKeeper(where) as zk:
        async with java_member(java, where, group, "a-java", "--whitelist", topic, properties=properties) as other:
            await wait_owners(zk, group, {TopicPartition(topic, p): other.thread(0) for p in range(11)})
            consumer = LegacyConsumer(
                white_list=topic, zookeeper=where, group_id=group, consumer_id="b-ours", **settings
            )
            threads = [other.thread(0), f"{consumer.member_id}-0"]
            order = settings["roundrobin_order"]
            share = round_robin_assignment({topic: range(11)}, {topic: threads}, order=order)
            with suppress(ConsumerRebalanceFailedError):
                async with consumer:  # then the JVM's has given up first
                    found = await owners(zk, group, topic)
                    assert {tp: each for tp, each in share.items() if each == threads[1]}.items() <= found.items()
                    assert found != share, "the JVM's has its share too"
            await wait_owners(zk, group, {TopicPartition(topic, p): other.thread(0) for p in range(11)})


def orders_differ(topic: str, threads: list[str]) -> bool:
    both = [round_robin_assignment({topic: range(11)}, {topic: threads}, order=order) for order in ("brackets", "dash")]
    return both[0] != both[1]


@pytest.mark.soak  # of few releases
@with_java_from(1, 0, 1)  # earlier ones register the backslash as it is
async def test_a_backslash_in_a_wildcard_of_1_1(brokers: RealCluster, java: str) -> None:
    """8: 1.0.1 and later double it, and match nothing; ours reads them as they are, and works."""
    where, topic, group = zookeeper_of(brokers), brokers.new_topic("back.slash", 2), "backslash"
    pattern = r"back\.slash.*"
    async with ZooKeeper(where) as zk:
        async with java_member(java, where, group, "java", "--whitelist", pattern) as other:
            registration = paths.consumer_id(group, other.member_id)
            await until(lambda: zk.exists(registration), "the JVM's registration")
            options: dict[str, Any] = {"zookeeper": where, "group_id": group, "consumer_id": "ours", **STEADY}
            async with LegacyConsumer(white_list=pattern, **options) as consumer:
                await wait_owners(zk, group, by_range(topic, 2, [f"{consumer.member_id}-0"]))
                assert json.loads((await zk.read(registration)).data)["subscription"] == {r"back\\.slash.*": 1}


@with_java_from(0, 8, 2)  # 0.8.1 keeps offsets in ZooKeeper alone
async def test_offsets_in_kafka_and_both_ways(brokers: RealCluster, java: str) -> None:
    """12: the JVM commits to Kafka and ZooKeeper, ours reads on from there, and the other way round."""
    where, topic, group = zookeeper_of(brokers), brokers.new_topic("dual", 1), "dual"
    await send(brokers, topic, 1, named("a", 30))
    properties = {"offsets.storage": "kafka", "dual.commit.enabled": "true"}
    options: dict[str, Any] = {"zookeeper": where, "group_id": group, "offsets_storage": "kafka", **STEADY}
    tp = TopicPartition(topic, 0)
    async with ZooKeeper(where) as zk:
        what = ("--topic", topic, "--from-beginning")
        async with java_member(java, where, group, "java", *what, properties=properties) as other:
            await until(lambda: len(other.lines()) == 30, "the JVM's records")
            await until(lambda: zk.exists(paths.offset(group, topic, 0)), "its commit")
            await anyio.to_thread.run_sync(other.stop)
        await send(brokers, topic, 1, named("b", 30))
        async with LegacyConsumer(topic, dual_commit_enabled=False, **options) as consumer:
            assert await consumer.committed([tp]) == {tp: 30}, "out of Kafka"
            records = [await consumer.getone(timeout=DEADLINE_S) for _ in range(10)]
            assert [(each.value or b"").decode() for each in records] == named("b", 30)[:10]
            assert await consumer.commit() == {}
        assert (await zk.read(paths.offset(group, topic, 0))).data == b"30", "not dual"
        async with LegacyConsumer(topic, **options) as consumer:
            assert (await consumer.getone(timeout=DEADLINE_S)).offset == 40, "the greater one"
            assert await consumer.commit() == {}
        assert (await zk.read(paths.offset(group, topic, 0))).data == b"41"
        async with java_member(java, where, group, "java", "--topic", topic, properties=properties) as other:
            await until(lambda: len(other.lines()) == 19, "the rest")
            assert other.lines() == named("b", 30)[11:]


async def test_twelve_streams_of_one_member(brokers: RealCluster) -> None:
    """6: thread ids are ordered as strings."""
    where, topic, group = zookeeper_of(brokers), brokers.new_topic("twelve", 13), "twelve"
    await send(brokers, topic, 13, named("a", 26))
    async with ZooKeeper(where) as zk:
        async with LegacyConsumer(topic, zookeeper=where, group_id=group, streams=12, **STEADY) as consumer:
            await wait_owners(zk, group, by_range(topic, 13, thread_ids(consumer.member_id, 12)))
            ours = Values()
            async with anyio.create_task_group() as tasks:
                for stream in consumer.streams:
                    tasks.start_soon(ours.follow, stream)
                await until(lambda: len(ours.read) >= 26, "all records")
                tasks.cancel_scope.cancel()
            assert Counter(ours.read) == Counter(named("a", 26))
