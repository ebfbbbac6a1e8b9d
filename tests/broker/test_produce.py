"""Produce over the wire: acks, errors of single partitions, every version."""

from __future__ import annotations

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.broker.raw import batch, connect, produce, produce_request, values

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("release", "magic", "versions"),
    [("0.8.0", 0, (0,)), ("0.9.0", 0, (0, 1)), ("0.10.2", 1, (0, 1, 2)), ("3.9", 2, range(3, 12)), ("4.3", 2, (12,))],
)
async def test_every_version(release: str, magic: int, versions: tuple[int, ...]) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster, connect(cluster) as raw:
        for count, version in enumerate(versions):
            answer = await produce(raw, batch(b"v", magic=magic), version)
            assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, count, -1)
        assert values(cluster.records("t", 0)) == [b"v"] * len(versions)


async def test_version_13_names_topics_by_id() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        topic_id = (await raw.ask(MetadataRequest(topics=None), 12)).topics[0].topic_id
        request = ProduceRequest(acks=-1, timeout_ms=1000)
        for _ in range(2):
            data = PartitionProduceData(index=0, records=batch(b"v"))
            request.topic_data = [TopicProduceData(topic_id=topic_id, partition_data=[data])]
            response = await raw.ask(request, 13)
            assert response.responses[0].topic_id == topic_id
            code = response.responses[0].partition_responses[0].error_code
            assert code == (0 if cluster.topics else ErrorCode.UNKNOWN_TOPIC_ID)
            if cluster.topics:
                cluster.delete_topic("t")


async def test_each_partition_has_its_own_outcome() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster, connect(cluster) as raw:
        parts = [PartitionProduceData(index=index, records=batch(b"v")) for index in (0, 1, 7)]
        parts[1].records = b"rubbish" * 20
        others = [PartitionProduceData(index=0, records=batch(b"v"))]
        request = ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(name="t", partition_data=parts),
                TopicProduceData(name="unknown", partition_data=others),
            ],
        )
        response = await raw.ask(request, 9)
        outcomes = [(topic.name, each) for topic in response.responses for each in topic.partition_responses]
        assert [(name, each.index, each.error_code) for name, each in outcomes] == [
            ("t", 0, 0),
            ("t", 1, ErrorCode.INVALID_RECORD),
            ("t", 7, 3),
            ("unknown", 0, 3),
        ]
        assert response.responses[0].partition_responses[1].error_message
        assert cluster.topics == {"t": 2}


async def test_acks_0_is_not_answered() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        await raw.send(produce_request(batch(b"one"), acks=0), 9)
        asked = await raw.send(produce_request(batch(b"two")), 9)
        answered, response = await raw.receive(ProduceResponse, 9)
        assert answered == asked
        assert response.responses[0].partition_responses[0].base_offset == 1


async def test_an_error_with_acks_0_closes_the_connection() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        await raw.send(produce_request(batch(b"one"), topic="unknown", acks=0), 9)
        assert await raw.is_closed_by_peer()


@pytest.mark.parametrize(("release", "magic", "code", "stored"), [("0.8.2", 0, 7, 1), ("0.9.0", 0, 21, 0)])
async def test_more_acks_than_replicas(release: str, magic: int, code: int, stored: int) -> None:
    """0.8 waits for them in vain, with the data in the log; 0.9 refuses."""
    async with EmbeddedCluster(2, release, {"t": 1}) as cluster, connect(cluster, cluster.leader("t", 0)) as raw:
        answer = await produce(raw, batch(b"v", magic=magic), 0, acks=3, timeout_ms=10)
        assert (answer.error_code, cluster.log_end_offset("t", 0)) == (code, stored)


async def test_as_many_acks_as_replicas_satisfy_0_8() -> None:
    async with EmbeddedCluster(2, "0.8.2", {"t": 1}) as cluster, connect(cluster, cluster.leader("t", 0)) as raw:
        assert (await produce(raw, batch(b"v", magic=0), 0, acks=2)).error_code == 0


async def test_min_insync_replicas() -> None:
    async with EmbeddedCluster(brokers=2) as cluster:
        cluster.create_topic("t", config={"min.insync.replicas": "2"})
        leader = cluster.leader("t", 0)
        async with connect(cluster, leader) as raw:
            assert (await produce(raw, batch(b"v"), 9, acks=-1)).error_code == 0
            await cluster.stop_broker(1 - leader)
            assert (await produce(raw, batch(b"v"), 9, acks=-1)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert (await produce(raw, batch(b"v"), 9, acks=1)).error_code == 0


async def test_log_append_time_is_in_the_answer() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        cluster.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
        answer = await produce(raw, batch(b"v"), 9)
        assert [record.timestamp_ms for record in cluster.records("t", 0)] == [answer.log_append_time_ms]
        assert answer.log_append_time_ms > 1_600_000_000_000


async def test_many_requests_at_once_are_answered_in_order() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        sent = [await raw.send(produce_request(batch(b"v" * 1000)), 9) for _ in range(200)]
        for count, correlation_id in enumerate(sent):
            answered, response = await raw.receive(ProduceResponse, 9)
            assert answered == correlation_id
            assert response.responses[0].partition_responses[0].base_offset == count
        assert cluster.log_end_offset("t", 0) == 200
