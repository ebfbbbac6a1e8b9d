"""TLS and SASL of the embedded broker, with this client and with other people's."""

from __future__ import annotations

import logging
import socket
import ssl
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import Admin, AuthenticationError, AuthorizationError, Consumer, EmbeddedCluster, Producer, TlsError
from pykafka08.broker.personality import Personality
from pykafka08.broker.scram_users import ScramUsers
from pykafka08.broker.security.certificates import Certificates
from pykafka08.broker.security.mechanisms import Principal, Refused
from pykafka08.broker.security.protection import Protection
from pykafka08.broker.security.sasl_session import SaslSession
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError, NoBrokersError
from pykafka08.protocol.headers import encode_request
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.raw import batch, connect, produce
from tests.security.renewed_sessions import LONG_SESSIONS, renewed_sessions

pytestmark = pytest.mark.anyio

USERS = {"alice": "alice's secret", "bob": "b,o=b"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SET_UP_S = 60
SET_UP = {"socket_connection_setup_timeout_ms": 1000 * SET_UP_S}
"""A refusal is an error within this time, which is long so that a busy machine does not need all of it."""
WAYS = [
    ("SSL", None),
    *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
    *(("SASL_SSL", mechanism) for mechanism in MECHANISMS),
]


async def round_trip(settings: dict[str, Any], topic: str = "t") -> None:
    async with Producer(**settings) as producer:
        await producer.send(topic, b"value", partition=0)
    async with Consumer(topic, auto_offset_reset="earliest", group_id=topic, **settings) as consumer:
        assert (await consumer.getone(timeout=10)).value == b"value"


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
async def test_clients_pass_with_every_mechanism(protocol: str, mechanism: str | None) -> None:
    async with EmbeddedCluster(security=protocol, users=USERS, topics={"t": 1}) as cluster:
        for user in USERS if mechanism else (None,):
            settings = cluster.client_settings(user)
            if mechanism:
                settings["sasl_mechanism"] = mechanism
            await round_trip(settings)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
async def test_clients_and_brokers_pass_on_uvloop(protocol: str, mechanism: str | None) -> None:
    async with EmbeddedCluster(security=protocol, users=USERS if mechanism else None, topics={"t": 1}) as cluster:
        await round_trip(cluster.client_settings("alice" if mechanism else None, mechanism))


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
async def test_properties_of_java_clients_pass_too(protocol: str, mechanism: str | None) -> None:
    users = {"alice": 'back\\slash, "quote";\r\n\'ü\U0001f600'}
    async with EmbeddedCluster(security=protocol, users=users, client_auth="requested", topics={"t": 1}) as cluster:
        properties = cluster.client_properties("alice", mechanism)
        assert properties.get("sasl.mechanism") == mechanism
        async with Producer.from_properties(properties) as producer:
            await producer.send("t", b"value", partition=0)
        await round_trip(cluster.client_settings("alice", mechanism))


async def test_a_client_cannot_have_a_mechanism_or_a_user_that_the_cluster_lacks() -> None:
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS, mechanisms=["PLAIN"]) as cluster:
        with pytest.raises(ConfigError, match="mechanism='SCRAM-SHA-256' is not one of"):
            cluster.client_settings(mechanism="SCRAM-SHA-256")
        with pytest.raises(ConfigError, match="there is no user 'carol'"):
            cluster.client_properties("carol")


@pytest.mark.parametrize(
    ("arguments", "warns"),
    [
        ({}, True),
        ({"security": "SSL"}, True),
        ({"security": "SSL", "client_auth": "required"}, False),
        ({"security": "SASL_SSL", "users": USERS}, False),
    ],
)
async def test_only_a_broker_without_authentication_warns_of_other_machines(
    arguments: dict[str, Any], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with EmbeddedCluster(
            host="0.0.0.0", advertised_host="127.0.0.2", topics={"t": 1}, **arguments
        ) as cluster:
            await round_trip(cluster.client_settings())
    assert ("open to other machines" in caplog.text) is warns


@pytest.mark.parametrize("version", ["0.10.2", "0.11", "1.1", "2.1", "2.8", "3.9"])
async def test_each_release_frames_tokens_in_its_way(version: str) -> None:
    async with EmbeddedCluster(version=version, security="SASL_PLAINTEXT", users=USERS, topics={"t": 1}) as cluster:
        for mechanism in MECHANISMS:
            await round_trip({**cluster.client_settings(), "sasl_mechanism": mechanism})
        asked = {(each.api, each.version) for each in cluster.requests if each.api.startswith("Sasl")}
    first = ("SaslHandshake", 0 if version.startswith("0.") else 1)
    assert first in asked
    assert any(name == "SaslAuthenticate" for name, _ in asked) is not version.startswith("0.")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("changed", [{"sasl_plain_password": "wrong"}, {"sasl_plain_username": "carol"}])
@pytest.mark.parametrize("version", ["0.10.2", "4.3"])
async def test_wrong_credentials_are_refused(version: str, changed: dict[str, str], mechanism: str) -> None:
    at_once = {"connection.failed.authentication.delay.ms": "0"} if version == "4.3" else {}
    async with EmbeddedCluster(version=version, security="SASL_PLAINTEXT", users=USERS, properties=at_once) as cluster:
        settings = {**cluster.client_settings(), **SET_UP, "sasl_mechanism": mechanism, **changed}
        with (
            anyio.fail_after(SET_UP_S),
            pytest.raises(AuthenticationError, match="check sasl_plain_username and sasl_plain_password") as caught,
        ):
            async with Admin(**settings):
                pass
        assert caught.value.mechanism == mechanism


async def test_a_mechanism_that_the_cluster_lacks_is_named_with_the_others() -> None:
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS, mechanisms=["SCRAM-SHA-256"]) as cluster:
        settings = {**cluster.client_settings(), **SET_UP, "sasl_mechanism": "PLAIN"}
        with anyio.fail_after(SET_UP_S), pytest.raises(AuthenticationError, match="it offers SCRAM-SHA-256"):
            async with Admin(**settings):
                pass


@pytest.mark.parametrize(
    ("protocol", "changed", "kind"),
    [
        ("SASL_PLAINTEXT", {"security_protocol": "PLAINTEXT"}, AuthenticationError),
        ("PLAINTEXT", {"security_protocol": "SASL_PLAINTEXT"}, AuthenticationError),
        ("PLAINTEXT", {"security_protocol": "SSL"}, TlsError),
        ("SSL", {"security_protocol": "PLAINTEXT"}, NoBrokersError),
        ("SSL", {"ssl_cafile": None}, TlsError),
    ],
)
async def test_a_wrong_protocol_is_an_error_at_once(protocol: str, changed: dict[str, Any], kind: type) -> None:
    sasl = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": "x"}
    async with EmbeddedCluster(security=protocol, users=USERS) as cluster:
        settings = {**sasl, **cluster.client_settings(), **SET_UP, **changed}
        with anyio.fail_after(SET_UP_S), pytest.raises(kind):
            async with Admin(**settings):
                pass


def mode_of(path: str) -> int | None:
    """The permissions of a file; None if there is none."""
    return Path(path).stat().st_mode & 0o777 if Path(path).exists() else None


async def test_a_required_client_certificate_is_demanded_and_taken() -> None:
    async with EmbeddedCluster(security="SSL", client_auth="required", topics={"t": 1}) as cluster:
        settings = cluster.client_settings("alice")
        await round_trip(settings)
        certificate = settings.pop("ssl_certfile")
        assert mode_of(certificate) == 0o600
        for version in ("TLSv1.2", "TLSv1.3"):
            with anyio.fail_after(10), pytest.raises(TlsError, match="demands a client certificate: set ssl_certfile"):
                async with Admin(**settings, ssl_protocol=version):
                    pass
    assert mode_of(certificate) is None


async def test_the_subject_of_a_certificate_is_the_principal() -> None:
    async with EmbeddedCluster(
        security="SSL",
        client_auth="requested",
        topics={"of-alice": 1, "of-nobody": 1},
        acls=["User:CN=alice WRITE topic of-alice", "User:ANONYMOUS WRITE topic of-nobody"],
        properties={"super.users": "User:CN=admin"},
    ) as cluster:
        without = cluster.client_settings()
        del without["ssl_certfile"]
        users = {"admin": cluster.client_settings("admin"), "alice": cluster.client_settings("alice"), "": without}
        passed = set()
        for user, settings in users.items():
            async with Producer(**settings) as producer:
                for topic in cluster.topics:
                    with suppress(AuthorizationError):
                        await producer.send(topic, b"value", partition=0)
                        passed.add((user, topic))
    both = {("admin", "of-alice"), ("admin", "of-nobody")}
    assert passed == {*both, ("alice", "of-alice"), ("", "of-nobody")}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_sessions_are_renewed_while_records_pass(mechanism: str) -> None:
    with renewed_sessions() as sessions:
        async with EmbeddedCluster(
            security="SASL_PLAINTEXT", users=USERS, topics={"t": 1}, properties=LONG_SESSIONS
        ) as cluster:
            settings = {**cluster.client_settings(), "sasl_mechanism": mechanism}
            async with (
                Producer(**settings, linger_ms=0) as producer,
                Consumer("t", auto_offset_reset="earliest", **settings) as consumer,
            ):
                number = 0
                while sessions.total < 10:
                    await producer.send("t", b"%d" % number)
                    assert (await consumer.getone(timeout=60)).value == b"%d" % number
                    number += 1
                await sessions.renewed()


async def test_the_longest_session_that_kafka_takes() -> None:
    async with EmbeddedCluster(
        security="SASL_PLAINTEXT", users=USERS, properties={"connections.max.reauth.ms": str(2**63 - 1)}
    ) as cluster:
        await round_trip(cluster.client_settings())


async def test_a_session_that_is_not_renewed_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [0.0]
    usual = SaslSession.allows
    monkeypatch.setattr(SaslSession, "allows", lambda session, key, now: usual(session, key, now + passed[-1]))

    def talk(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:

            def ask(request: Any, version: int) -> bytes:
                frame = encode_request(request, version, 1, "me")
                raw.sendall(len(frame).to_bytes(4, "big") + frame)
                return raw.recv(65536)

            assert ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice's secret"), 1)
            assert ask(MetadataRequest(topics=[]), 1)
            passed.append(3601.0)
            return ask(MetadataRequest(topics=[]), 1)

    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS, properties=LONG_SESSIONS) as cluster:
        assert await anyio.to_thread.run_sync(talk, cluster.brokers[0].port) == b""


WRONG = SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong")
RIGHT = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice's secret")


@pytest.mark.parametrize("handshake_version", [0, 1])
async def test_a_refusal_comes_late_and_delays_no_other_client(handshake_version: int) -> None:
    delay = {"connection.failed.authentication.delay.ms": "86400000"}
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS, properties=delay, topics={"t": 1}) as cluster:
        async with connect(cluster) as refused, anyio.create_task_group() as tasks:
            await refused.ask(SaslHandshakeRequest(mechanism="PLAIN"), handshake_version)
            if handshake_version == 0:
                await refused.send_frame(WRONG.auth_bytes)
            else:
                await refused.send(WRONG, 2)
            answered = anyio.Event()

            async def wait_for_answer() -> None:
                await refused.is_closed_by_peer()
                answered.set()

            tasks.start_soon(wait_for_answer)
            await round_trip(cluster.client_settings())
            assert not answered.is_set()
            tasks.cancel_scope.cancel()


async def test_a_refusal_names_its_reason_and_ends_the_connection() -> None:
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS) as cluster, connect(cluster) as raw:
        await raw.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = await raw.ask(WRONG, 2)
        text = "Authentication failed: Invalid username or password"
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
        assert await raw.is_closed_by_peer()


@pytest.mark.parametrize(("version", "seconds"), [("2.0", 0), ("2.1", 0.1), ("4.3", 0.1)])
def test_refusals_are_delayed_as_in_the_release(version: str, seconds: float) -> None:
    assert Protection(["SASL_PLAINTEXT"], Personality(version), ScramUsers()).failure_delay_s == seconds


async def test_large_requests_need_authentication() -> None:
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS, topics={"t": 1}) as cluster:
        limit = 524_288
        async with connect(cluster) as raw:
            await raw.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            await raw.stream.send((limit + 1).to_bytes(4, "big"))
            assert await raw.is_closed_by_peer()
        async with connect(cluster) as raw:
            await raw.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert (await raw.ask(RIGHT, 2)).error_code == ErrorCode.NONE
            assert (await produce(raw, batch(b"x" * limit), 9)).error_code == ErrorCode.NONE


async def test_the_listener_is_described_with_its_protocol() -> None:
    async with EmbeddedCluster(security="SASL_PLAINTEXT", users=USERS) as cluster:
        async with Admin(**cluster.client_settings()) as admin:
            entries = await admin.describe_broker_configs(0)
        assert entries["listeners"].value == f"SASL_PLAINTEXT://{cluster.bootstrap_servers}"


async def test_brokers_can_have_certificates_of_the_user(tmp_path: Path) -> None:
    made = Certificates()
    own = {"ssl_certfile": made._server_file, "ssl_cafile": made.ca_file}
    async with EmbeddedCluster(security="SSL", client_auth="required", topics={"t": 1}, **own) as cluster:
        settings, properties = cluster.client_settings("alice"), cluster.client_properties("alice")
        assert cluster.ca_file == settings["ssl_cafile"] == properties["ssl.truststore.location"] == made.ca_file
        assert not any("certfile" in each or "keystore" in each for each in (*settings, *properties))
        await round_trip({**settings, "ssl_certfile": made.client_file("alice")})
    assert mode_of(made.ca_file) is not None
    keyfile = {"ssl_certfile": made.ca_file, "ssl_keyfile": made._server_file}
    for arguments, text in (
        ({**own, "security": "SASL_PLAINTEXT"}, "does not use TLS"),
        ({"ssl_cafile": made.ca_file, "security": "SSL"}, "needs ssl_certfile"),
        ({"ssl_certfile": made.ca_file, "security": "SSL"}, "no certificate with its private key"),
        ({**keyfile, "security": "SSL"}, "no certificate with its private key"),
        ({"ssl_certfile": tmp_path / "none", "security": "SSL"}, "No such file"),
        ({**own, "ssl_cafile": tmp_path / "none", "security": "SSL"}, "ssl_cafile=.*No such file"),
        ({"ssl_certfile": made._server_file, "security": "SSL", "client_auth": "required"}, "needs ssl_cafile"),
    ):
        with pytest.raises(ConfigError, match=text):
            EmbeddedCluster(**arguments)
    made.close()


def check_token(token: str) -> Principal:
    if token != "good":
        raise Refused("the token is not the good one")
    return Principal("oauth", time.time() + 3600)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"security": "TLS"}, "security='TLS' is not one of"),
        ({"security": "SSL", "client_auth": "maybe"}, "client_auth"),
        ({"security": "SASL_SSL", "version": "0.9"}, "needs version 0.10.0"),
        ({"security": "SASL_PLAINTEXT", "mechanisms": ["OAUTHBEARER"], "version": "1.1"}, "OAUTHBEARER"),
        ({"security": "SASL_PLAINTEXT", "users": {"": "x"}}, "'' is not the name of a user"),
        ({"security": "SASL_PLAINTEXT", "users": {"a": ""}}, "'a' is not the name of a user with a password"),
        ({"security": "SASL_PLAINTEXT", "mechanisms": []}, "needs one at least"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        EmbeddedCluster(**arguments)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("protocol", "mechanism"), [("SSL", None), ("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-512")]
)
async def test_other_clients_pass(protocol: str, mechanism: str | None) -> None:
    async with EmbeddedCluster(security=protocol, users=USERS, topics={"t": 1}) as cluster:
        context = ssl.create_default_context(cafile=cluster.ca_file)
        sasl = {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": USERS["alice"]}
        own = sasl if mechanism else {}
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, security_protocol=protocol, ssl_context=context, **own
        ) as producer:
            assert (await producer.send_and_wait("t", b"1")).offset == 0

        def others() -> None:
            from confluent_kafka import Producer as ConfluentProducer

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what kafka-python imports
                from kafka import KafkaProducer

            with KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers,
                security_protocol=protocol,
                ssl_cafile=cluster.ca_file,
                **own,
            ) as theirs:
                assert theirs.send("t", b"2").get(20).offset == 1
            settings = {
                "bootstrap.servers": cluster.bootstrap_servers,
                "security.protocol": protocol.lower(),
                "ssl.ca.location": cluster.ca_file,
            }
            if mechanism:
                settings |= {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": USERS["alice"]}
            sender = ConfluentProducer(settings)
            delivered = []
            sender.produce("t", b"3", callback=lambda error, message: delivered.append((error, message.offset())))
            sender.flush(20)
            assert delivered == [(None, 2)]

        await anyio.to_thread.run_sync(others)
