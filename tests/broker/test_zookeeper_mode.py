"""Embedded brokers beside an embedded ZooKeeper: what they write there, and what they do on account of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pykafka08 import ConfigError, EmbeddedCluster, Producer
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from pykafka08.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.broker.raw import connect

pytestmark = pytest.mark.anyio

PATIENCE = 60.0


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nobody sets an event for it
            await anyio.sleep(0.01)


@asynccontextmanager
async def pair(
    version: str = "0.8.2", brokers: int = 1, **settings: Any
) -> AsyncIterator[tuple[EmbeddedZooKeeper, EmbeddedCluster]]:
    async with EmbeddedZooKeeper() as zookeeper:
        async with EmbeddedCluster(brokers, version, zookeeper=zookeeper, **settings) as cluster:
            yield zookeeper, cluster


def document(zookeeper: EmbeddedZooKeeper, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(zookeeper.read(path))
    return found


@pytest.mark.parametrize(
    ("version", "number", "keys"),
    [
        ("0.8.2", 1, set()),
        ("0.9.0", 2, {"endpoints"}),
        ("0.10.1", 3, {"endpoints"}),
        ("1.1", 4, {"endpoints", "listener_security_protocol_map"}),
        ("3.9", 5, {"endpoints", "listener_security_protocol_map", "features"}),
    ],
)
async def test_registrations(version: str, number: int, keys: set[str]) -> None:
    async with pair(version, 2) as (zookeeper, cluster):
        for node in cluster.brokers:
            path = f"/brokers/ids/{node.node_id}"
            registration = document(zookeeper, path)
            assert zookeeper.ephemeral_owner(path) != 0
            assert (registration["host"], registration["port"]) == (node.host, node.port)
            assert registration["version"] == number
            assert isinstance(registration["timestamp"], str)
            assert set(registration) == {"jmx_port", "timestamp", "host", "version", "port"} | keys
        assert document(zookeeper, "/controller")["brokerid"] == 0
        assert zookeeper.read("/controller_epoch") == b"1"
        assert zookeeper.exists("/cluster/id") == (version not in ("0.8.2", "0.9.0"))
        await cluster.stop_broker(0)
        assert zookeeper.children("/brokers/ids") == ["1"]
        assert document(zookeeper, "/controller")["brokerid"] == 1
        assert zookeeper.read("/controller_epoch") == b"2"
    assert zookeeper.children("/brokers/ids") == []
    assert not zookeeper.exists("/controller")


async def test_a_secured_broker_registers_its_listener() -> None:
    users = {"alice": "secret"}
    async with pair("2.8", security="SASL_SSL", users=users) as (zookeeper, cluster):
        found = document(zookeeper, "/brokers/ids/0")
        assert found["endpoints"] == [f"SASL_SSL://{cluster.bootstrap_servers}"]
    assert found["listener_security_protocol_map"] == {"SASL_SSL": "SASL_SSL"}
    assert (found["host"], found["port"]) == (None, -1)


@pytest.mark.parametrize("version", ["0.8.0", "0.8.2", "2.4", "3.9"])
async def test_topics_of_the_brokers_are_written(version: str) -> None:
    async with pair(version, 2, topics={"t": 2}) as (zookeeper, cluster):
        cluster.create_topic("u", 1, config={"retention.ms": "5"})
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send("made-on-demand", b"x")
        await until(lambda: zookeeper.exists("/brokers/topics/made-on-demand/partitions/0/state"))
        assert set(document(zookeeper, "/brokers/topics/t")["partitions"]) == {"0", "1"}
        state = document(zookeeper, "/brokers/topics/t/partitions/1/state")
        assert state["leader"] == cluster.leader("t", 1)
        assert sorted(state["isr"]) == [0, 1]
        assert ("topic_id" in document(zookeeper, "/brokers/topics/t")) == (version == "3.9")
        assert zookeeper.exists("/config/topics/u") == (version != "0.8.0")
        if version != "0.8.0":
            assert document(zookeeper, "/config/topics/u") == {"version": 1, "config": {"retention.ms": "5"}}
        cluster.delete_topic("u")
        await until(lambda: not zookeeper.exists("/brokers/topics/u"))
        assert not zookeeper.exists("/config/topics/u")


async def test_topics_of_others_are_made() -> None:
    async with pair("0.8.2", 2) as (zookeeper, cluster):
        zookeeper.create("/config/topics/t", b'{"version":1,"config":{"retention.ms":"7"}}')
        zookeeper.create("/brokers/topics/bad", b"{}")
        zookeeper.create("/brokers/topics/t", b'{"version":1,"partitions":{"1":[0,1],"0":[1]}}')
        await until(lambda: zookeeper.exists("/brokers/topics/t/partitions/1/state"))
        assert cluster.topics == {"t": 2}
        assert (cluster.leader("t", 0), cluster.leader("t", 1)) == (1, 0)
        assert cluster._state.topics.find("t").config == {"retention.ms": "7"}  # type: ignore[union-attr]
        zookeeper.write("/brokers/topics/t", b'{"version":1,"partitions":{"1":[0,1],"0":[1],"2":[1,0]}}')
        await until(lambda: zookeeper.exists("/brokers/topics/t/partitions/2/state"))
        assert cluster.topics == {"t": 3}
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"x", partition=2)).partition == 2


@pytest.mark.parametrize(
    ("version", "enabled", "goes"), [("0.8.2", None, False), ("0.8.2", True, True), ("1.1", None, True)]
)
async def test_topics_are_deleted(version: str, enabled: bool | None, goes: bool) -> None:
    async with pair(version, topics={"t": 1}, delete_topic_enable=enabled) as (zookeeper, cluster):
        await until(lambda: zookeeper.exists("/brokers/topics/t"))
        zookeeper.create("/admin/delete_topics/nothing")
        zookeeper.create("/admin/delete_topics/t")
        await until(lambda: "nothing" not in zookeeper.children("/admin/delete_topics"))
        assert ("t" not in cluster.topics) == goes
        assert zookeeper.children("/admin/delete_topics") == ([] if goes else ["t"])
        assert zookeeper.exists("/brokers/topics/t") != goes


async def test_leaders_move() -> None:
    async with pair("0.8.2", 3, topics={"t": 1}, replication_factor=2) as (zookeeper, cluster):
        path = "/brokers/topics/t/partitions/0/state"
        await until(lambda: zookeeper.exists(path))
        first = document(zookeeper, path)
        await cluster.stop_broker(first["leader"])
        second = document(zookeeper, path)
        assert second["leader"] not in (first["leader"], -1)
        assert second["isr"] == [second["leader"]]
        assert second["leader_epoch"] == first["leader_epoch"] + 1
        await cluster.start_broker(first["leader"])
        zookeeper.create(
            "/admin/preferred_replica_election", b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
        )
        await until(lambda: document(zookeeper, path)["leader"] == first["leader"])
        await until(lambda: not zookeeper.exists("/admin/preferred_replica_election"))
        target = [node for node in (0, 1, 2) if node != first["leader"]]
        asked = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": target}]}
        zookeeper.create("/admin/reassign_partitions", json.dumps(asked).encode())
        await until(lambda: not zookeeper.exists("/admin/reassign_partitions"))
        assert document(zookeeper, "/brokers/topics/t")["partitions"] == {"0": target}
        assert document(zookeeper, path)["leader"] in target
        assert cluster.leader("t", 0) in target


@pytest.mark.parametrize(
    ("version", "note", "is_read"),
    [
        ("0.8.2", b'"t"', True),
        ("0.9.0", b'"t"', False),
        ("0.9.0", b'{"version":1,"entity_type":"topics","entity_name":"t"}', True),
        ("0.9.0", b'{"version":2,"entity_path":"topics/t"}', False),
        ("3.9", b'{"version":2,"entity_path":"topics/t"}', True),
        ("3.9", b"{}}", False),
    ],
)
async def test_settings_are_heeded_in_the_form_of_the_release(version: str, note: bytes, is_read: bool) -> None:
    async with pair(version, topics={"t": 1}) as (zookeeper, cluster):
        await until(lambda: zookeeper.exists("/config/topics/t"))
        zookeeper.write("/config/topics/t", b'{"version":1,"config":{"retention.ms":"9"}}')
        zookeeper.create("/config/changes/config_change_", note, sequence=True)
        zookeeper.create("/brokers/topics/last", b'{"version":1,"partitions":{"0":[0]}}')
        await until(lambda: "last" in cluster.topics)
        topic = cluster._state.topics.find("t")
        assert topic is not None
        assert topic.config == ({"retention.ms": "9"} if is_read else {})


async def test_changes_by_the_admin_apis_are_written() -> None:
    changes = [AlterableConfig(name="retention.ms", config_operation=0, value="5")]
    altering = AlterConfigsResource(resource_type=2, resource_name="t", configs=changes)
    moving = ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[1])])
    async with pair("2.8", 2, topics={"t": 1}, replication_factor=1) as (zookeeper, cluster), connect(cluster) as raw:
        await until(lambda: zookeeper.exists("/brokers/topics/t"))
        await raw.ask(IncrementalAlterConfigsRequest(resources=[altering]), 1)
        await raw.ask(AlterPartitionReassignmentsRequest(topics=[moving]), 0)
        await until(lambda: document(zookeeper, "/config/topics/t")["config"] == {"retention.ms": "5"})
        await until(lambda: document(zookeeper, "/brokers/topics/t")["partitions"] == {"0": [1]})
        await until(lambda: document(zookeeper, "/brokers/topics/t/partitions/0/state")["leader"] == 1)


async def test_a_broker_whose_session_was_ended_registers_again() -> None:
    async with pair() as (zookeeper, _):
        owner = zookeeper.ephemeral_owner("/brokers/ids/0")
        zookeeper.expire_session(owner)
        await until(lambda: zookeeper.exists("/brokers/ids/0") and zookeeper.exists("/controller"))
        assert zookeeper.ephemeral_owner("/brokers/ids/0") != owner


async def test_nothing_happens_while_zookeeper_is_away() -> None:
    async with pair() as (zookeeper, cluster):
        await zookeeper.stop()
        cluster.create_topic("t", 1)
        await anyio.sleep(0.05)
        assert not zookeeper.exists("/brokers/topics/t")
        await zookeeper.start()
        await until(lambda: zookeeper.exists("/brokers/topics/t/partitions/0/state"))


async def test_a_new_cluster_takes_over_what_the_old_one_left() -> None:
    async with EmbeddedZooKeeper() as zookeeper:
        for epoch in (b"1", b"2"):
            async with EmbeddedCluster(
                version="0.8.2", topics={"t": 3}, zookeeper=zookeeper, zookeeper_chroot="/kafka"
            ) as cluster:
                assert cluster.topics == {"t": 3}
                await until(lambda: zookeeper.exists("/kafka/brokers/topics/t/partitions/2/state"))
                assert zookeeper.read("/kafka/controller_epoch") == epoch
            assert zookeeper.paths("/kafka/brokers/ids") == []


async def test_kafka_without_zookeeper() -> None:
    async with EmbeddedZooKeeper() as zookeeper:
        with pytest.raises(ConfigError, match=r"3\.9"):
            EmbeddedCluster(version="4.0", zookeeper=zookeeper)


async def test_offsets_of_version_0_are_those_of_old_consumers() -> None:
    async with pair("0.8.2", topics={"t": 2}) as (zookeeper, cluster):
        store = cluster._state.groups.offsets_v0
        zookeeper.create("/consumers/g/offsets/t/1", b"42")
        zookeeper.create("/consumers/g/offsets/t/0", b"nonsense")
        assert {key: each.offset for key, each in store.of("g").items()} == {("t", 1): 42}
        partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=43)
        commit = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])
        asked = [OffsetFetchRequestTopic(name="t", partition_indexes=[1])]
        async with connect(cluster) as raw:
            assert (await raw.ask(commit, 0)).topics[0].partitions[0].error_code == 0
            found = (await raw.ask(OffsetFetchRequest(group_id="g", topics=asked), 0)).topics[0].partitions[0]
            assert (found.committed_offset, found.error_code) == (43, 0)
            found = (await raw.ask(OffsetFetchRequest(group_id="new", topics=asked), 0)).topics[0].partitions[0]
            assert (found.committed_offset, found.error_code) == (-1, 3)
        assert zookeeper.read("/consumers/g/offsets/t/1") == b"43"
