"""Every profile of docker/'s compose files: up, healthy, records written and read through it, a group on it, down."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pykafka08 import Consumer, Producer
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.records.record import TopicPartition
from tests.brokers.model import HOST
from tests.brokers.releases import version_tuple
from tests.compose.files import composed, free_ports
from tests.integration.reading import read_records

PROFILES = {"0.8.2.2": "0.8.2", "0.9.0.1": "0.9", "0.11.0.3": "0.11", "2.8.2": "2.8", "3.9.2": "3.9", "4.3.1": "4.3"}
RECORDS = 500
GROUP_S = 90
"""__consumer_offsets is being made."""

pytestmark = [pytest.mark.anyio, pytest.mark.compose, pytest.mark.timeout(600)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what is tried here is the brokers' set-up."""
    return "asyncio"


async def write_and_read(bootstrap_servers: str, topic: str) -> None:
    values = [b"value %d" % number for number in range(RECORDS)]
    async with Producer(bootstrap_servers=bootstrap_servers, acks="all") as producer:
        await producer.send_many(topic, values)
    async with Consumer(topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest") as consumer:
        records = await read_records(consumer, RECORDS)
    assert sorted(record.value or b"" for record in records) == sorted(values)


async def read_in_a_group(bootstrap_servers: str, topic: str, *, has_groups: bool) -> None:
    """One consumer reads all and commits; the next one of its group goes on there. 0.8 only keeps the offsets."""
    topics = [topic] if has_groups else []
    for said in (b"before", b"after"):
        async with Producer(bootstrap_servers=bootstrap_servers) as producer:
            await producer.send_many(topic, [said] * RECORDS)
        async with Consumer(
            *topics,
            bootstrap_servers=bootstrap_servers,
            group_id="readers",
            auto_offset_reset="earliest",
        ) as consumer:
            if not has_groups:
                consumer.assign([TopicPartition(topic, 0)])
            records = await read_records(consumer, RECORDS, GROUP_S)
            assert {record.value for record in records} == {said}
            assert await consumer.commit() == {}


@pytest.mark.parametrize("version", PROFILES)
async def test_a_profile_serves_records_and_a_group(version: str) -> None:
    with (
        free_ports(2) as (kafka, zookeeper),
        composed("compose.yaml", PROFILES[version], version, KAFKA_PORT=str(kafka), ZOOKEEPER_PORT=str(zookeeper)),
    ):
        await write_and_read(f"{HOST}:{kafka}", "orders")
        await read_in_a_group(f"{HOST}:{kafka}", "shared", has_groups=version_tuple(version) >= (0, 9))


@pytest.mark.parametrize(
    ("version", "profile"), [("0.9.0.1", "zookeeper"), ("3.9.2", "kraft")], ids=["zookeeper", "kraft"]
)
async def test_three_brokers_replicate(version: str, profile: str) -> None:
    with ExitStack() as until_down:
        *kafka, zookeeper = until_down.enter_context(free_ports(4))
        ports = {f"KAFKA_PORT_{number}": str(port) for number, port in enumerate(kafka, 1)}
        until_down.enter_context(
            composed("three.yaml", profile, version, KAFKA_VERSION=version, ZOOKEEPER_PORT=str(zookeeper), **ports)
        )
        for port in kafka:
            await write_and_read(f"{HOST}:{port}", f"orders-{port}")
        servers = parse_bootstrap_servers(f"{HOST}:{kafka[0]}")
        async with Client(ClientConfig(bootstrap_servers=servers)) as client:
            snapshot = await client.wait_for_topics([f"orders-{port}" for port in kafka])
        assert {broker.port for broker in snapshot.brokers.values()} == set(kafka)
        assert {len(topic.partitions[0].replicas) for topic in snapshot.topics.values()} == {3}
