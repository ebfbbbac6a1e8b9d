"""The mirror between embedded clusters of many releases."""

from __future__ import annotations

import random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import Consumer, EmbeddedCluster, Producer, TopicPartition
from pykafka08.admin import Admin, NewTopic
from pykafka08.errors import ConfigError, MirrorError
from pykafka08.mirror import Mirror, MirrorReport
from pykafka08.records.topic_name import INTERNAL_TOPICS
from tests.mirror.embedded import fill, held, new_records

pytestmark = pytest.mark.anyio

DEADLINE_S = 90
PAIRS = [("0.8.2", "4.3"), ("0.10.2", "0.11.0"), ("2.8", "0.10.2"), ("0.8.2", "0.10.0")]


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


async def mirrored(source: EmbeddedCluster, target: EmbeddedCluster, **settings: object) -> MirrorReport:
    with anyio.fail_after(DEADLINE_S):
        async with Mirror(source.bootstrap_servers, target.bootstrap_servers, **settings) as mirror:  # type: ignore[arg-type]
            return await mirror.run()


@pytest.mark.parametrize(("old", "new"), PAIRS)
async def test_records_keep_partition_order_key_value_and_time(old: str, new: str) -> None:
    topics = {"t": 3} if new == "0.10.0" else {}
    async with EmbeddedCluster(version=old, topics={"t": 3}) as source:
        async with EmbeddedCluster(version=new, topics=topics) as target:
            for partition, count in ((0, 700), (2, 300)):
                await fill(source, "t", 0, count, partition=partition)
            report = await mirrored(source, target, topics=["t"])
            assert (report.records, report.lag, report.duplicates, report.lost) == (1000, 0, 0, 0)
            originals = await held(source, "t", 3)
            assert [len(each) for each in originals.values()] == [700, 0, 300]
            assert await held(target, "t", 3) == originals
            await fill(source, "t", 700, 800)
            assert (await mirrored(source, target, topics=["t"])).records == 100
            assert (await mirrored(source, target, topics=["t"])).records == 0
            assert await held(target, "t", 3) == await held(source, "t", 3)


async def test_headers_are_kept_and_a_target_that_cannot_have_them_is_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source:
        await fill(source, "t", 0, 50, with_headers=True)
        async with EmbeddedCluster() as target:
            await mirrored(source, target, topics=["t"])
            assert await held(target, "t") == await held(source, "t")
        async with EmbeddedCluster(version="0.10.2") as target:
            with pytest.raises(Exception, match="headers"):
                await mirrored(source, target, topics=["t"])


async def test_aborted_records_and_gaps_are_not_copied_and_groups_find_their_record() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        async with Producer(source.bootstrap_servers, transactional_id="x") as producer:
            for first in range(0, 200, 10):
                try:
                    async with producer.transaction():
                        await producer.send_many("t", new_records(first, first + 10))
                        if first % 30 == 0:
                            raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
        originals = (await held(source, "t"))[0]
        offsets = await offsets_of(source, "t")
        assert len(originals) == 130
        async with Admin(source.bootstrap_servers) as admin:
            groups = {f"g{number}": offsets[number] for number in (0, 1, 57, 100, 129)}
            for group, offset in groups.items():
                await admin.alter_group_offsets(group, {tp("t"): offset})
        report = await mirrored(source, target, topics=["t"], groups=list(groups))
        assert [move.why_not for move in report.groups] == [None] * len(groups)
        assert (await held(target, "t"))[0] == originals
        for group in groups:
            assert await next_of(target, group) == originals[int(group[1:])]


async def offsets_of(cluster: EmbeddedCluster, topic: str) -> list[int]:
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        consumer.assign([tp(topic)])
        end = (await consumer.end_offsets([tp(topic)]))[tp(topic)]
        found: list[int] = []
        while await consumer.position(tp(topic)) < end:
            found += [record.offset for record in await consumer.getmany(timeout=0.1)]
        return found


async def next_of(cluster: EmbeddedCluster, group: str, topic: str = "t") -> tuple[object, ...]:
    """The first record that the group reads, as ``held`` has it."""
    settings = {"isolation_level": "read_committed", "enable_auto_commit": False}
    async with Consumer(topic, bootstrap_servers=cluster.bootstrap_servers, group_id=group, **settings) as consumer:
        record = await consumer.getone(timeout=30)
        return (record.key, record.value, record.headers, record.timestamp_ms)


async def test_a_topic_is_renamed_and_made_with_its_settings() -> None:
    async with EmbeddedCluster() as source, EmbeddedCluster(brokers=3) as target:
        async with Admin(source.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("a", 4, 1, {"retention.ms": "-1"}), NewTopic("b", 2, 1)])
        await fill(source, "a", 0, 10, partition=3)
        await mirrored(source, target, pattern="[ab]", rename={"a": "copy.of.a"}, replication_factor=3)
        async with Admin(target.bootstrap_servers) as admin:
            assert await admin.list_topics() == ["b", "copy.of.a"]
            made = (await admin.describe_topics(["copy.of.a"]))["copy.of.a"]
            assert [len(each.replicas) for each in made.partitions.values()] == [3] * 4
            told = await admin.describe_topic_configs(["copy.of.a"])
            assert told["copy.of.a"]["retention.ms"].value == "-1"
        assert (await held(target, "copy.of.a", 4))[3] == (await held(source, "a", 4))[3]


async def test_partitions_that_the_target_lacks_are_added_and_those_too_many_refused() -> None:
    async with EmbeddedCluster(topics={"t": 4, "u": 1}) as source, EmbeddedCluster(topics={"t": 2, "u": 3}) as target:
        await fill(source, "t", 0, 10, partition=3)
        assert (await mirrored(source, target, topics=["t"])).records == 10
        with pytest.raises(MirrorError, match="3 partitions in the target and 1 in the source"):
            await mirrored(source, target, topics=["u"])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"topics": ["tt"]}, "no topic 'tt'"),
        ({"pattern": "x.*"}, "nothing to copy"),
        ({"topics": ["t"], "rename": {"u": "v"}}, "'u' is to be renamed but not mirrored"),
        ({"topics": ["t", "u"], "rename": {"u": "t"}}, "two topics"),
        ({"topics": ["t"], "groups": ["nobody"]}, "zookeeper_groups"),
    ],
)
async def test_what_makes_no_sense_is_said(settings: dict[str, object], told: str) -> None:
    async with EmbeddedCluster(topics={"t": 1, "u": 1}) as source, EmbeddedCluster() as target:
        with pytest.raises(MirrorError, match=told):
            await mirrored(source, target, **settings)


@pytest.mark.parametrize("version", ["0.9", "4.3"])  # metadata marks internal topics from 0.10 on
async def test_a_pattern_leaves_internal_topics_out(version: str) -> None:
    topics = {name: 1 for name in ("a", *INTERNAL_TOPICS)}
    async with EmbeddedCluster(version=version, topics=topics) as source, EmbeddedCluster() as target:
        async with Mirror(source.bootstrap_servers, target.bootstrap_servers, pattern=".*") as mirror:
            assert [plan.source for plan in await mirror.plan()] == ["a"]


@pytest.mark.parametrize("version", ["0.8.2", "0.10.2", "4.3"])  # by its brokers, its id, the topic's id
async def test_a_topic_is_not_copied_behind_itself(version: str) -> None:
    async with EmbeddedCluster(2, version=version, topics={"t": 1, "u": 1}) as cluster:
        await fill(cluster, "t", 0, 50)
        names = cluster.bootstrap_servers.split(",")
        async with Mirror(names[0], names[1], topics=["t"]) as mirror:
            (plan,) = await mirror.plan()
            assert "source and target are one cluster, and the topic is the same" in (plan.problem or "")
            with pytest.raises(MirrorError, match="one cluster"):
                await mirror.run()
        assert len((await held(cluster, "t"))[0]) == 50
        assert (await mirrored(cluster, cluster, topics=["t"], rename={"t": "u"})).records == 50


async def test_two_clusters_with_one_id_are_two_if_their_topics_are() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster(topics={"t": 1}) as target:
        target._state.cluster_id = source._state.cluster_id  # as set up from one example
        await fill(source, "t", 0, 50)
        assert (await mirrored(source, target, topics=["t"])).records == 50


async def test_a_target_whose_brokers_make_no_topics_is_told_of_before_anything_is_done() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as source, EmbeddedCluster(version="0.8.2") as target:
        async with Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"]) as mirror:
            (plan,) = await mirror.plan()
            assert "pykafka08 zk topic create t --partitions 2" in (plan.problem or "")
            with pytest.raises(MirrorError, match="pykafka08 zk topic create t"):
                await mirror.run()


async def test_a_target_that_was_made_anew_is_refused_and_restart_copies_all_again() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        await mirrored(source, target, topics=["t"])
        async with Admin(target.bootstrap_servers) as admin:
            kept = await admin.list_group_offsets("pykafka08-mirror-mirror")
            await admin.delete_topics(["t"])
            await admin.create_topics([NewTopic("t", 1, 1)])
            await admin.alter_group_offsets("pykafka08-mirror-mirror", kept)  # as where the deletion is not done yet
        await fill(source, "t", 100, 120)
        with pytest.raises(MirrorError, match=r"made anew.*restart"):
            await mirrored(source, target, topics=["t"])
        assert (await mirrored(source, target, topics=["t"], restart=True)).records == 120
        assert await held(target, "t") == await held(source, "t")
        assert (await mirrored(source, target, topics=["t"])).records == 0


async def test_a_source_that_was_made_anew_is_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 10)
        await mirrored(source, target, topics=["t"])
        async with Admin(source.bootstrap_servers) as admin:
            await admin.delete_topics(["t"])
            await admin.create_topics([NewTopic("t", 1, 1)])
        with pytest.raises(MirrorError, match="made anew"):
            await mirrored(source, target, topics=["t"])


async def test_a_target_that_another_program_writes_to_is_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster(topics={"t": 1}) as target:
        await fill(target, "t", 5, 6)
        await fill(source, "t", 0, 10)
        with pytest.raises(MirrorError, match="another program writes"):
            await mirrored(source, target, topics=["t"])


@pytest.mark.parametrize(("old", "new"), [("0.8.2", "0.10.2"), ("0.8.2", "4.3")])
async def test_records_beyond_the_checkpoint_are_not_copied_again(old: str, new: str) -> None:
    """As a mirror leaves them that dies, without transactions, between its records and its word; some stand twice."""
    async with EmbeddedCluster(version=old, topics={"t": 1}) as source:
        async with EmbeddedCluster(version=new) as target:
            await fill(source, "t", 0, 100)
            await mirrored(source, target, topics=["t"])
            await fill(source, "t", 100, 200)
            await fill(target, "t", 100, 140)
            await fill(target, "t", 120, 150)
            report = await mirrored(source, target, topics=["t"])
            assert (report.records, report.duplicates) == (50, 20)
            copies = [each.value for each in (await held(target, "t"))[0]]
            first, last = ([each.value for each in new_records(*bounds)] for bounds in ((0, 140), (120, 200)))
            assert copies == first + last


async def test_deleted_records_stop_it_unless_they_may_be_lost() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 10)
        await mirrored(source, target, topics=["t"])
        await fill(source, "t", 10, 100)
        source.delete_records("t", 0, 40)
        with pytest.raises(MirrorError, match=r"deleted offsets 10 to 39.*skip_lost"):
            await mirrored(source, target, topics=["t"])
        report = await mirrored(source, target, topics=["t"], skip_lost=True)
        assert (report.records, report.lost) == (60, 30)


@pytest.mark.parametrize(
    ("api", "fault"),
    [
        ("Fetch", "close_before"),
        ("Produce", "close_after"),
        ("EndTxn", "close_before"),
        ("EndTxn", "close_after"),
        ("TxnOffsetCommit", "close_after"),
    ],
)
async def test_broken_connections_cost_nothing(api: str, fault: str) -> None:
    async with EmbeddedCluster(topics={"t": 2}) as source, EmbeddedCluster(brokers=2) as target:
        for partition in range(2):
            await fill(source, "t", 0, 300, partition=partition)
        getattr(source.faults if api == "Fetch" else target.faults, fault)(api, times=3)
        report = await mirrored(source, target, topics=["t"])
        assert (report.records, report.duplicates) == (600, 0)
        assert await held(target, "t", 2) == await held(source, "t", 2)


@pytest.mark.parametrize(("new", "seed"), [("4.3", 1), ("4.3", 2), ("0.10.2", 3), ("0.10.2", 4)])
async def test_a_mirror_that_ends_at_any_moment_loses_nothing(
    new: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cancelled again and again in the midst of its requests; with transactions nothing is there twice either."""
    monkeypatch.setattr("pykafka08.mirror.copying.UNIT_BYTES", 3_000)
    chance = random.Random(seed)
    async with EmbeddedCluster(topics={"t": 2}) as source, EmbeddedCluster(version=new) as target:
        for partition in range(2):
            await fill(source, "t", 0, 500, partition=partition)
        servers = source.bootstrap_servers, target.bootstrap_servers
        duplicates = 0
        for _ in range(4):
            moment = Moment(chance.randrange(1, 6), chance.randrange(300))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(moment.comes, tasks.cancel_scope)
                async with Mirror(*servers, topics=["t"]) as mirror:
                    await mirror.run(on_progress=moment.unit_ended)
                tasks.cancel_scope.cancel()
            duplicates += mirror.report().duplicates
        report = await mirrored(source, target, topics=["t"])
        duplicates += report.duplicates
        originals, copies = await held(source, "t", 2), await held(target, "t", 2)
        assert report.lag == 0
        assert sum(map(len, copies.values())) == 1000 + duplicates
        for partition, records in originals.items():
            assert list(dict.fromkeys(each[:3] for each in copies[partition])) == list(
                dict.fromkeys(each[:3] for each in records)
            )
        if new == "4.3":
            assert duplicates == 0
            assert copies == originals


class Moment:
    """So many units, and then so many turns of the event loop."""

    def __init__(self, units: int, turns: int) -> None:
        self._units = units
        self._turns = turns
        self._is_near = anyio.Event()

    def unit_ended(self, _: MirrorReport) -> None:
        self._units -= 1
        if not self._units:
            self._is_near.set()

    async def comes(self, scope: anyio.CancelScope) -> None:
        """Cancel the scope then."""
        await self._is_near.wait()
        for _ in range(self._turns):
            await anyio.lowlevel.checkpoint()
        scope.cancel()


async def test_a_second_mirror_of_the_same_name_ends_the_first() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 10)
        first_copied = anyio.Event()
        servers = source.bootstrap_servers, target.bootstrap_servers

        async def first() -> None:
            async with Mirror(*servers, topics=["t"]) as mirror:
                with pytest.raises(MirrorError, match="another mirror"):
                    await mirror.run(follow=True, on_progress=lambda report: report.records and first_copied.set())

        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first)
                await first_copied.wait()
                assert (await mirrored(source, target, topics=["t"])).records == 0
                await fill(source, "t", 10, 20)
        assert len((await held(target, "t"))[0]) == 10


async def test_it_follows_new_records_topics_and_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.2)
    async with EmbeddedCluster(topics={"t1": 1}) as source, EmbeddedCluster() as target:
        news: list[MirrorReport] = []
        wanted = anyio.Event()

        def hear(report: MirrorReport) -> None:
            news.append(report)
            wanted.set()

        async def until(records: int) -> None:
            nonlocal wanted
            while not news or news[-1].records < records:
                wanted = anyio.Event()
                await wanted.wait()

        with anyio.fail_after(DEADLINE_S):
            async with Mirror(source.bootstrap_servers, target.bootstrap_servers, pattern="t.*") as mirror:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lambda: mirror.run(follow=True, on_progress=hear))
                    await fill(source, "t1", 0, 10)
                    await until(10)
                    async with Admin(source.bootstrap_servers) as admin:
                        await admin.create_partitions({"t1": 2})
                        await admin.create_topics([NewTopic("t2", 1, 1)])
                    await fill(source, "t1", 0, 10, partition=1)
                    await fill(source, "t2", 0, 10)
                    await until(30)
                    tasks.cancel_scope.cancel()
        assert await held(target, "t1", 2) == await held(source, "t1", 2)
        assert await held(target, "t2") == await held(source, "t2")


async def test_a_group_is_never_moved_back_nor_beside_its_members() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        async with Admin(source.bootstrap_servers) as old, Admin(target.bootstrap_servers) as new:
            await old.alter_group_offsets("g", {tp("t"): 30})
            (move,) = (await mirrored(source, target, topics=["t"], groups=["g"])).groups
            assert (move.target_offset, move.why_not) == (30, None)
            await new.alter_group_offsets("g", {tp("t"): 50})
            (move,) = (await mirrored(source, target, topics=["t"], groups=["g"])).groups
            assert "further on" in (move.why_not or "")
            assert (await new.list_group_offsets("g"))[tp("t")].offset == 50
            await old.alter_group_offsets("g", {tp("t"): 60})
            async with Consumer("t", bootstrap_servers=target.bootstrap_servers, group_id="g"):
                with pytest.raises(MirrorError, match="member"):
                    await mirrored(source, target, topics=["t"], groups=["g"])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "topics, or a pattern"),
        ({"topics": ["t"], "pattern": "t"}, "topics, or a pattern"),
        ({"pattern": "("}, "^pattern="),
        ({"topics": ["t"], "excluded": "("}, "^excluded="),
        ({"topics": ["t"], "zookeeper_groups": ["g"]}, "zookeeper_groups"),
        (
            {"topics": ["t"], "zookeeper": "z:1", "groups": ["g"], "zookeeper_groups": ["g"]},
            "groups and zookeeper_groups",
        ),
        ({"topics": ["t"], "name": "a b"}, "^name="),
        ({"topics": ["t"], "source": "a:x"}, "^source: bootstrap server"),
        ({"topics": ["t"], "target": ""}, "^target: bootstrap_servers"),
        ({"topics": ["t"], "source_settings": {"fetch_min": 1}}, "^source: unknown setting fetch_min"),
        ({"topics": ["t"], "target_settings": {"linger_ms": -1}}, "^target: linger_ms=-1"),
        ({"topics": ["t"], "target_settings": {"compression_level": 1}}, "^target: compression_level=1"),
    ],
)
async def test_settings_without_meaning_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Mirror(**{"source": "localhost:1", "target": "localhost:2", **settings})
