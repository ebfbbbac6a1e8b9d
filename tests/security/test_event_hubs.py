"""The settings of docs/clouds.md for Azure Event Hubs, against a proxy with the limits of Event Hubs."""

from __future__ import annotations

import ssl
import struct
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme

from pykafka08 import Admin, Consumer, EmbeddedCluster, Producer, TopicPartition
from pykafka08.protocol.headers import encode_request
from pykafka08.protocol.messages import REGISTRY
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest
from tests.security.cloud_page import PAIRS
from tests.security.event_hubs import MISSING, event_hubs

pytestmark = pytest.mark.anyio

USER, CONNECTION_STRING = "$ConnectionString", "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKey=a=b,c;"


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """The server's context, and the CA file for clients."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    path: Path = tmp_path_factory.mktemp("namespace") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return context, str(path)


def settings_of(address: str, ca_file: str) -> dict[str, Any]:
    """The first block of the page, with the connection string of this namespace, and its CA."""
    block = next(pair.python for pair in PAIRS if pair.heading == "Azure Event Hubs")
    settings = block.settings()
    assert settings["sasl_plain_username"] == USER
    return {
        **settings,
        "bootstrap_servers": address,
        "sasl_plain_password": CONNECTION_STRING,
        "ssl_cafile": ca_file,
    }


async def test_clients_work_within_the_limits_of_event_hubs(namespace: tuple[ssl.SSLContext, str]) -> None:
    users = {USER: CONNECTION_STRING}
    async with (
        EmbeddedCluster(brokers=2, security="SASL_PLAINTEXT", users=users, topics={"t": 4}) as cluster,
        event_hubs(cluster.bootstrap_servers.split(",")[0], tls=namespace[0]) as hubs,
    ):
        settings = settings_of(hubs.address, namespace[1])
        for node in cluster.brokers[1:]:
            await cluster.stop_broker(node.node_id)  # one address serves the namespace
        async with Admin(**settings) as admin:
            assert await admin.list_topics() == ["t"]
        async with Producer(**settings) as producer:
            await producer.send_many("t", [b"%d" % number for number in range(200)])
        async with Consumer("t", group_id="g", auto_offset_reset="earliest", **settings) as consumer:
            got = [await consumer.getone(timeout=20) for _ in range(200)]
            await consumer.commit()
        assert sorted(int(record.value or b"") for record in got) == list(range(200))
    assert hubs.resets == 0
    assert max(version for _, name, version in hubs.requests if name == "ApiVersions") == 3
    missing = {REGISTRY[key].name for key in MISSING if key in REGISTRY}
    assert missing
    assert not {name for _, name, _ in hubs.requests} & missing


async def test_a_version_of_api_versions_that_resets_the_connection_is_not_asked_again(
    namespace: tuple[ssl.SSLContext, str],
) -> None:
    """The proxy resets on version 4, as Event Hubs does; with a reset on version 3 clients would go on."""
    users = {USER: CONNECTION_STRING}
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=users, topics={"t": 1}) as cluster:
        async with event_hubs(cluster.bootstrap_servers) as hubs:
            async with await anyio.connect_tcp(*hubs.address.split(":")) as stream:
                request = encode_request(ApiVersionsRequest(), 4, 1, "client")
                await stream.send(struct.pack(">i", len(request)) + request)
                with pytest.raises(anyio.BrokenResourceError):
                    await stream.receive()
            assert hubs.resets == 1
        async with event_hubs(cluster.bootstrap_servers, tls=namespace[0], reset_from=3) as hubs:
            settings = settings_of(hubs.address, namespace[1])
            async with Producer(**settings) as producer:
                await producer.send("t", b"value")
            async with Consumer("t", group_id="g", auto_offset_reset="earliest", **settings) as consumer:
                assert (await consumer.getone(timeout=20)).value == b"value"
            assert hubs.resets == 2  # once for each client
            assert {version for _, name, version in hubs.requests if name == "ApiVersions"} == {0, 3}


async def test_connections_that_event_hubs_closes_when_idle_lose_nothing(namespace: tuple[ssl.SSLContext, str]) -> None:
    """Event Hubs closes connections that are idle for 4 minutes; here the proxy closes them after 50 ms."""
    users = {USER: CONNECTION_STRING}
    async with (
        EmbeddedCluster(security="SASL_PLAINTEXT", users=users, topics={"t": 1}) as cluster,
        event_hubs(cluster.bootstrap_servers, tls=namespace[0], idle_s=0.05) as hubs,
        Producer(**settings_of(hubs.address, namespace[1])) as producer,
        Consumer(
            "t", group_id="g", auto_offset_reset="earliest", **settings_of(hubs.address, namespace[1])
        ) as consumer,
    ):
        for number in range(4):
            assert (await producer.send("t", b"value")).offset == number
            assert (await consumer.getone(timeout=20)).offset == number
            assert await consumer.commit() == {}
            for _ in range(3):  # connections of the producer and the consumer
                with anyio.fail_after(60):
                    await hubs.wait_idle_close()
        (committed,) = (await consumer.committed([TopicPartition("t", 0)])).values()
        assert committed is not None
        assert committed.offset == 4
    assert hubs.idle_closes >= 12
