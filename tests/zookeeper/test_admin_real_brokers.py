"""Administration through ZooKeeper as real brokers take it: each change shows in what they do."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import BrokerError, Producer, RecordTooLargeError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
from pykafka08.zookeeper.admin.partitions import Move
from pykafka08.zookeeper.nodes.acls import Acl
from tests.integration.clusters import Clusters, RealCluster
from tests.zookeeper.layout import properties_of

RELEASES = ("0.8.2.2", "0.9.0.1", *(("0.10.2.2", "2.8.2") if os.environ.get("PYKAFKA08_SOAK") == "1" else ()))
WAIT_S = 120

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """One event loop is enough: what differs is the brokers."""
    return "asyncio"


async def eventually(is_so: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(WAIT_S):
        while not await is_so():  # noqa: ASYNC110 - it happens in the brokers
            await anyio.sleep(0.1)


@pytest.fixture
def cluster(version: str, clusters: Clusters) -> RealCluster:
    return clusters.running(version, brokers=2, props=properties_of(version))


@pytest.mark.parametrize("version", RELEASES)
async def test_what_is_written_shows_in_what_brokers_do(cluster: RealCluster) -> None:
    assert cluster.zookeeper is not None
    is_forced = cluster.release >= (0, 10, 1)
    patient = {"session_timeout_ms": 20_000, "request_timeout_ms": 60_000}
    client = {"default_api_timeout_ms": 60_000}
    async with ZooKeeperAdmin(cluster.zookeeper, force=is_forced, client=client, **patient) as admin:
        name = f"administered-{cluster.version}"
        made = await admin.create_topic(name, 2, 2, configs={"flush.messages": "10"}, timeout=WAIT_S)
        await eventually(lambda: led(cluster, name, 1, made[1][0]))
        await admin.add_partitions(name, 3, timeout=WAIT_S)
        await check_settings(cluster, admin, name)
        await check_moves(cluster, admin, name, made)
        if cluster.release >= (0, 9):
            await check_rules_and_quotas(cluster, admin, name)
        await check_group(admin, name)
        await admin.delete_topic(name, timeout=WAIT_S)
        assert await admin.zk.exists(paths.topic(name)) is None
        assert await admin.zk.exists(paths.topic_config(name)) is None


async def led(cluster: RealCluster, name: str, partition: int, broker: int) -> bool:
    return await anyio.to_thread.run_sync(cluster.leader, name, partition, 1) == broker


async def check_settings(cluster: RealCluster, admin: ZooKeeperAdmin, name: str) -> None:
    """A limit on the size of records holds as soon as the brokers have heard of it, and no longer than it is set."""
    async with Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False, acks=1) as producer:

        async def takes(size: int) -> bool:
            try:
                await producer.send(name, b"x" * size, partition=0)
            except (BrokerError, RecordTooLargeError):
                return False
            return True

        async def refuses(size: int) -> bool:
            return not await takes(size)

        await eventually(lambda: takes(5000))
        await admin.alter_configs(f"topics/{name}", {"max.message.bytes": "1000"})
        await eventually(lambda: refuses(5000))
        assert await takes(100)
        await admin.alter_configs(f"topics/{name}", remove=["max.message.bytes"])
        await eventually(lambda: takes(5000))
    assert await admin.describe_configs(f"topics/{name}") == {"flush.messages": "10"}


async def check_moves(cluster: RealCluster, admin: ZooKeeperAdmin, name: str, made: dict[int, list[int]]) -> None:
    only = made[0][1]
    moves = {(name, 0): [only], (name, 1): made[1][::-1]}
    assert await admin.reassign(moves, timeout=WAIT_S) == dict.fromkeys(moves, Move.DONE)
    await eventually(lambda: led(cluster, name, 0, only))
    await admin.elect_preferred_leaders([(name, 1)], timeout=WAIT_S)
    await eventually(lambda: led(cluster, name, 1, made[1][1]))


async def check_rules_and_quotas(cluster: RealCluster, admin: ZooKeeperAdmin, name: str) -> None:
    rule = Acl(principal="User:alice", operation="Read")
    assert await admin.add_acls("Topic", name, [rule]) == (rule,)
    await admin.alter_configs("clients/some-client", {"producer_byte_rate": "123456789"})
    if cluster.release >= (0, 10, 1):
        await admin.alter_configs("users/alice/clients/<default>", {"consumer_byte_rate": "123456789"})

    async def is_heard() -> bool:
        logs = [await anyio.to_thread.run_sync(cluster.log, broker) for broker in (1, 2)]
        return all("/kafka-acl-changes" in log and "123456789" in log for log in logs)

    await eventually(is_heard)
    assert await admin.remove_acls("Topic", name) == ()


async def check_group(admin: ZooKeeperAdmin, name: str) -> None:
    await admin.reset_group_offsets("administered", {(name, 0): 0})
    assert await admin.group_offsets("administered") == {(name, 0): 0}
    await admin.delete_group("administered")
