"""Kerberos on real brokers: the framings that the releases have, over plaintext and TLS, with renewed sessions."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from pykafka08 import Admin, AuthenticationError, Consumer, Producer, TopicPartition
from pykafka08.security.sasl.kerberos import _Kerberos
from tests.brokers.releases import version_tuple
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import check_clients, check_tools
from tests.security.cloud_page import KERBEROS, PAIRS, replaced, write_kerberos_files
from tests.security.kdc import HOST, REALM, Kdc
from tests.security.kerberos_tokens import TOKEN_START, forms_of_start
from tests.security.secrets_found import SecretSearch, texts_of_logs

pytestmark = [pytest.mark.anyio, pytest.mark.kerberos]

EVERY = ("0.9.0.1", "0.10.2.2", "1.1.1", "2.8.2", "3.9.2", "4.3.1")
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
RELEASES = EVERY if IS_SOAK else (EVERY[0], EVERY[-1])
"""Bare tokens without a Kafka request, and SaslAuthenticate; the soak has SaslHandshake with bare tokens as well."""
RECORDS = 500
REAUTHENTICATED_MS = 2000 if IS_SOAK else 1000
STREAMED = 100_000 if IS_SOAK else 20_000


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def secured(release: str, clusters: Clusters, kdc: Kdc) -> RealCluster:
    """One broker of the release, with GSSAPI over plaintext and TLS."""
    options = ["--ssl", "--sasl", "gssapi", "--kerberos", str(kdc.folder)]
    props = [f"connections.max.reauth.ms={REAUTHENTICATED_MS}"] if version_tuple(release) >= (2, 2) else []
    return clusters.running(release, props=props, options=options)


def settings_of(cluster: RealCluster, kdc: Kdc, protocol: str, **changed: Any) -> dict[str, Any]:
    """Keyword arguments of a client that logs in as alice."""
    settings = {
        "bootstrap_servers": cluster.listener(protocol),
        "security_protocol": protocol,
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_principal": "alice",
        "sasl_kerberos_keytab": str(kdc.keytab("alice")),
    }
    if "SSL" in protocol:
        settings["ssl_cafile"] = str(cluster.folder / "ssl" / "ca.pem")
    return {**settings, **changed}


def noted_tokens(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The tokens that are sent from now on, those without a random part left out."""
    tokens: list[bytes] = []
    respond = _Kerberos.respond

    async def noted(exchange: _Kerberos, challenge: bytes | None) -> bytes | None:
        token = await respond(exchange, challenge)
        if token is not None and len(token) > 64:
            tokens.append(token)
        return token

    monkeypatch.setattr(_Kerberos, "respond", noted)
    return tokens


def forms_of_token(token: bytes) -> tuple[str, str, str]:
    """Parts of its texts: the encrypted end, which no two tokens share."""
    return token[-32:].hex(), repr(token[-32:])[2:-1], base64.b64encode(token)[-40:-4].decode()


async def test_records_groups_and_admin_with_keytab_and_with_ticket(
    secured: RealCluster, kerberos: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, texts = noted_tokens(monkeypatch), SecretSearch("alice-secret")
    shown: list[str] = []
    with texts.of_logs(), texts_of_logs(shown):
        kerberos.kinit("alice", password="alice-secret")
        ticket = {"sasl_kerberos_principal": None, "sasl_kerberos_keytab": None}
        for protocol, changed in (("SASL_PLAINTEXT", {}), ("SASL_SSL", ticket)):
            settings = settings_of(secured, kerberos, protocol, **changed)
            topic = secured.new_topic("kerberos")
            async with Admin(**settings) as admin:
                assert topic in await admin.list_topics()
            values = [b"%d" % number for number in range(RECORDS)]
            async with Producer(**settings) as producer:
                await producer.send_many(topic, values)
            group: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest"}
            async with Consumer(topic, **settings, **group) as consumer:
                got = await read_records(consumer, RECORDS)
                assert [record.value for record in got] == values
                await consumer.commit()
            async with Consumer(topic, **settings, **group) as consumer:
                assert await consumer.position(TopicPartition(topic, 0)) == RECORDS
    assert len(tokens) >= 4
    assert all(TOKEN_START in token for token in tokens)
    search = SecretSearch(*{form for token in tokens for form in forms_of_token(token)}, *forms_of_start())
    for text in shown:
        search.of_text("log", text)
    assert search.searched > 100
    assert search.found == texts.found == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", RELEASES[-1:], indirect=True)
async def test_the_blocks_of_the_documentation_connect(secured: RealCluster, kerberos: Kdc, tmp_path: Path) -> None:
    (pair,) = (pair for pair in PAIRS if pair.heading == KERBEROS)
    write_kerberos_files(tmp_path, str(secured.folder / "ssl" / "ca.pem"), kerberos.keytab("alice"))
    for block in (pair.python, pair.properties):
        topic = secured.new_topic("documented")
        here = replaced(block, secured.listener("SASL_SSL"), tmp_path, {"reader@EXAMPLE.COM": f"alice@{REALM}"})
        async with here.client(Producer, tmp_path) as producer:
            await producer.send(topic, b"value")
        async with here.client(Consumer, tmp_path, topic, auto_offset_reset="earliest") as consumer:
            assert [record.value for record in await read_records(consumer, 1)] == [b"value"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", RELEASES if IS_SOAK else RELEASES[:1], indirect=True)
async def test_every_client_and_tool_takes_the_file_of_kafkas_tools(
    secured: RealCluster, kerberos: Kdc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None shows the end of the keytab or the password; no client logs a token."""
    keys = forms_of_token(kerberos.keytab("alice").read_bytes())
    tokens, shown = noted_tokens(monkeypatch), list[str]()
    for protocol in ("SASL_SSL", "SASL_PLAINTEXT") if IS_SOAK else ("SASL_SSL",):
        with texts_of_logs(shown):
            await check_clients(secured, protocol, "GSSAPI", secrets=keys)
        await check_tools(secured, protocol, "GSSAPI", is_short=not IS_SOAK, secrets=keys)
    search = SecretSearch(*{form for token in tokens for form in forms_of_token(token)})
    for text in shown:
        search.of_text("log", text)
    assert search.searched > 100
    assert search.found == []


async def test_wrong_credentials_are_refused_at_once(secured: RealCluster, kerberos: Kdc) -> None:
    wrong = (
        ({"sasl_kerberos_domain_name": "other"}, "the KDC does not know the service kafka/other"),
        ({"sasl_kerberos_domain_name": HOST}, "refused the credentials|closed the connection after the credentials"),
        ({"sasl_kerberos_keytab": "absent"}, "cannot read sasl_kerberos_keytab='absent'"),
    )
    for changed, text in wrong:
        with anyio.fail_after(10), pytest.raises(AuthenticationError, match=text):
            async with Producer(**settings_of(secured, kerberos, "SASL_PLAINTEXT", **changed)):
                pass


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "release", [release for release in RELEASES if version_tuple(release) >= (2, 2)], indirect=True
)
async def test_a_stream_outlives_renewed_sessions(secured: RealCluster, kerberos: Kdc) -> None:
    """Nothing is lost, doubled or out of order while sessions end again and again (KIP-368)."""
    topic = secured.new_topic("streamed")
    settings = settings_of(secured, kerberos, "SASL_SSL")
    steps = 100

    async def write() -> None:
        async with Producer(**settings) as producer:
            for start in range(0, STREAMED, STREAMED // steps):
                for number in range(start, start + STREAMED // steps):
                    producer.enqueue(topic, b"%d" % number)
                await anyio.sleep(3 * REAUTHENTICATED_MS / 1000 / steps)

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        async with Consumer(topic, group_id=topic, auto_offset_reset="earliest", **settings) as consumer:
            got = await read_records(consumer, STREAMED)
    assert [record.value for record in got] == [b"%d" % number for number in range(STREAMED)]
