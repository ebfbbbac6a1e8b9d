"""Groups moved from ZooKeeper to Kafka, on an embedded ZooKeeper and embedded brokers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.admin import Admin
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.errors import AdminRefusedError, MalformedNodeError, MirrorError, UnsupportedVersionError
from pykafka08.mirror import Mirror
from pykafka08.zookeeper.migration import GroupMigration, MigrationReport, Outcome
from tests.cli.console import Finished, console, console_here
from tests.consumer.embedded import fill, values

pytestmark = pytest.mark.anyio

MEMBER = "/consumers/g/ids/g_host-1-aa"
REGISTRATION = b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}'


def tp(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)


@asynccontextmanager
async def old_group(
    version: str = "0.8.2", offsets: tuple[int, ...] = (5, 0, 10)
) -> AsyncIterator[tuple[EmbeddedZooKeeper, EmbeddedCluster]]:
    """A topic of three partitions with ten records each, and a group that is so far in ZooKeeper."""
    async with EmbeddedZooKeeper() as zookeeper, EmbeddedCluster(version=version, topics={"t": 3}) as cluster:
        for partition, offset in enumerate(offsets):
            await fill(cluster, "t", values(0, 10), partition=partition)
            zookeeper.create(f"/consumers/g/offsets/t/{partition}", b"%d" % offset, make_parents=True)
        yield zookeeper, cluster


def opened(zookeeper: EmbeddedZooKeeper, cluster: EmbeddedCluster, group: str = "g") -> GroupMigration:
    return GroupMigration(zookeeper.address, cluster.bootstrap_servers, group)


def outcomes(report: MigrationReport) -> list[Outcome]:
    return [each.outcome for each in report.partitions]


async def in_kafka(cluster: EmbeddedCluster) -> dict[int, int]:
    async with Admin(cluster.bootstrap_servers) as admin:
        told = await admin.list_group_offsets("g", [tp(number) for number in range(3)])
        return {each.partition: offset.offset for each, offset in told.items()}


@pytest.mark.parametrize("version", ["0.8.2", "0.9.0", "2.8", "3.9"])
async def test_a_group_that_nobody_runs_is_moved_at_once(version: str) -> None:
    async with old_group(version) as (zookeeper, cluster):
        async with opened(zookeeper, cluster) as migration:
            planned = await migration.plan()
            assert outcomes(planned) == [Outcome.TO_COMMIT] * 3
            assert not planned.is_in_kafka
            assert await in_kafka(cluster) == {}
            report = await migration.run()
            assert outcomes(report) == [Outcome.COMMITTED] * 3
            assert [(each.log_start, each.log_end) for each in report.partitions] == [(0, 10)] * 3
            assert report.is_in_kafka
            assert await in_kafka(cluster) == {0: 5, 1: 0, 2: 10}
            assert outcomes(await migration.run()) == [Outcome.SAME] * 3


async def test_it_never_moves_back() -> None:
    async with old_group() as (zookeeper, cluster):
        async with Admin(cluster.bootstrap_servers) as admin:
            await admin.alter_group_offsets("g", {tp(0): 8, tp(1): 0})
        async with opened(zookeeper, cluster) as migration:
            report = await migration.run()
        assert outcomes(report) == [Outcome.KAFKA_AHEAD, Outcome.SAME, Outcome.COMMITTED]
        assert await in_kafka(cluster) == {0: 8, 1: 0, 2: 10}


@pytest.mark.parametrize("path", [MEMBER, "/consumers/g/owners/t/0"])
async def test_beside_the_living_it_is_refused(path: str) -> None:
    data = REGISTRATION if path == MEMBER else b"g_host-1-aa-0"
    async with old_group() as (zookeeper, cluster):
        zookeeper.create(path, data, make_parents=True)
        async with opened(zookeeper, cluster) as migration:
            assert (await migration.plan()).members == ["g_host-1-aa"]
            with pytest.raises(AdminRefusedError, match=r"g_host-1-aa.*dual\.commit\.enabled"):
                await migration.run()
        assert await in_kafka(cluster) == {}


async def test_a_member_that_comes_meanwhile_is_told() -> None:
    async with old_group() as (zookeeper, cluster):
        async with opened(zookeeper, cluster) as migration:
            commit = migration._commit

            async def joined_meanwhile(wanted: dict[TopicPartition, int]) -> object:
                zookeeper.create(MEMBER, REGISTRATION, make_parents=True)
                return await commit(wanted)

            migration._commit = joined_meanwhile  # type: ignore[method-assign,assignment]
            with pytest.raises(AdminRefusedError, match="came while the offsets were moved"):
                await migration.run()


async def test_dual_commit_is_done_when_kafka_has_everything() -> None:
    async with old_group() as (zookeeper, cluster):
        zookeeper.create(MEMBER, REGISTRATION, make_parents=True)
        async with opened(zookeeper, cluster) as migration, Admin(cluster.bootstrap_servers) as admin:
            await admin.alter_group_offsets("g", {tp(0): 5, tp(1): 4})
            assert not (await migration.plan()).is_in_kafka
            await admin.alter_group_offsets("g", {tp(2): 10})
            assert (await migration.plan()).is_in_kafka


async def test_offsets_that_no_log_has_are_left_out_unless_forced() -> None:
    async with old_group(offsets=(5, 11, 10)) as (zookeeper, cluster):
        zookeeper.create("/consumers/g/offsets/t/7", b"3")
        zookeeper.create("/consumers/g/offsets/gone/0", b"3", make_parents=True)
        async with opened(zookeeper, cluster) as migration:
            report = await migration.run()
            assert {(each.topic, each.partition): each.outcome for each in report.partitions} == {
                ("gone", 0): Outcome.NO_PARTITION,
                ("t", 0): Outcome.COMMITTED,
                ("t", 1): Outcome.BEYOND_END,
                ("t", 2): Outcome.COMMITTED,
                ("t", 7): Outcome.NO_PARTITION,
            }
            assert not report.is_in_kafka
            assert (await migration.run(force=True)).is_in_kafka
        assert await in_kafka(cluster) == {0: 5, 1: 11, 2: 10}


async def test_members_in_kafka_refuse_it() -> None:
    async with old_group("0.9.0") as (zookeeper, cluster):
        async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, group_id="g", enable_auto_commit=False):
            async with opened(zookeeper, cluster) as migration:
                with pytest.raises(AdminRefusedError, match="members in Kafka"):
                    await migration.run()


async def test_what_is_not_there_is_said() -> None:
    async with old_group() as (zookeeper, cluster):
        zookeeper.create("/consumers/idle/offsets", make_parents=True)
        async with opened(zookeeper, cluster, "gg") as migration:
            with pytest.raises(AdminRefusedError, match="no group 'gg'"):
                await migration.run()
        async with opened(zookeeper, cluster, "idle") as migration:
            with pytest.raises(AdminRefusedError, match="nothing to move"):
                await migration.run()
        zookeeper.write("/consumers/g/offsets/t/0", b"five")
        async with opened(zookeeper, cluster) as migration:
            with pytest.raises(MalformedNodeError, match="/consumers/g/offsets/t/0"):
                await migration.plan()


@pytest.mark.parametrize("version", ["0.8.0", "0.8.1"])
async def test_brokers_without_offsets_are_refused(version: str) -> None:
    async with old_group(version) as (zookeeper, cluster):
        async with opened(zookeeper, cluster) as migration:
            with pytest.raises(UnsupportedVersionError, match=r"0\.8\.2"):
                await migration.run()


async def test_a_mirror_carries_a_group_over_from_zookeeper() -> None:
    async with old_group() as (zookeeper, source), EmbeddedCluster() as target:
        settings = {"topics": ["t"], "zookeeper": zookeeper.address}
        servers = source.bootstrap_servers, target.bootstrap_servers
        async with Mirror(*servers, **settings, zookeeper_groups=["g"]) as mirror:  # type: ignore[arg-type]
            report = await mirror.run()
        assert [move.target_offset for move in report.groups] == [5, 0, 10]
        assert await in_kafka(target) == {0: 5, 1: 0, 2: 10}
        async with Mirror(*servers, **settings, zookeeper_groups=["other"]) as mirror:  # type: ignore[arg-type]
            with pytest.raises(MirrorError, match="no offsets in ZooKeeper"):
                await mirror.run()


def registered(zookeeper: EmbeddedZooKeeper, cluster: EmbeddedCluster) -> None:
    """The brokers of a cluster, as they register themselves."""
    for each in cluster.brokers:
        document = {"version": 1, "host": each.host, "port": each.port, "jmx_port": -1, "timestamp": "1"}
        zookeeper.create(f"/brokers/ids/{each.node_id}", json.dumps(document).encode(), make_parents=True)


async def test_a_zookeeper_of_other_brokers_is_refused() -> None:
    async with old_group() as (zookeeper, cluster), EmbeddedCluster(version="0.8.2", topics={"t": 3}) as other:
        registered(zookeeper, cluster)
        async with opened(zookeeper, cluster) as migration:
            assert len((await migration.plan()).partitions) == 3
        async with opened(zookeeper, other) as migration:
            for ask in (migration.plan, migration.run):
                with pytest.raises(AdminRefusedError, match=r"ZooKeeper lists 127\.0\.0\.1:\d+, the brokers asked are"):
                    await ask()
            assert await in_kafka(other) == {}
            assert (await migration.plan(force=True)).members == []


async def test_a_zookeeper_of_another_cluster_is_refused_whatever_its_addresses() -> None:
    async with old_group("0.10.2") as (zookeeper, cluster):
        registered(zookeeper, cluster)
        zookeeper.create("/cluster/id", b'{"version":"1","id":"another"}', make_parents=True)
        async with opened(zookeeper, cluster) as migration:
            with pytest.raises(AdminRefusedError, match="ZooKeeper is of the cluster another"):
                await migration.run()
        known = json.dumps({"version": "1", "id": cluster._state.cluster_id}).encode()
        zookeeper.write("/cluster/id", known)
        zookeeper.write(
            f"/brokers/ids/{cluster.brokers[0].node_id}",
            b'{"version":1,"host":"inside","port":9092,"jmx_port":-1,"timestamp":"1"}',
        )
        async with opened(zookeeper, cluster) as migration:
            assert (await migration.run()).is_in_kafka


async def test_a_mirror_refuses_the_zookeeper_of_another_cluster() -> None:
    async with (
        old_group() as (zookeeper, cluster),
        EmbeddedCluster(version="0.8.2", topics={"t": 3}) as source,
        EmbeddedCluster() as target,
    ):
        registered(zookeeper, cluster)
        servers = source.bootstrap_servers, target.bootstrap_servers
        settings = {"topics": ["t"], "zookeeper": zookeeper.address, "zookeeper_groups": ["g"]}
        async with Mirror(*servers, **settings) as mirror:  # type: ignore[arg-type]
            with pytest.raises(MirrorError, match="zookeeper is not the source's: ZooKeeper lists"):
                await mirror.run()
        assert await in_kafka(target) == {}
        async with Mirror(*servers, **settings, force=True) as mirror:  # type: ignore[arg-type]
            assert set(await mirror.group_offsets([tp(0)])) == {"g"}


async def run(
    words: tuple[str, ...],
    zookeeper: EmbeddedZooKeeper,
    cluster: EmbeddedCluster,
    tool: Callable[..., Awaitable[Finished]] = console_here,
) -> tuple[int, str, str]:
    servers = ("--zookeeper", zookeeper.address, "--bootstrap-server", cluster.bootstrap_servers)
    ran = await tool("migrate", "group", *words, *servers)
    return ran.status, ran.out.decode(), ran.err


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_command_tells_and_moves() -> None:
    async with old_group() as (zookeeper, cluster):
        status, out, err = await run(("g", "--dry-run"), zookeeper, cluster)
        assert (status, err) == (0, "")
        assert out.splitlines()[1].split()[:5] == ["t", "0", "5", "-", "0..10"]
        assert (await run(("g", "--verify"), zookeeper, cluster))[0] == 1
        assert await in_kafka(cluster) == {}
        status, out, err = await run(("g", "--json"), zookeeper, cluster, console)
        assert (status, err) == (0, "")
        assert [each["outcome"] for each in json.loads(out)["partitions"]] == ["committed"] * 3
        status, out, err = await run(("g", "--verify"), zookeeper, cluster)
        assert status == 0
        assert "dual.commit.enabled=false is safe" in out
        zookeeper.create(MEMBER, REGISTRATION, make_parents=True)
        zookeeper.write("/consumers/g/offsets/t/0", b"9")
        assert "a run now would be refused" in (await run(("g", "--dry-run"), zookeeper, cluster))[1]
        status, out, err = await run(("g",), zookeeper, cluster)
        assert (status, out) == (1, "")
        assert "g_host-1-aa" in err
        assert (await console_here("migrate", "topic", "t")).status == 2
        assert (await console_here("migrate", "group", "g")).status == 2
