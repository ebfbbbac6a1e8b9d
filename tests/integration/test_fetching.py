"""What a fetch has beyond records, against real brokers: sessions, followers, truncation, topics made again."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from pykafka08 import Consumer, NewRecord, Producer, Record, TopicPartition
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka08.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import DEADLINE_S, read_records

PARTITIONS = 20
PASSING = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
CLUSTER_S = 90
RACKS = ("1:broker.rack=a", "2:broker.rack=b", "3:broker.rack=c")
SELECTOR = "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"

pytestmark = pytest.mark.anyio


def consumer_of(kafka: RealCluster, *topics: str, **settings: Any) -> Consumer:
    return Consumer(
        *topics,
        bootstrap_servers=kafka.bootstrap,
        **{"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **settings},
    )


async def produce(
    kafka: RealCluster, topic: str, values: Sequence[bytes], partition: int = 0, acks: object = 1
) -> None:
    async with Producer(bootstrap_servers=kafka.bootstrap, acks=acks) as producer:
        await producer.send_many(topic, [NewRecord(value, partition=partition) for value in values])


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def wait_leader(kafka: RealCluster, topic: str, leader: int) -> None:
    """Until broker 3 says so."""
    end = time.monotonic() + CLUSTER_S
    while kafka.leader(topic, 0, 3) != leader:
        assert time.monotonic() < end, f"broker {leader} does not lead {topic} after {CLUSTER_S} s"
        time.sleep(0.1)


def answers(caplog: pytest.LogCaptureFixture) -> list[dict[str, int]]:
    """``node_id``, ``session_epoch``, ``named`` and ``partitions`` of each fetch that was answered."""
    return [vars(record) for record in caplog.records if vars(record).get("event") == "fetch.answered"]


class Topics:
    """Creates and deletes topics where and when a test says."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def _controller(self) -> int:
        return (await self._client.refresh()).controller_id or 1

    async def delete(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)

        def made(versions: object) -> DeleteTopicsRequest:
            if versions.pick(DeleteTopicsRequest) >= 6:  # type: ignore[attr-defined]
                return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
            return request

        response = await self._client.request(await self._controller(), made)
        assert [each.error_code for each in response.responses] == [0]

    async def create(self, name: str, replicas: Sequence[int] = (1,), **configs: str) -> None:
        """One partition; waits while an old topic of that name is going."""
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        with anyio.fail_after(CLUSTER_S):
            while True:
                request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
                (result,) = (await self._client.request(await self._controller(), request)).topics
                if not result.error_code:
                    return
                assert result.error_code in PASSING, result
                await anyio.sleep(0.1)


@asynccontextmanager
async def topics_of(kafka: RealCluster) -> AsyncIterator[Topics]:
    config = ClientConfig(bootstrap_servers=parse_bootstrap_servers(kafka.bootstrap))
    async with Client(config, allow_auto_topic_creation=False) as client:
        yield Topics(client)


@pytest.mark.parametrize("version", ["1.1.1", "2.8.2", "3.9.2", "4.3.1"])
async def test_incremental_fetches(clusters: Clusters, version: str, caplog: pytest.LogCaptureFixture) -> None:
    kafka = clusters.running(version)
    topic = kafka.new_topic("sessions", PARTITIONS)
    caplog.set_level(logging.DEBUG, "pykafka08.consumer")
    async with consumer_of(kafka, topic) as consumer:
        for number in range(PARTITIONS):
            await produce(kafka, topic, numbered(0, 5), number)
        seen = await read_records(consumer, 5 * PARTITIONS)
        with anyio.fail_after(DEADLINE_S):  # until all is told
            while answers(caplog)[-1]["named"] or answers(caplog)[-1]["partitions"]:
                assert await consumer.getmany(timeout=0.1) == []
        caplog.clear()
        with anyio.fail_after(DEADLINE_S):
            while len(answers(caplog)) < 3:
                assert await consumer.getmany(timeout=0.1) == []
        assert all(each["session_epoch"] > 0 and not each["named"] for each in answers(caplog))
        caplog.clear()
        for number in (3, 11):
            await produce(kafka, topic, numbered(5, 10), number)
        seen += await read_records(consumer, 10)
        with anyio.fail_after(DEADLINE_S):
            while answers(caplog)[-1]["named"] or answers(caplog)[-1]["partitions"]:
                assert await consumer.getmany(timeout=0.1) == []
        assert {each["session_id"] for each in answers(caplog)} == {answers(caplog)[0]["session_id"]}
        # At most one of ten records each time, and none of the other eighteen partitions.
        assert 1 <= sum(each["named"] for each in answers(caplog)) <= 10
        await consumer.seek(TopicPartition(topic, 7), 2)
        seen += await read_records(consumer, 3)
    offsets = sorted((record.partition, record.offset) for record in seen)
    expected = [(number, offset) for number in range(PARTITIONS) for offset in range(5)]
    expected += [(number, offset) for number in (3, 11) for offset in range(5, 10)] + [(7, n) for n in (2, 3, 4)]
    assert offsets == sorted(expected)


@pytest.mark.parametrize("version", ["2.8.2", "4.3.1"])
async def test_a_topic_that_is_deleted_and_made_again(clusters: Clusters, version: str) -> None:
    kafka = clusters.running(version)
    name = kafka.new_topic("again")
    tp = TopicPartition(name, 0)
    await produce(kafka, name, numbered(0, 50))
    async with topics_of(kafka) as topics, consumer_of(kafka, name, group_id=f"{name}-readers") as consumer:
        await read_records(consumer, 50)
        await consumer.commit()
        await topics.delete(name)
        await topics.create(name)
        await produce(kafka, name, numbered(500, 510))
        records = await read_records(consumer, 10)
        assert [(record.offset, record.value) for record in records] == list(enumerate(numbered(500, 510)))
        assert await consumer.position(tp) == 10
        await consumer.commit()
        committed = (await consumer.committed([tp]))[tp]
        assert committed is not None
        assert committed.offset == 10


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("version", ["4.3.1"])
@pytest.mark.cluster(is_special=True)
async def test_a_replica_in_the_rack_of_the_consumer_is_read(
    clusters: Clusters, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = clusters.running(version, 3, [*RACKS, SELECTOR])
    name = kafka.new_topic("racks-probe").replace("probe", "read")
    caplog.set_level(logging.DEBUG, "pykafka08.consumer")
    async with topics_of(kafka) as topics:
        await topics.create(name, [1, 2, 3])
    await produce(kafka, name, numbered(0, 10), acks="all")
    async with consumer_of(kafka, name, client_rack="b") as consumer:
        seen = await read_records(consumer, 10)
        caplog.clear()
        await produce(kafka, name, numbered(10, 20), acks="all")
        seen += await read_records(consumer, 10)
        assert {each["node_id"] for each in answers(caplog) if each["partitions"]} == {2}
        # The follower goes: the leader is read, and nothing is lost or repeated.
        await anyio.to_thread.run_sync(kafka.kill, 2)
        await produce(kafka, name, numbered(20, 30))
        seen += await read_records(consumer, 10)
        await anyio.to_thread.run_sync(kafka.start, 2)
    assert [record.value for record in seen] == numbered(0, 30)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("version", ["4.3.1"])
@pytest.mark.timeout(420)
@pytest.mark.cluster(is_special=True)
async def test_records_that_an_unclean_election_loses(clusters: Clusters, version: str) -> None:
    """Broker 2 stands still while 1 takes records that are read; 1 dies, and 2, which has not got them, leads."""
    kafka = clusters.running(version, 3, ["replica.lag.time.max.ms=2000", "broker.session.timeout.ms=4000"])
    name = kafka.new_topic("unclean-probe").replace("probe", "read")
    async with topics_of(kafka) as topics:
        await topics.create(name, [1, 2], **{"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    await produce(kafka, name, numbered(0, 10), acks="all")
    async with consumer_of(kafka, name) as consumer:
        seen: list[Record] = await read_records(consumer, 10)
        await anyio.to_thread.run_sync(kafka.pause, 2)
        for first in range(10, 20, 5):
            await produce(kafka, name, numbered(first, first + 5))
        seen += await read_records(consumer, 10, CLUSTER_S)  # readable when 2 is out of sync
        await anyio.to_thread.run_sync(kafka.kill, 1)
        await anyio.to_thread.run_sync(kafka.resume, 2)
        await anyio.to_thread.run_sync(partial(wait_leader, kafka, name, 2))
        await produce(kafka, name, numbered(100, 130))
        after = await read_records(consumer, 30)
        await anyio.to_thread.run_sync(kafka.start, 1)
    assert [(record.offset, record.value) for record in seen] == list(enumerate(numbered(0, 20)))
    cut = after[0].offset
    assert cut in (10, 15)  # the answer to a fetch from before it stood still reaches broker 2 later
    assert [(record.offset, record.value) for record in after] == list(enumerate(numbered(100, 130), cut))
