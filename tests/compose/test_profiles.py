"""Every profile of docker/'s compose files: up, healthy, records written and read through it, a group on it, down."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import Consumer, Producer
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.group.coordinator import OffsetAndMetadata
from pykafka08.records.record import TopicPartition
from tests.brokers.model import HOST
from tests.brokers.releases import version_tuple
from tests.compose.files import composed, free_ports
from tests.group.members import member, wait_shared
from tests.integration.reading import read_records

PROFILES = {"0.8.2.2": "0.8.2", "0.9.0.1": "0.9", "0.11.0.3": "0.11", "2.8.2": "2.8", "3.9.2": "3.9", "4.3.1": "4.3"}
RECORDS = 500
GROUP_S = 90
"""__consumer_offsets is being made."""
STEADY = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 200, "max_poll_interval_ms": 15_000}

pytestmark = [pytest.mark.anyio, pytest.mark.compose, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(600)]


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


async def commit_in_a_group(bootstrap_servers: str, topic: str, *, has_groups: bool) -> None:
    """A member owns the topic's partition and commits; another client of the group sees what was committed."""
    partition = TopicPartition(topic, 0)
    topics, settings = ([topic], STEADY) if has_groups else ([], {})
    async with member(bootstrap_servers, *topics, group_id="readers", **settings) as reader:
        if has_groups:
            await wait_shared([reader], [partition], GROUP_S)
        with anyio.fail_after(GROUP_S):
            assert await reader.group.commit({partition: OffsetAndMetadata(RECORDS, -1, "")}) == {}
    async with member(bootstrap_servers, group_id="readers") as outsider:
        found = (await outsider.group.committed([partition]))[partition]
    assert found is not None
    assert found.offset == RECORDS


@pytest.mark.parametrize("version", PROFILES)
async def test_a_profile_serves_records_and_a_group(version: str) -> None:
    kafka, zookeeper = free_ports(2)
    ports = {"KAFKA_PORT": str(kafka), "ZOOKEEPER_PORT": str(zookeeper)}
    with composed("compose.yaml", PROFILES[version], version, **ports):
        await write_and_read(f"{HOST}:{kafka}", "orders")
        await commit_in_a_group(f"{HOST}:{kafka}", "orders", has_groups=version_tuple(version) >= (0, 9))


@pytest.mark.parametrize(
    ("version", "profile"), [("0.9.0.1", "zookeeper"), ("3.9.2", "kraft")], ids=["zookeeper", "kraft"]
)
async def test_three_brokers_replicate(version: str, profile: str) -> None:
    *kafka, zookeeper = free_ports(4)
    ports = {f"KAFKA_PORT_{number}": str(port) for number, port in enumerate(kafka, 1)}
    with composed("three.yaml", profile, version, KAFKA_VERSION=version, ZOOKEEPER_PORT=str(zookeeper), **ports):
        for port in kafka:
            await write_and_read(f"{HOST}:{port}", f"orders-{port}")
        servers = parse_bootstrap_servers(f"{HOST}:{kafka[0]}")
        async with Client(ClientConfig(bootstrap_servers=servers)) as client:
            snapshot = await client.wait_for_topics([f"orders-{port}" for port in kafka])
        assert {broker.port for broker in snapshot.brokers.values()} == set(kafka)
        assert {len(topic.partitions[0].replicas) for topic in snapshot.topics.values()} == {3}
