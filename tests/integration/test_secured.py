"""TLS and SASL on real brokers: every release that has them, every listener and mechanism of it, the same calls."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import (
    Admin,
    AuthenticationError,
    AuthorizationError,
    Consumer,
    LegacyConsumer,
    Mirror,
    NewTopic,
    Producer,
    TlsError,
    TopicPartition,
)
from tests.brokers.releases import Version, version_tuple
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import check_clients, check_tools
from tests.security.authority import Authority

pytestmark = pytest.mark.anyio

RELEASES = ("0.9.0.1", "0.10.2.2", "1.1.1", "2.8.2", "3.9.2", "4.3.1")
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
LIMITING = RELEASES[-3:] if IS_SOAK else RELEASES[-1:]
"""Releases on which a long stream is tried: their sessions can be limited."""
TOOLED = RELEASES if IS_SOAK else ("2.8.2",)
"""Releases on which every client and tool is run; 2.8.2 has both ZooKeeper and transactions."""
RECORDS = 500
REAUTHENTICATED_MS = 2000
"""A session's life on releases that limit it (2.2 and later)."""
STREAMED = 100_000


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def secured(release: str, clusters: Clusters) -> RealCluster:
    """One broker of the release with all listeners; sessions are short where the release can limit them."""
    options = ["--ssl"]
    props = ["ssl.client.auth=requested", *authorizer(version_tuple(release))]
    if version_tuple(release) >= (0, 10):
        options += ["--sasl", "plain,scram-sha-256,scram-sha-512"]
    if version_tuple(release) >= (2, 2):
        props.append(f"connections.max.reauth.ms={REAUTHENTICATED_MS}")
    return clusters.running(release, props=props, options=options)


def authorizer(release: Version) -> list[str]:
    """Every user may do everything, but for the user admin, who may do nothing."""
    name = "kafka.security.auth.SimpleAclAuthorizer" if release < (2, 4) else "kafka.security.authorizer.AclAuthorizer"
    if release >= (4,):
        name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    users = ";".join(f"User:{each}" for each in ("ANONYMOUS", "alice", "bob", "CN=client"))
    return [f"authorizer.class.name={name}", f"super.users={users}"]


def settings_of(cluster: RealCluster, protocol: str, mechanism: str | None = None, **changed: Any) -> dict[str, Any]:
    """Keyword arguments of a client that logs in as alice."""
    settings: dict[str, Any] = {"bootstrap_servers": cluster.listener(protocol), "security_protocol": protocol}
    if "SSL" in protocol:
        settings["ssl_cafile"] = str(cluster.folder / "ssl" / "ca.pem")
    if mechanism is not None:
        settings.update(sasl_mechanism=mechanism, sasl_plain_username="alice", sasl_plain_password="alice-secret")
    return {**settings, **changed}


def ways(cluster: RealCluster) -> Iterator[tuple[str, str | None]]:
    """Listener and mechanism of every way into the cluster."""
    yield "SSL", None
    for mechanism in cluster.mechanisms:
        yield "SASL_PLAINTEXT", mechanism
        yield "SASL_SSL", mechanism


async def test_every_listener_and_mechanism_carries_records_groups_and_admin(secured: RealCluster) -> None:
    for protocol, mechanism in ways(secured):
        settings = settings_of(secured, protocol, mechanism)
        topic = f"{protocol}-{mechanism}".lower().replace("_", "-")
        secured.new_topic(topic)
        async with Admin(**settings) as admin:
            names = [each for each in await admin.list_topics() if each.startswith(topic)]
        values = [b"%d" % number for number in range(RECORDS)]
        transactional = {"transactional_id": topic} if secured.release >= (0, 11) else {}
        async with Producer(**settings, **transactional) as producer:
            if transactional:
                async with producer.transaction():
                    await producer.send_many(names[0], values)
            else:
                await producer.send_many(names[0], values)
        group: dict[str, Any] = {
            "group_id": topic,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
        }
        async with Consumer(names[0], **settings, **group) as consumer:
            got = await read_records(consumer, RECORDS)
            assert [record.value for record in got] == values
            await consumer.commit()
        async with Consumer(names[0], **settings, **group) as consumer:
            assert await consumer.position(TopicPartition(names[0], 0)) >= RECORDS


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", TOOLED, indirect=True)
async def test_every_client_and_tool_takes_the_file_of_kafkas_tools(secured: RealCluster) -> None:
    """TLS with a client certificate, SASL, and SASL over TLS; with every mechanism in a long run."""
    every = list(ways(secured))
    for protocol, mechanism in every if IS_SOAK else (every[0], every[-1]):
        await check_clients(secured, protocol, mechanism)
    for protocol, mechanism in every if IS_SOAK else every[-2:-1]:
        await check_tools(secured, protocol, mechanism, is_short=not IS_SOAK)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", [each for each in TOOLED if version_tuple(each) >= (0, 11)], indirect=True)
async def test_what_acls_refuse_is_one_error_that_names_it(secured: RealCluster, release: str) -> None:
    settings = settings_of(
        secured, "SASL_SSL", "PLAIN", sasl_plain_username="admin", sasl_plain_password="admin-secret"
    )
    servers, topic = settings.pop("bootstrap_servers"), secured.new_topic("guarded")

    async def produce() -> None:
        async with Producer(servers, **settings) as producer:
            await producer.send(topic, b"refused")

    async def transact() -> None:
        async with (
            Producer(servers, transactional_id="guarded", **settings) as producer,
            producer.transaction(),
        ):
            await producer.send(topic, b"refused")

    async def copy() -> None:
        async with Mirror(
            servers,
            servers,
            topics=[topic],
            rename={topic: "copy"},
            source_settings=settings,
            target_settings=settings,
        ) as mirror:
            await mirror.run()

    async def read_commits() -> None:
        async with Consumer(bootstrap_servers=servers, group_id="guarded", **settings) as consumer:
            await consumer.committed([TopicPartition(topic, 0)])

    async def consume_with_zookeeper() -> None:
        assert secured.zookeeper is not None
        async with LegacyConsumer(topic, zookeeper=secured.zookeeper, group_id="guarded", **settings) as consumer:
            await consumer.getone()

    async def describe_group() -> None:
        async with Admin(servers, **settings) as admin:
            await admin.describe_groups(["guarded"])

    async def create() -> None:
        async with Admin(servers, **settings) as admin:
            for error in (await admin.create_topics([NewTopic("refused", 1, 1)])).values():
                raise error

    refused: list[tuple[Callable[[], Awaitable[None]], str]] = [
        (produce, f"DESCRIBE topic {topic!r}"),
        (transact, "DESCRIBE transactional id 'guarded'"),
        (copy, f"DESCRIBE topic {topic!r}"),
        (read_commits, "DESCRIBE group 'guarded'"),
        (describe_group, "DESCRIBE group 'guarded'"),
        (create, "CREATE topic 'refused'" if version_tuple(release) >= (2,) else "CREATE on the cluster"),
    ]
    if secured.zookeeper is not None:
        refused.append((consume_with_zookeeper, f"DESCRIBE topic {topic!r}"))
    for act, text in refused:
        with anyio.fail_after(10), pytest.raises(AuthorizationError, match=f"the user may not {text}"):
            await act()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", LIMITING, indirect=True)
async def test_a_stream_outlives_renewed_sessions_and_a_changed_password(secured: RealCluster) -> None:
    """Nothing is lost, doubled or out of order while sessions end every two seconds and the password changes."""
    topic = secured.new_topic("streamed")
    passwords = ["bob-secret"]
    settings = settings_of(
        secured, "SASL_SSL", "SCRAM-SHA-256", sasl_plain_username="bob", sasl_plain_password=lambda: passwords[-1]
    )
    count, half = STREAMED, anyio.Event()
    seconds = 3 * REAUTHENTICATED_MS / 1000

    async def write() -> None:
        async with Producer(**settings) as producer:
            for start in range(0, count, count // 100):
                for number in range(start, start + count // 100):
                    producer.enqueue(topic, b"%d" % number)
                if start == count // 2:
                    half.set()
                await anyio.sleep(seconds / 100)

    async def change_password() -> None:
        await half.wait()
        words = ["--alter", "--entity-type", "users", "--entity-name", "bob", "--add-config"]
        where = ["--bootstrap-server", "{bootstrap}", *words, "SCRAM-SHA-256=[password=new-secret]"]
        await anyio.to_thread.run_sync(lambda: secured.tool("configs", *where))
        passwords.append("new-secret")

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        group.start_soon(change_password)
        async with Consumer(topic, group_id=topic, auto_offset_reset="earliest", **settings) as consumer:
            got = await read_records(consumer, count)
    assert [record.value for record in got] == [b"%d" % number for number in range(count)]


STRANGER = {"ssl_certfile": "stranger.pem"}
REFUSED = "the broker does not accept the client's certificate in ssl_certfile"
WRONG: dict[str, tuple[str, str, str | None, dict[str, Any], type[Exception], str]] = {
    # what is wrong: listener connected to, protocol and mechanism of the client, other settings, error, what it says
    "password": (
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        "PLAIN",
        {"sasl_plain_password": "x"},
        AuthenticationError,
        "check",
    ),
    "user": ("SASL_SSL", "SASL_SSL", "SCRAM-SHA-512", {"sasl_plain_username": "x"}, AuthenticationError, "check"),
    "mechanism": ("SASL_SSL", "SASL_SSL", "OAUTHBEARER", {}, AuthenticationError, "it offers PLAIN, SCRAM-SHA-256"),
    "plaintext to TLS": ("SSL", "PLAINTEXT", None, {}, TlsError, "set security_protocol to SSL or SASL_SSL"),
    "TLS to plaintext": ("PLAINTEXT", "SSL", None, {}, TlsError, "security_protocol"),
    "no SASL to SASL": ("SASL_PLAINTEXT", "PLAINTEXT", None, {}, AuthenticationError, "wants SASL"),
    "SASL to no SASL": (
        "PLAINTEXT",
        "SASL_PLAINTEXT",
        "PLAIN",
        {},
        AuthenticationError,
        "security_protocol to PLAINTEXT",
    ),
    "SASL to TLS": ("SASL_SSL", "SASL_PLAINTEXT", "PLAIN", {}, TlsError, "set security_protocol to SASL_SSL"),
    "TLS without SASL to SASL": ("SASL_SSL", "SSL", None, {}, AuthenticationError, "to SASL_SSL, and sasl_mechanism"),
    "unknown CA": ("SSL", "SSL", None, {"ssl_cafile": None}, TlsError, "ssl_cafile"),
    "certificate, TLS 1.2": ("SSL", "SSL", None, {**STRANGER, "ssl_protocol": "TLSv1.2"}, TlsError, REFUSED),
    "certificate": ("SSL", "SSL", None, STRANGER, TlsError, REFUSED),
}


async def test_what_is_wrong_is_said_at_once(secured: RealCluster, tmp_path: Path) -> None:
    stranger = Authority("another CA").issue("a client", is_for_clients=True)
    (tmp_path / "stranger.pem").write_bytes(stranger.key_pem + stranger.pem)
    for what, (listener, protocol, mechanism, changed, kind, text) in WRONG.items():
        if not secured.mechanisms and "SASL" in listener + protocol:
            continue
        settings = settings_of(secured, protocol, mechanism, **changed)
        if "ssl_certfile" in changed:
            settings["ssl_certfile"] = str(tmp_path / changed["ssl_certfile"])
        if mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = lambda: "token"
        settings["bootstrap_servers"] = secured.listener(listener)
        with anyio.fail_after(10), pytest.raises(kind) as caught:
            async with Producer(**settings):
                pass
        assert text in str(caught.value), what
        assert "secret" not in str(caught.value), what


async def test_an_own_context_and_a_client_certificate_are_used(secured: RealCluster) -> None:
    files = secured.folder / "ssl"
    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    context.load_cert_chain(str(files / "client.pem"), str(files / "client.key"))
    own = {"ssl_context": context}
    named = {
        "ssl_cafile": str(files / "ca.pem"),
        "ssl_certfile": str(files / "client.pem"),
        "ssl_keyfile": str(files / "client.key"),
    }
    for settings in (own, named):
        async with Admin(secured.listener("SSL"), security_protocol="SSL", **settings) as admin:
            assert len(await admin.list_brokers()) == 1
