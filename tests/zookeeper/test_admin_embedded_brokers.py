"""Administration through ZooKeeper beside brokers that act on it: the embedded ones, of each kind of release."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import EmbeddedCluster, Producer
from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
from pykafka08.zookeeper import Move, ZooKeeperAdmin, paths
from tests.zookeeper.stage import PATIENT, PATIENT_CLIENT

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", ["0.8.1", "0.8.2", "0.9.0", "0.10.0"])
async def test_each_change_is_done_by_the_brokers(version: str) -> None:
    async with (
        EmbeddedZooKeeper(release="3.3" if version == "0.8.1" else "3.8") as zookeeper,
        EmbeddedCluster(2, version, zookeeper=zookeeper, delete_topic_enable=True) as cluster,
        ZooKeeperAdmin(zookeeper.address, client=PATIENT_CLIENT, **PATIENT) as admin,
    ):
        with anyio.fail_after(120):
            made = await admin.create_topic("t", 2, 2, configs={"retention.ms": "1000"}, timeout=100)
            await admin.add_partitions("t", 3, timeout=100)
            async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                for partition in range(3):
                    await producer.send("t", b"x", partition=partition)
            moves = {("t", 0): made[0][::-1]}
            assert await admin.reassign(moves, timeout=100) == {("t", 0): Move.DONE}
            await admin.elect_preferred_leaders(timeout=100)
            await admin.alter_configs("topics/t", {"flush.ms": "5"}, remove=["retention.ms"])
            assert await admin.describe_configs("topics/t") == {"flush.ms": "5"}
            await admin.reset_group_offsets("g", {("t", 0): 1})
            assert await admin.group_offsets("g") == {("t", 0): 1}
            await admin.delete_topic("t", timeout=100)
            assert await admin.zk.exists(paths.topic("t")) is None
