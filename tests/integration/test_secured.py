"""TLS and SASL on real brokers: every release that has them, every listener and mechanism of it, the same calls."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import Admin, AuthenticationError, Consumer, Producer, TlsError, TopicPartition
from tests.brokers.model import MUTUAL_SSL
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import DEADLINE_S, PATIENT, check_clients, check_tools
from tests.integration.secured_cluster import REAUTHENTICATED_MS, SecuredBrokers, mechanisms_of, settings_of
from tests.integration.streams import check_stream, delete_scram_user, set_scram_password, wait_until_accepted
from tests.security.authority import Authority
from tests.security.oauth_broker import SIGNED
from tests.security.oidc_endpoint import OidcEndpoint

pytestmark = [pytest.mark.anyio, pytest.mark.cluster(kind="secured")]

RELEASES = ("0.9.0.1", "0.10.2.2", "1.1.1", "2.8.2", "3.9.2", "4.3.1")
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
LIMITING = RELEASES[-3:] if IS_SOAK else RELEASES[-1:]
"""Releases on which a long stream is tried: their sessions can be limited."""
TOOLED = RELEASES if IS_SOAK else ("2.8.2",)
"""Releases on which every client and tool is run; 2.8.2 has both ZooKeeper and transactions."""
RECORDS = 500
STREAMED = 100_000
STREAM_S = 3 * REAUTHENTICATED_MS / 1000
CHANGED = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER") if IS_SOAK else ("SCRAM-SHA-256", "OAUTHBEARER")
"""Mechanisms whose credentials change during a stream."""


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def secured(release: str, secured_brokers: SecuredBrokers) -> RealCluster:
    return secured_brokers(release)


def ways(cluster: RealCluster) -> Iterator[tuple[str, str | None]]:
    """Listener and mechanism of every way into the cluster."""
    yield "SSL", None
    if cluster.release >= (1, 1):
        yield MUTUAL_SSL, None
    for mechanism in mechanisms_of(cluster):
        yield "SASL_PLAINTEXT", mechanism
        yield "SASL_SSL", mechanism


async def test_every_listener_and_mechanism_carries_records_groups_and_admin(
    secured: RealCluster, anyio_backend_name: str
) -> None:
    for listener, mechanism in ways(secured):
        if listener == "SASL_PLAINTEXT" and anyio_backend_name == "trio" and not IS_SOAK:
            continue  # the mechanisms are the same over TLS
        settings = settings_of(secured, listener, mechanism)
        topic = secured.new_topic(f"{listener}-{mechanism}".lower().replace("_", "-"))
        values = [b"%d" % number for number in range(RECORDS)]
        transactional = {"transactional_id": topic} if secured.release >= (0, 11) else {}
        async with Producer(**settings, **transactional) as producer:
            if transactional:
                async with producer.transaction():
                    await producer.send_many(topic, values)
            else:
                await producer.send_many(topic, values)
        reading: dict[str, Any] = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        async with Consumer(topic, **settings, **reading, group_id=topic) as consumer:
            got = await read_records(consumer, RECORDS)
            assert [record.value for record in got] == values
            await consumer.commit()
        async with Admin(**settings) as admin:
            assert topic in await admin.list_topics()
            tp = TopicPartition(topic, 0)
            assert (await admin.list_group_offsets(topic, [tp]))[tp].offset >= RECORDS


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", TOOLED, indirect=True)
@pytest.mark.timeout(1800 if IS_SOAK else 300)
async def test_every_client_and_tool_takes_the_file_of_kafkas_tools(secured: RealCluster) -> None:
    """TLS with a client certificate, SASL, and SASL over TLS; with every mechanism in a long run."""
    short: tuple[tuple[str, str | None], ...] = ((MUTUAL_SSL, None), ("SASL_SSL", "SCRAM-SHA-512"))
    for listener, mechanism in ways(secured) if IS_SOAK else short:
        await check_clients(secured, listener, mechanism)
    for listener, mechanism in ways(secured) if IS_SOAK else (("SASL_PLAINTEXT", "SCRAM-SHA-512"),):
        await check_tools(secured, listener, mechanism, is_short=not IS_SOAK, is_here=not IS_SOAK)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", LIMITING, indirect=True)
async def test_streams_outlive_renewed_sessions_and_changed_credentials(
    secured: RealCluster, endpoint: OidcEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Sessions end every two seconds and credentials change; no record is lost, duplicated or out of order."""
    async with anyio.create_task_group() as group:
        for mechanism in CHANGED:
            if mechanism.startswith("SCRAM"):
                group.start_soon(_stream_with_scram, secured, mechanism, caplog)
            elif mechanism == "OAUTHBEARER":
                group.start_soon(_stream_with_tokens, secured, endpoint, caplog)
    if "PLAIN" in CHANGED:
        await _stream_with_plain(secured, caplog)


async def _stream_with_scram(cluster: RealCluster, mechanism: str, log: pytest.LogCaptureFixture) -> None:
    user, passwords = f"of-{mechanism}", ["old-secret"]
    await set_scram_password(cluster, user, mechanism, passwords[-1])
    settings = settings_of(cluster, "SASL_SSL", mechanism, user, sasl_plain_password=lambda: passwords[-1])
    await wait_until_accepted(settings)

    async def change() -> None:
        await set_scram_password(cluster, user, mechanism, "new-secret")
        passwords.append("new-secret")

    await check_stream(cluster, settings, log, count=STREAMED, seconds=STREAM_S, change=change)


async def _stream_with_tokens(cluster: RealCluster, endpoint: OidcEndpoint, log: pytest.LogCaptureFixture) -> None:
    """Each session has its own token, and ends when the token expires."""
    settings = settings_of(cluster, "SASL_SSL", "OAUTHBEARER")
    endpoint.issued.clear()
    endpoint.lifetime = REAUTHENTICATED_MS / 1000
    await check_stream(cluster, settings, log, count=STREAMED, seconds=STREAM_S)
    endpoint.lifetime = 3600
    assert cluster.release < SIGNED or len(set(endpoint.issued)) >= STREAM_S * 1000 // REAUTHENTICATED_MS


async def _stream_with_plain(cluster: RealCluster, log: pytest.LogCaptureFixture) -> None:
    """Restart the broker with another password: brokers read the passwords of PLAIN only when they start."""
    jaas, passwords = cluster.folder / "conf" / "jaas.conf", ["bob-secret"]
    before = jaas.read_text()
    settings = settings_of(cluster, "SASL_SSL", "PLAIN", "bob", sasl_plain_password=lambda: passwords[-1])

    def restart(text: str) -> None:
        cluster.stop(1)
        jaas.write_text(text)
        cluster.start(1)

    async def change() -> None:
        passwords.append("new-secret")
        await anyio.to_thread.run_sync(restart, before.replace("bob-secret", "new-secret"))

    try:
        await check_stream(cluster, settings, log, count=STREAMED, seconds=STREAM_S, change=change)
    finally:
        await anyio.to_thread.run_sync(restart, before)


@pytest.mark.soak
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", LIMITING, indirect=True)
async def test_a_deleted_user_is_refused_at_the_end_of_the_session(secured: RealCluster) -> None:
    """Running clients retry for ``socket_connection_setup_timeout_ms``, then raise the error."""
    topic, user = secured.new_topic("deleted"), "to-be-deleted"
    await set_scram_password(secured, user, "SCRAM-SHA-512", f"{user}-secret")
    settings = settings_of(
        secured, "SASL_SSL", "SCRAM-SHA-512", user, socket_connection_setup_timeout_ms=1000, retry_backoff_max_ms=200
    )
    await wait_until_accepted(settings)

    async def write() -> None:
        async with Producer(**settings) as producer:
            while True:
                await producer.send(topic, b"value")
                written.set()

    async def read() -> None:
        async with Consumer(topic, group_id=topic, auto_offset_reset="earliest", **settings) as consumer:
            async for _ in consumer:
                got.set()

    async def administer() -> None:
        async with Admin(**settings) as admin:
            while True:
                await admin.list_topics()
                asked.set()
                await anyio.sleep(0.1)

    async def refused(client: Callable[[], Awaitable[None]]) -> None:
        with pytest.raises(AuthenticationError, match=r"refused the credentials.*check"):
            await client()

    written, got, asked = anyio.Event(), anyio.Event(), anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for client in (write, read, administer):
                group.start_soon(refused, client)
            for event in (written, got, asked):
                await event.wait()
            await delete_scram_user(secured, user, "SCRAM-SHA-512")


STRANGER = {"ssl_certfile": "stranger.pem"}
REFUSED = "the broker does not accept the client's certificate in ssl_certfile"
DEMANDED = "the broker demands a client certificate: set ssl_certfile or ssl_keystore_location"
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
    "password of SCRAM": (
        "SASL_SSL",
        "SASL_SSL",
        "SCRAM-SHA-256",
        {"sasl_plain_password": "x"},
        AuthenticationError,
        "check",
    ),
    "user of PLAIN": (
        "SASL_PLAINTEXT",
        "SASL_PLAINTEXT",
        "PLAIN",
        {"sasl_plain_username": "x"},
        AuthenticationError,
        "check",
    ),
    "user": ("SASL_SSL", "SASL_SSL", "SCRAM-SHA-512", {"sasl_plain_username": "x"}, AuthenticationError, "check"),
    "mechanism": ("SASL_SSL", "SASL_SSL", "GSSAPI", {}, AuthenticationError, "it offers "),
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
    "no certificate": (MUTUAL_SSL, "SSL", None, {}, TlsError, DEMANDED),
    "no certificate, TLS 1.2": (MUTUAL_SSL, "SSL", None, {"ssl_protocol": "TLSv1.2"}, TlsError, DEMANDED),
    "certificate where one is demanded": (MUTUAL_SSL, "SSL", None, STRANGER, TlsError, REFUSED),
}


async def test_what_is_wrong_is_said_at_once(secured: RealCluster, tmp_path: Path) -> None:
    stranger = Authority("another CA").issue("a client", is_for_clients=True)
    (tmp_path / "stranger.pem").write_bytes(stranger.key_pem + stranger.pem)
    for what, (listener, protocol, mechanism, changed, kind, text) in WRONG.items():
        if not secured.mechanisms and "SASL" in listener + protocol:
            continue
        if listener == MUTUAL_SSL and secured.release < (1, 1):
            continue
        settings = settings_of(secured, protocol, mechanism, **PATIENT, **changed)
        if "ssl_certfile" in changed:
            settings["ssl_certfile"] = str(tmp_path / changed["ssl_certfile"])
        if mechanism == "GSSAPI":
            if find_spec("gssapi") is None:
                continue
            del settings["sasl_plain_username"], settings["sasl_plain_password"]
        settings["bootstrap_servers"] = secured.listener(listener)
        for client in (Producer, Consumer, Admin) if IS_SOAK else (Producer,):
            with anyio.fail_after(DEADLINE_S), pytest.raises(kind) as caught:
                async with client(**settings):
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
