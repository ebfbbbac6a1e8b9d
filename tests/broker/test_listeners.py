"""Several listeners of one cluster, each with its own security protocol and addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pykafka08 import Admin, Consumer, EmbeddedCluster, Producer
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.errors import ConfigError, KafkaError
from pykafka08.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from tests.broker.raw import connected

pytestmark = pytest.mark.anyio

LISTENERS = {"INTERNAL": "PLAINTEXT", "EXTERNAL": "SASL_SSL"}
USERS = {"alice": "secret"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_clients_stay_at_their_listener() -> None:
    async with EmbeddedCluster(3, listeners=LISTENERS, users=USERS, topics={"t": 6, "other": 1}) as cluster:
        addresses = cluster.listeners
        assert cluster.bootstrap_servers == addresses["INTERNAL"]
        assert len({*addresses["INTERNAL"].split(","), *addresses["EXTERNAL"].split(",")}) == 6
        for number, listener in enumerate(LISTENERS):
            settings = cluster.client_settings(listener=listener)
            assert settings["bootstrap_servers"] == addresses[listener]
            assert settings["security_protocol"] == LISTENERS[listener]
            async with Producer(**settings) as producer:
                for partition in range(6):
                    await producer.send("t", b"%d" % number, partition=partition)
            async with Consumer("t", group_id=listener, auto_offset_reset="earliest", **settings) as consumer:
                found = [(await consumer.getone(timeout=10)).value for _ in range(6 * (number + 1))]
            assert found.count(b"%d" % number) == 6
            async with Producer.from_properties(cluster.client_properties(listener=listener)) as producer:
                await producer.send("other", b"", partition=0)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_answers_have_the_addresses_of_the_listener_that_was_asked() -> None:
    hosts = {"EXTERNAL": "localhost"}
    listeners = {"INTERNAL": "PLAINTEXT", "EXTERNAL": "PLAINTEXT"}
    async with EmbeddedCluster(2, listeners=listeners, advertised_host=hosts, topics={"t": 2}) as cluster:
        for listener, host in (("INTERNAL", "127.0.0.1"), ("EXTERNAL", "localhost")):
            addresses = cluster.listeners[listener].split(",")
            assert [each.rpartition(":")[0] for each in addresses] == [host] * 2
            async with connected(addresses[0]) as raw:
                metadata = await raw.ask(MetadataRequest(topics=[]), 9)
                assert [f"{each.host}:{each.port}" for each in metadata.brokers] == addresses
                described = await raw.ask(DescribeClusterRequest(), 0)
                assert [f"{each.host}:{each.port}" for each in described.brokers] == addresses


async def test_a_broker_keeps_the_ports_of_its_listeners() -> None:
    async with EmbeddedCluster(listeners=LISTENERS, users=USERS) as cluster:
        before = cluster.listeners
        await cluster.stop_broker(0)
        assert cluster.listeners == {"INTERNAL": "", "EXTERNAL": ""}
        await cluster.start_broker(0)
        assert cluster.listeners == before
        async with Admin(**cluster.client_settings(listener="EXTERNAL")) as admin:
            assert await admin.list_groups() == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_listener_demands_its_own_protocol() -> None:
    async with EmbeddedCluster(listeners=LISTENERS, users=USERS) as cluster:
        secured, plain = (cluster.listeners[name] for name in ("EXTERNAL", "INTERNAL"))
        for settings in (
            {**cluster.client_settings(listener="EXTERNAL"), "bootstrap_servers": plain},
            {**cluster.client_settings(listener="INTERNAL"), "bootstrap_servers": secured},
        ):
            with pytest.raises(KafkaError):
                async with Admin(**settings, default_api_timeout_ms=3000):
                    pass


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_listeners_are_described_and_registered() -> None:
    listeners = {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_PLAINTEXT"}
    async with (
        EmbeddedZooKeeper() as zookeeper,
        EmbeddedCluster(
            version="3.9",
            listeners=listeners,
            users=USERS,
            zookeeper=zookeeper,
            advertised_host={"OUTSIDE": "localhost"},
        ) as cluster,
    ):
        inside, outside = (int(each.rpartition(":")[2]) for each in cluster.listeners.values())
        async with Admin(**cluster.client_settings()) as admin:
            entries = await admin.describe_broker_configs(0)
        assert entries["listeners"].value == f"INSIDE://127.0.0.1:{inside},OUTSIDE://127.0.0.1:{outside}"
        assert entries["advertised.listeners"].value == f"INSIDE://127.0.0.1:{inside},OUTSIDE://localhost:{outside}"
        assert entries["listener.security.protocol.map"].value == "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"
        document = json.loads(zookeeper.read("/brokers/ids/0") or b"{}")
        assert document["endpoints"] == entries["advertised.listeners"].value.split(",")
        assert document["listener_security_protocol_map"] == listeners
        assert (document["host"], document["port"]) == ("127.0.0.1", inside)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"listeners": {}}, "is not a mapping of listeners' names"),
        ({"listeners": ["INTERNAL"]}, "is not a mapping of listeners' names"),
        ({"listeners": {"INTERNAL": "TLS"}}, "INTERNAL='TLS' is not one of PLAINTEXT"),
        ({"listeners": {"internal": "SSL"}}, "'internal' is not a listener's name"),
        ({"listeners": {"CONTROLLER": "SSL"}}, "'CONTROLLER' is not a listener's name"),
        ({"listeners": LISTENERS, "security": "SSL"}, "exclude each other"),
        ({"listeners": LISTENERS, "version": "0.10.1"}, r"before Kafka 0\.10\.2"),
        ({"listeners": {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"}, "version": "0.8.2"}, "has one listener"),
        ({"listeners": LISTENERS, "advertised_host": {"OTHER": "h"}}, "there is no listener 'OTHER'"),
        ({"listeners": LISTENERS, "advertised_host": {"EXTERNAL": "a b"}}, "'a b' is not an address"),
        ({"listeners": LISTENERS, "port": 65535}, "port=65535"),
        ({"properties": {"listeners": "PLAINTEXT://:1"}}, "set listeners"),
    ],
)
def test_impossible_listeners_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        EmbeddedCluster(**arguments)


async def test_an_unknown_listener_is_an_error() -> None:
    async with EmbeddedCluster(listeners=LISTENERS, users=USERS) as cluster:
        with pytest.raises(ConfigError, match="there is no listener 'OTHER'; the cluster has INTERNAL, EXTERNAL"):
            cluster.client_settings(listener="OTHER")
