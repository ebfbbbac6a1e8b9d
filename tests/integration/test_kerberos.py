"""Kerberos on real brokers: the framings that the releases have, over plaintext and TLS, with renewed sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import Admin, AuthenticationError, Consumer, Producer, TopicPartition
from tests.brokers.releases import version_tuple
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import DEADLINE_S, PATIENT, check_clients, check_tools
from tests.integration.streams import check_stream
from tests.security.cloud_page import KERBEROS, PAIRS, replaced, write_kerberos_files
from tests.security.kdc import HOST, REALM, Kdc
from tests.security.kerberos_secrets import TOKEN_START, keys_of_keytab, search_for_tokens, secrets_of_ticket_cache
from tests.security.secrets_found import SecretSearch, everything_is_sent

pytestmark = [pytest.mark.anyio, pytest.mark.kerberos]

EVERY = ("0.9.0.1", "0.10.2.2", "1.1.1", "2.8.2", "3.9.2", "4.3.1")
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
RELEASES = EVERY if IS_SOAK else (EVERY[0], EVERY[-1])
"""Bare tokens without a Kafka request, and SaslAuthenticate; the soak has SaslHandshake with bare tokens as well."""
RECORDS = 500
REAUTHENTICATED_MS = 2000 if IS_SOAK else 1000
TICKET_S = 2
"""Life of the tickets of a stream; the Kerberos library gets a new one after half of it."""
STREAMED = 100_000 if IS_SOAK else 20_000


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def secured(release: str, clusters: Clusters, kdc: Kdc) -> RealCluster:
    """One broker of the release, with GSSAPI over plaintext and TLS."""
    options = ["--ssl", "--certificates", str(kdc.folder / "certificates")]
    options += ["--sasl", "gssapi", "--kerberos", str(kdc.folder)]
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


@pytest.fixture
def search(kerberos: Kdc, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretSearch]:
    """For the password, the keys, the tickets, and every token that is sent, of which there must be some."""
    search = SecretSearch("alice-secret", TOKEN_START, *keys_of_keytab(kerberos.keytab("alice")))
    tokens = search_for_tokens(search, kerberos.tickets, monkeypatch)
    yield search
    assert any(TOKEN_START in token for token in tokens)
    assert search.searched > 10
    assert search.found == []


async def test_records_groups_and_admin_with_keytab_and_with_ticket(
    secured: RealCluster, kerberos: Kdc, search: SecretSearch
) -> None:
    with search.of_logs():
        kerberos.kinit("alice", password="alice-secret")
        assert len(secrets_of_ticket_cache(kerberos.tickets)) == 3  # of the ticket for the KDC
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
                await everything_is_sent()
                search.of_objects("consumer", consumer)
                for task in anyio.get_running_tasks():
                    search.of_text("task", repr(task))
            async with Consumer(topic, **settings, **group) as consumer:
                assert await consumer.position(TopicPartition(topic, 0)) == RECORDS
    assert len(secrets_of_ticket_cache(kerberos.tickets)) == 6


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
async def test_every_client_and_tool_takes_the_file_of_kafkas_tools(secured: RealCluster, search: SecretSearch) -> None:
    for protocol in ("SASL_SSL", "SASL_PLAINTEXT") if IS_SOAK else ("SASL_SSL",):
        await check_clients(secured, protocol, "GSSAPI", search=search)
        if IS_SOAK or secured.version == RELEASES[-1]:
            await check_tools(secured, protocol, "GSSAPI", is_short=not IS_SOAK, is_here=not IS_SOAK, search=search)


async def test_wrong_credentials_are_refused_at_once(secured: RealCluster, kerberos: Kdc, search: SecretSearch) -> None:
    wrong = (
        ({"sasl_kerberos_domain_name": "other"}, "the KDC does not know the service kafka/other"),
        ({"sasl_kerberos_domain_name": HOST}, "refused the credentials|closed the connection after the credentials"),
        ({"sasl_kerberos_keytab": "absent"}, "cannot read sasl_kerberos_keytab='absent'"),
    )
    for changed, text in wrong:
        producer = Producer(**settings_of(secured, kerberos, "SASL_PLAINTEXT", **PATIENT, **changed))
        with anyio.fail_after(DEADLINE_S), pytest.raises(AuthenticationError, match=text) as caught, search.of_logs():
            async with producer:
                pass
        search.of_error(text, caught.value)
        search.of_objects(text, producer)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "release", [release for release in RELEASES if version_tuple(release) >= (2, 2)], indirect=True
)
async def test_a_stream_outlives_renewed_sessions_and_changed_keys(
    secured: RealCluster, kerberos: Kdc, caplog: pytest.LogCaptureFixture
) -> None:
    """No record is lost, duplicated or out of order while sessions and tickets end and both sides' keys change."""
    keytab = kerberos.keytab(f"carol-{secured.version}")
    to_keytab = f"ktadd -k {keytab} carol"
    kerberos.admin("addprinc -randkey carol", must_succeed=False)
    kerberos.admin(f"modprinc -maxlife {TICKET_S}seconds carol", to_keytab)
    settings = settings_of(
        secured, kerberos, "SASL_SSL", sasl_kerberos_principal="carol", sasl_kerberos_keytab=str(keytab)
    )

    async def change() -> None:
        issued_before.append(issued())
        broker = f"ktadd -k {kerberos.keytab('kafka')} kafka/localhost kafka/127.0.0.1"
        await anyio.to_thread.run_sync(kerberos.admin, to_keytab, broker)

    def issued() -> int:
        return len([line for line in kerberos.requests("AS_REQ") if " ISSUE: " in line and " carol@" in line])

    issued_before: list[int] = []
    seconds = 3 * REAUTHENTICATED_MS / 1000
    await check_stream(secured, settings, caplog, count=STREAMED, seconds=seconds, change=change)
    assert issued() > issued_before[0], "no ticket after the change of the keys"
