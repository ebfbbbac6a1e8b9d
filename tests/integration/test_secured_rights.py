"""Access control lists on real brokers: users of certificates, errors, restored rights, delegation tokens."""

from __future__ import annotations

import base64
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
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
    TopicPartition,
)
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from pykafka08.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from pykafka08.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from tests.brokers.model import MUTUAL_SSL
from tests.brokers.properties import write_properties
from tests.brokers.releases import version_tuple
from tests.cli.console import console_here
from tests.integration.acls import EVERYTHING_ON_THE_CLUSTER, allow, revoke
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records
from tests.integration.secured_clients import DEADLINE_S, PATIENT, client_file
from tests.integration.secured_cluster import SecuredBrokers, settings_of
from tests.security.authority import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.cluster(kind="secured")]

IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
OLD = ("2.8.2",)
OLD_AND_NEW = ("1.1.1", "2.8.2", "3.9.2", "4.3.1") if IS_SOAK else ("2.8.2", "4.3.1")
CERTIFICATE = "User:CN=client"
TOKENED = ("2.8.2", "4.3.1") if IS_SOAK else ("4.3.1",)
"""Releases of the tests with delegation tokens: with ZooKeeper, and with KRaft."""


@pytest.fixture(scope="module", params=("4.3.1",))
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def secured(release: str, secured_brokers: SecuredBrokers) -> RealCluster:
    return secured_brokers(release)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", OLD_AND_NEW, indirect=True)
async def test_the_user_is_the_subject_of_the_certificate(secured: RealCluster, tmp_path: Path) -> None:
    """Only CN=client may use the topic; other certificates of the CA, other users and anonymous clients are refused."""
    topic = secured.new_topic("certified")
    await allow(secured, CERTIFICATE, f"ALL topic {topic}", "ALL group certified")
    guest = Authority.loaded(secured.folder / "ssl").issue("guest", is_for_clients=True)
    (tmp_path / "guest.pem").write_bytes(guest.key_pem + guest.pem)
    by_certificate = settings_of(secured, MUTUAL_SSL)
    of_guest = {"ssl_certfile": str(tmp_path / "guest.pem"), "ssl_keyfile": None}
    optional = {**by_certificate, "bootstrap_servers": secured.listener("SSL")}
    async with Producer(**by_certificate) as producer:
        await producer.send(topic, b"value")
    for settings in (by_certificate, optional, settings_of(secured, MUTUAL_SSL, ssl_protocol="TLSv1.2")):
        async with Consumer(
            topic, group_id="certified", auto_offset_reset="earliest", enable_auto_commit=False, **settings
        ) as consumer:
            assert [record.value for record in await read_records(consumer, 1)] == [b"value"]
    refused = {
        "guest": {**by_certificate, **of_guest},
        "guest, no certificate demanded": {**optional, **of_guest},
        "anonymous": settings_of(secured, "SSL"),
        "anonymous, plaintext": settings_of(secured, "PLAINTEXT"),
        "alice": settings_of(secured, "SASL_SSL", "SCRAM-SHA-256"),
    }
    for who, settings in refused.items():
        with anyio.fail_after(60), pytest.raises(AuthorizationError, match=f"may not DESCRIBE topic '{topic}'"):
            async with Consumer(topic, auto_offset_reset="earliest", **settings) as consumer:
                assert not await consumer.getone(), who
    await revoke(secured, CERTIFICATE, f"ALL topic {topic}", "ALL group certified")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_without_a_certificate_prints_one_line(secured: RealCluster, tmp_path: Path) -> None:
    lines = client_file(secured, "SSL", None).read_text().splitlines()
    file = tmp_path / "client.properties"
    file.write_text("\n".join(line for line in lines if ".key" not in line))
    servers = secured.listener(MUTUAL_SSL)
    ran = await console_here("consume", "--bootstrap-server", servers, "--topic", "t", "--command-config", str(file))
    assert ran.status == 1
    assert "ssl.keystore.location" in ran.err
    assert len(ran.err.splitlines()) == 1, ran.err


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", OLD_AND_NEW if IS_SOAK else OLD, indirect=True)
async def test_each_refusal_by_an_acl_is_one_error_that_names_the_resource(secured: RealCluster, release: str) -> None:
    settings = settings_of(secured, "SASL_SSL", "PLAIN", "bob")
    servers, topic = settings.pop("bootstrap_servers"), secured.new_topic("guarded")
    topics = (f"ALL topic {topic}", "ALL topic refused")
    others = (*topics, "ALL group guarded", "ALL transactional-id guarded", EVERYTHING_ON_THE_CLUSTER)

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
    await allow(secured, "User:ANONYMOUS", *others)
    try:
        for act, text in refused:
            with anyio.fail_after(60), pytest.raises(AuthorizationError, match=f"the user may not {text}"):
                await act()
    finally:
        await revoke(secured, "User:ANONYMOUS", *others)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
async def test_a_right_is_revoked_and_restored_while_two_topics_are_read(
    secured: RealCluster, group_protocol: str
) -> None:
    """The consumer reads one topic while the other is refused; no record of either is lost or delivered twice."""
    lost, kept = secured.new_topic("lost"), secured.new_topic("kept")
    group = f"{lost}-{group_protocol}"
    rights = (f"READ topic {lost}", f"READ topic {kept}", f"READ group {group}")
    await allow(secured, "User:alice", *rights)
    await allow(secured, CERTIFICATE, f"ALL topic {lost}", f"ALL topic {kept}")
    settings = settings_of(secured, "SASL_SSL", "SCRAM-SHA-512")
    reading: dict[str, Any] = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 200, "fetch_max_wait_ms": 50}
    membership: dict[str, Any] = {"group_id": group, "group_protocol": group_protocol}
    got: dict[str, list[bytes | None]] = {lost: [], kept: []}
    async with (
        Producer(**settings_of(secured, MUTUAL_SSL)) as producer,
        Consumer(lost, kept, **settings, **reading, **membership) as consumer,
    ):
        for turn in (b"1", b"2"):
            await producer.send(lost, turn)
            await producer.send(kept, turn)
            for record in await read_records(consumer, 2):
                got[record.topic].append(record.value)
            assert await consumer.commit() == {}
            await revoke(secured, "User:alice", f"READ topic {lost}")
            with pytest.raises(AuthorizationError, match=f"topic '{lost}'"), anyio.fail_after(60):
                await consumer.getone()
            await producer.send(lost, b"refused " + turn)
            for number in range(3):
                await producer.send(kept, b"alone %d " % number + turn)
                got[kept].append((await consumer.getone(timeout=60)).value)
            await allow(secured, "User:alice", f"READ topic {lost}")
            got[lost].append((await consumer.getone(timeout=30)).value)
    assert got[lost] == [b"1", b"refused 1", b"2", b"refused 2"]
    assert [value for value in got[kept] if value in (b"1", b"2")] == [b"1", b"2"]
    assert len(got[kept]) == 8
    await revoke(secured, "User:alice", *rights)
    await revoke(secured, CERTIFICATE, f"ALL topic {lost}", f"ALL topic {kept}")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", TOKENED, indirect=True)
async def test_a_delegation_token_authenticates_as_its_owner(secured: RealCluster, tmp_path: Path) -> None:
    """A token authenticates as the user who created it until it expires (KIP-48), as settings and in a file."""
    topic = secured.new_topic("delegated")
    await allow(secured, "User:alice", f"ALL topic {topic}")
    token = await create_token(secured)
    secret = base64.b64encode(token.hmac).decode()
    by_token: dict[str, Any] = {
        **settings_of(secured, "SASL_SSL", "SCRAM-SHA-256"),
        "sasl_plain_username": token.token_id,
        "sasl_plain_password": secret,
        "sasl_scram_tokenauth": True,
    }
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    tls = dict(line.split("=", 1) for line in client_file(secured, "SSL", None).read_text().splitlines())
    login = f'{module} required username="{token.token_id}" password="{secret}" tokenauth="true";'
    file = tmp_path / "token.properties"
    named = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": login}
    write_properties(file, {**tls, **named})
    async with Producer(**by_token) as producer:
        await producer.send(topic, b"value")
    servers, reading = secured.listener("SASL_SSL"), {"auto_offset_reset": "earliest"}
    async with Consumer.from_properties(file, topic, bootstrap_servers=servers, **reading) as consumer:
        assert [record.value for record in await read_records(consumer, 1)] == [b"value"]
    if IS_SOAK:
        words = ["--bootstrap-server", servers, "--topic", topic, "--from-beginning", "--max-messages", "1"]
        option = "--command-config" if secured.release >= (4,) else "--consumer.config"
        assert secured.tool("console-consumer", *words, option, str(file)) == "value\n"
    wrong: dict[str, dict[str, Any]] = {
        "unknown id": {"sasl_plain_username": "unknown"},
        "wrong HMAC": {"sasl_plain_password": base64.b64encode(b"wrong").decode()},
        "not as a token": {"sasl_scram_tokenauth": False},
        "expired": {},
    }
    for what, changed in wrong.items():
        if what == "expired":
            await expire_token(secured, token)
        advice = (
            "delegation token that has not expired" if what != "not as a token" else "; check sasl_plain_username and"
        )
        with anyio.fail_after(DEADLINE_S), pytest.raises(AuthenticationError, match=advice) as caught:
            async with Admin(**{**by_token, **PATIENT, **changed}):
                pass
        assert secret not in str(caught.value), what
    await revoke(secured, "User:alice", f"ALL topic {topic}")


async def create_token(cluster: RealCluster) -> CreateDelegationTokenResponse:
    """Create a token of alice; wait until the broker knows it."""
    async with client_of_alice(cluster) as client:
        token = await client.request_any(CreateDelegationTokenRequest(max_lifetime_ms=-1))
        assert token.error_code == 0
        # The broker gets the token from the controller, shortly after the response.
        while token.token_id not in await token_ids(client):  # noqa: ASYNC110 - no event tells when
            await anyio.sleep(0.01)
    return token


async def expire_token(cluster: RealCluster, token: CreateDelegationTokenResponse) -> None:
    async with client_of_alice(cluster) as client:
        answer = await client.request_any(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
        assert answer.error_code == 0
        while token.token_id in await token_ids(client):  # noqa: ASYNC110
            await anyio.sleep(0.01)


def client_of_alice(cluster: RealCluster) -> Client:
    (config,) = build(settings_of(cluster, "SASL_SSL", "SCRAM-SHA-256"), ClientConfig)
    return Client(config)


async def token_ids(client: Client) -> set[str]:
    """Ids of the tokens that the broker knows."""
    answer = await client.request_any(DescribeDelegationTokenRequest(owners=None))
    return {each.token_id for each in answer.tokens}
