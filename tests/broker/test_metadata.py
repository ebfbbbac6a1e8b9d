"""Metadata: what each release lists, and topics that are made by asking for them."""

from __future__ import annotations

import uuid

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pykafka08.protocol.schema import ZERO_UUID
from tests.broker.raw import Raw, connect

pytestmark = pytest.mark.anyio


def asking(*names: str, **more: bool) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def errors(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize(("release", "version"), [("0.8.0", 0), ("0.10.0", 1), ("2.8", 11), ("3.9", 12), ("4.3", 13)])
async def test_every_topic_with_its_partitions(release: str, version: int) -> None:
    async with EmbeddedCluster(3, release, {"a": 2, "b": 1}) as cluster, connect(cluster) as raw:
        response = await raw.ask(MetadataRequest(topics=None if version else []), version)
        assert {topic.name: len(topic.partitions) for topic in response.topics} == {"a": 2, "b": 1}
        for topic in response.topics:
            assert (topic.topic_id != ZERO_UUID) == (version >= 10)
            for partition in topic.partitions:
                assert partition.error_code == 0
                assert partition.leader_id == cluster.leader(str(topic.name), partition.partition_index)
                assert sorted(partition.replica_nodes) == sorted(partition.isr_nodes) == [0, 1, 2]
        assert [node.node_id for node in response.brokers] == [0, 1, 2]
        if version >= 2:
            assert response.cluster_id is not None


async def test_every_version_is_answered() -> None:
    async with EmbeddedCluster(topics={"a": 1}) as cluster, connect(cluster) as raw:
        for version in range(14):
            assert errors(await raw.ask(asking("a"), version)) == {"a": 0}


@pytest.mark.parametrize(
    ("release", "version", "first"), [("0.8.0", 0, 5), ("0.9.0", 0, 5), ("2.8", 9, 5), ("4.3", 12, 3)]
)
async def test_an_unknown_topic_is_made_and_found_the_next_time(release: str, version: int, first: int) -> None:
    async with EmbeddedCluster(2, release, default_partitions=3) as cluster, connect(cluster) as raw:
        assert errors(await raw.ask(asking("new"), version)) == {"new": first}
        response = await raw.ask(asking("new"), version)
        assert errors(response) == {"new": 0}
        assert len(response.topics[0].partitions) == 3


async def test_topics_are_not_made_where_nobody_wants_it() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        assert errors(await raw.ask(asking("new", allow_auto_topic_creation=False), 8)) == {"new": 3}
        assert errors(await raw.ask(asking("a b"), 8)) == {"a b": 17}
        assert cluster.topics == {}
    async with EmbeddedCluster(auto_create_topics=False) as cluster, connect(cluster) as raw:
        assert errors(await raw.ask(asking("new"), 8)) == {"new": 3}
        assert cluster.topics == {}


async def test_no_topics_are_all_in_version_0_and_none_later() -> None:
    async with EmbeddedCluster(version="2.8", topics={"a": 1}) as cluster, connect(cluster) as raw:
        assert errors(await raw.ask(MetadataRequest(topics=[]), 0)) == {"a": 0}
        assert errors(await raw.ask(MetadataRequest(topics=[]), 1)) == {}


async def test_0_8_2_lists_no_broker_before_the_first_topic() -> None:
    async with EmbeddedCluster(2, "0.8.2") as cluster, connect(cluster) as raw:
        assert (await raw.ask(MetadataRequest(topics=[]), 0)).brokers == []
        cluster.create_topic("a", 1, replication_factor=1)
        assert len((await raw.ask(MetadataRequest(topics=[]), 0)).brokers) == 2


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1"])
async def test_0_8_0_lists_the_brokers_of_the_asked_topics(release: str) -> None:
    async with EmbeddedCluster(3, release, {"a": 1, "b": 1}, replication_factor=1) as cluster, connect(cluster) as raw:
        response = await raw.ask(asking("b"), 0)
        assert [node.node_id for node in response.brokers] == [cluster.leader("b", 0)]


async def test_topics_can_be_asked_for_by_id() -> None:
    async def by_id(raw: Raw, topic_id: uuid.UUID) -> MetadataResponse:
        return await raw.ask(MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)]), 12)

    async with EmbeddedCluster(topics={"a": 1}) as cluster, connect(cluster) as raw:
        topic_id = (await raw.ask(asking("a"), 12)).topics[0].topic_id
        assert errors(await by_id(raw, topic_id)) == {"a": 0}
        cluster.delete_topic("a")
        assert errors(await by_id(raw, topic_id)) == {None: 100}


async def test_a_topic_made_anew_has_another_id() -> None:
    async with EmbeddedCluster(topics={"a": 1}) as cluster, connect(cluster) as raw:
        first = (await raw.ask(asking("a"), 12)).topics[0].topic_id
        cluster.delete_topic("a")
        cluster.create_topic("a")
        assert (await raw.ask(asking("a"), 12)).topics[0].topic_id != first


@pytest.mark.parametrize(
    ("release", "version", "code"), [("0.8.2", 0, 5), ("0.9.0", 0, 17), ("3.9", 12, 17), ("4.3", 13, 3)]
)
async def test_a_name_that_collides_is_not_made_by_asking_for_it(release: str, version: int, code: int) -> None:
    async with EmbeddedCluster(1, release, {"a.b": 1}) as cluster, connect(cluster) as raw:
        assert errors(await raw.ask(asking("a_b"), version)) == {"a_b": code}
        assert ("a_b" in cluster.topics) == (release == "0.8.2")
        assert errors(await raw.ask(asking("a.b"), version)) == {"a.b": 0}
