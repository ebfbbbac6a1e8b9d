"""Credentials that stop working while a client runs: each client raises the SecurityError within a bounded time.

With certificates that are replaced in time, clients go on.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme

from pykafka08 import (
    Admin,
    AuthenticationError,
    CertificateError,
    Consumer,
    EmbeddedCluster,
    NewTopic,
    Producer,
    SecurityError,
    TlsError,
    TopicPartition,
)
from pykafka08.broker.security.certificates import Certificates
from pykafka08.broker.security.mechanisms import Principal, Refused
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.mirror import Mirror
from pykafka08.security.secret import Secret
from pykafka08.zookeeper.legacy.settings import LegacyConfig
from tests.zookeeper.old_cluster import OldCluster

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

DEADLINE_S = 60
"""For a busy machine; without the SecurityError, clients would retry for longer."""
SOON = {"socket_connection_setup_timeout_ms": 300, "default_api_timeout_ms": 600_000}


def secured(**more: Any) -> EmbeddedCluster:
    return EmbeddedCluster(
        security="SASL_PLAINTEXT", users={"alice": "old"}, mechanisms=["PLAIN"], topics={"t": 1, "u": 1}, **more
    )


def settings_of(cluster: EmbeddedCluster, **more: Any) -> dict[str, Any]:
    return {**cluster.client_settings(), **SOON, **more}


async def change_password(cluster: EmbeddedCluster, password: str = "new") -> None:
    """Give alice another password, and close every connection."""
    cluster._state.protection._passwords["alice"] = Secret(password)
    await cluster.stop_broker(0)
    await cluster.start_broker(0)


async def raises_soon(call: Callable[[], Awaitable[Any]]) -> None:
    with anyio.fail_after(DEADLINE_S), pytest.raises(AuthenticationError, match="credentials") as caught:
        await for_ever(call)
    assert caught.value.mechanism == "PLAIN"


async def for_ever(call: Callable[[], Awaitable[Any]]) -> None:
    while True:
        await call()


async def iterate(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


CONSUMING: dict[str, Callable[[Consumer], Awaitable[Any]]] = {
    "iteration": iterate,
    "getone": lambda consumer: consumer.getone(),
    "getmany": lambda consumer: consumer.getmany(timeout=1),
    "end_offsets": lambda consumer: consumer.end_offsets([TopicPartition("t", 0)]),
}


@pytest.mark.parametrize(
    ("what", "group"), [("iteration", None), ("getone", "classic"), ("getmany", "consumer"), ("end_offsets", None)]
)
async def test_a_consumer_raises(what: str, group: str | None) -> None:
    more = {} if group is None else {"group_id": "g", "group_protocol": group}
    async with (
        secured() as cluster,
        Consumer("t", auto_offset_reset="earliest", **settings_of(cluster, **more)) as consumer,
    ):
        async with Producer(**settings_of(cluster)) as producer:
            await producer.send("t", b"1")
        await consumer.getone(timeout=DEADLINE_S)
        await change_password(cluster)
        await raises_soon(lambda: CONSUMING[what](consumer))


@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
async def test_a_commit_raises(group_protocol: str) -> None:
    async with secured() as cluster:
        settings = settings_of(cluster, group_id="g", group_protocol=group_protocol)
        async with Consumer("t", auto_offset_reset="earliest", **settings) as consumer:
            async with Producer(**settings_of(cluster)) as producer:
                await producer.send("t", b"1")
            await consumer.getone(timeout=DEADLINE_S)
            await change_password(cluster)
            await raises_soon(consumer.commit)


@pytest.mark.parametrize("topic", ["t", "u"])
@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_producer_raises(topic: str, idempotent: bool) -> None:
    """The topic "u" is new to it."""
    async with secured() as cluster:
        async with Producer(**settings_of(cluster, enable_idempotence=idempotent)) as producer:
            await producer.send("t", b"1")
            await change_password(cluster)
            await raises_soon(lambda: producer.send(topic, b"2"))
            await change_password(cluster, "old")
            with anyio.fail_after(DEADLINE_S):
                await until_works(lambda: producer.send(topic, b"3"))
        values = [record.value for record in cluster.records(topic, 0)]
    assert values[-1] == b"3"
    assert b"2" not in values


async def until_works(call: Callable[[], Awaitable[Any]]) -> None:
    while True:
        try:
            await call()
        except AuthenticationError:
            await anyio.sleep(0.05)
        else:
            return


async def test_a_transaction_raises() -> None:
    async with secured() as cluster, Producer(**settings_of(cluster, transactional_id="x")) as producer:
        async with producer.transaction():
            await producer.send("t", b"1")
        await change_password(cluster)

        async def transact() -> None:
            async with producer.transaction():
                await producer.send("t", b"2")

        await raises_soon(transact)


async def test_an_admin_raises() -> None:
    async with secured() as cluster, Admin(**settings_of(cluster)) as admin:
        await admin.list_topics()
        await change_password(cluster)
        await raises_soon(admin.list_topics)
        await raises_soon(lambda: admin.create_topics([NewTopic("new")]))
        await raises_soon(lambda: admin.list_group_offsets("g"))
        await raises_soon(lambda: admin.describe_groups(["g"]))


async def test_a_client_goes_on_if_the_credentials_work_again_in_time() -> None:
    """A password that is changed on the broker first is refused for a moment."""
    passwords = ["old"]
    async with secured() as cluster:
        settings = settings_of(cluster, sasl_plain_password=lambda: passwords[-1])
        settings["socket_connection_setup_timeout_ms"] = 600_000
        async with Producer(**settings) as producer:
            await producer.send("t", b"1")
            await change_password(cluster)
            waiting = producer.enqueue("t", b"2")
            await anyio.sleep(0.5)
            passwords.append("new")
            with anyio.fail_after(DEADLINE_S):
                await waiting
        assert [record.value for record in cluster.records("t", 0)] == [b"1", b"2"]


@pytest.mark.parametrize("side", ["source", "target"])
async def test_a_mirror_raises(side: str) -> None:
    async with secured() as source, secured() as target:
        async with Producer(**settings_of(source)) as producer:
            await producer.send("t", b"1")
        mirror = Mirror(
            source.bootstrap_servers,
            target.bootstrap_servers,
            topics=["t"],
            source_settings=_without_address(source),
            target_settings=_without_address(target),
        )

        async def change_once_copied() -> None:
            while not target.log_end_offset("t", 0):  # noqa: ASYNC110 - the mirror's doing
                await anyio.sleep(0.02)
            await change_password(source if side == "source" else target)

        async with mirror, anyio.create_task_group() as tasks:
            tasks.start_soon(change_once_copied)
            await raises_soon(lambda: mirror.run(follow=True))


def _without_address(cluster: EmbeddedCluster) -> dict[str, Any]:
    return {name: value for name, value in settings_of(cluster).items() if name != "bootstrap_servers"}


def credentials(cluster: EmbeddedCluster) -> dict[str, Any]:
    return {name: value for name, value in _without_address(cluster).items() if name not in SOON}


@asynccontextmanager
async def old_and_secured() -> AsyncIterator[OldCluster]:
    """A cluster with passwords that members of ZooKeeper groups find in ZooKeeper."""
    async with EmbeddedZooKeeper(release="3.4") as zookeeper, secured(version="0.10.2") as cluster:
        old = OldCluster(cluster, zookeeper)
        zookeeper.create("/kafka/consumers")
        document = {"version": 2, "host": None, "port": -1, "jmx_port": -1, "timestamp": "1"}
        document["endpoints"] = [f"SASL_PLAINTEXT://{cluster.bootstrap_servers}"]
        zookeeper.create("/kafka/brokers/ids/0", json.dumps(document).encode(), session_id=old.session)
        zookeeper.create("/kafka/brokers/topics")
        old.register_topic("t", 1)
        yield old


async def test_a_legacy_consumer_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = LegacyConfig.client
    setup_ms = SOON["socket_connection_setup_timeout_ms"]
    monkeypatch.setattr(
        LegacyConfig,
        "client",
        lambda self, addresses: replace(usual(self, addresses), socket_connection_setup_timeout_ms=setup_ms),
    )
    async with old_and_secured() as old:
        async with Producer(**settings_of(old.brokers)) as producer:
            await producer.send("t", b"1")
        async with old.consumer("t", **credentials(old.brokers)) as consumer:
            await consumer.getone(timeout=DEADLINE_S)
            await change_password(old.brokers)
            await raises_soon(consumer.getone)


async def test_a_legacy_consumer_raises_at_its_start() -> None:
    async with old_and_secured() as old:
        given = credentials(old.brokers)
        await change_password(old.brokers)

        async def start() -> None:
            async with old.consumer("t", **given):
                pass

        await raises_soon(start)


async def read_and_write(
    settings: dict[str, Any], spoil: Callable[[], Awaitable[None]], kind: type[SecurityError]
) -> None:
    """Both directions work until ``spoil`` has run, and raise ``kind`` then."""
    async with Producer(**settings) as producer, Consumer("t", auto_offset_reset="earliest", **settings) as consumer:
        await producer.send("t", b"1")
        await consumer.getone(timeout=DEADLINE_S)
        await spoil()
        for call in (lambda: producer.send("t", b"2"), consumer.getone):
            with anyio.fail_after(DEADLINE_S), pytest.raises(kind):
                await for_ever(call)


async def test_a_token_that_is_refused_from_now_on_raises() -> None:
    is_good = True

    def check_token(token: str) -> Principal:
        if not is_good:
            raise Refused("revoked")
        return Principal("alice", time.time() + 3600)

    async with EmbeddedCluster(
        security="SASL_PLAINTEXT", check_token=check_token, mechanisms=["OAUTHBEARER"], topics={"t": 1}
    ) as cluster:

        async def revoke() -> None:
            nonlocal is_good
            is_good = False
            await cluster.stop_broker(0)
            await cluster.start_broker(0)

        settings = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": lambda: "token",
        }
        await read_and_write({**settings, **SOON}, revoke, AuthenticationError)


@pytest.mark.parametrize(
    ("is_clients", "version"),
    [(False, ssl.TLSVersion.TLSv1_3), (True, ssl.TLSVersion.TLSv1_2), (True, ssl.TLSVersion.TLSv1_3)],
)
async def test_a_certificate_that_is_refused_from_now_on_raises(
    is_clients: bool, version: ssl.TLSVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker has one of another CA, or trusts another CA than that of the client's.

    In TLS 1.2 it refuses in the handshake, in TLS 1.3 after the client's part of it.
    """
    client_auth = "required" if is_clients else "none"
    async with EmbeddedCluster(security="SSL", client_auth=client_auth, topics={"t": 1}) as cluster:
        protection = cluster._state.protection
        own, other = protection.certificates, Certificates()
        assert own is not None
        context = other.server_context()
        if is_clients:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(own._server_file)
            context.load_verify_locations(other.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
            context.maximum_version = version

        async def change_ca() -> None:
            monkeypatch.setattr(protection, "server_context", lambda _: context)
            await cluster.stop_broker(0)
            await cluster.start_broker(0)

        await read_and_write(
            {**cluster.client_settings(), **SOON}, change_ca, TlsError if is_clients else CertificateError
        )
        other.close()


async def test_clients_go_on_with_certificates_that_are_replaced(tmp_path: Path) -> None:
    """The files get certificates of a new CA, for the broker and its clients, and the broker restarts."""
    ca, broker, client = (str(tmp_path / f"{name}.pem") for name in ("ca", "broker", "client"))

    def write_files() -> None:
        made = trustme.CA()
        made.cert_pem.write_to_path(ca)
        for file, name in ((broker, "127.0.0.1"), (client, "alice@example.com")):
            made.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(file)

    write_files()
    of_broker = {"ssl_certfile": broker, "ssl_cafile": ca, "client_auth": "required"}
    async with EmbeddedCluster(security="SSL", topics={"t": 1}, **of_broker) as cluster:
        settings: dict[str, Any] = {"security_protocol": "SSL", "ssl_cafile": ca, "ssl_certfile": client}
        settings |= {"bootstrap_servers": cluster.bootstrap_servers, "group_id": "g"}
        async with (
            Consumer("t", auto_offset_reset="earliest", **settings) as consumer,
            Producer(**{name: value for name, value in settings.items() if name != "group_id"}) as producer,
        ):
            for value in (b"1", b"2"):
                write_files()
                await cluster.stop_broker(0)
                await cluster.start_broker(0)
                await producer.send("t", value)
                assert (await consumer.getone(timeout=DEADLINE_S)).value == value
                await consumer.commit()
