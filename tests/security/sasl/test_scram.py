"""SCRAM against the vectors of its RFCs, against scramp as the server, and against hostile servers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import threading
import traceback
import tracemalloc
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramException, ScramMechanism

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.sasl import scram
from pykafka08.security.sasl.login import login_of
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig
from tests.security.scram_faults import FINAL, FIRST, HASHES, ITERATIONS, SALT, Fault, ScramServer, StoredPassword

pytestmark = pytest.mark.anyio

MECHANISMS = sorted(HASHES)
PASSWORD = "correct horse"
PRINTABLE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=80)
PASSWORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200)


def login(
    mechanism: str = "SCRAM-SHA-256", user: str = "alice", password: Any = PASSWORD, **more: Any
) -> scram.ScramLogin:
    config = SecurityConfig(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
        **more,
    )
    made = login_of(config)
    assert isinstance(made, scram.ScramLogin)
    return made


def server(mechanism: str = "SCRAM-SHA-256", password: str = PASSWORD, **stored: Any) -> ScramServer:
    return ScramServer(mechanism, {"alice": StoredPassword.of(mechanism, password, **stored)})


async def token(exchange: Any, challenge: bytes | None = None) -> bytes:
    made = await exchange.respond(challenge)
    assert isinstance(made, bytes)
    return made


async def authenticate(client: scram.ScramLogin, broker: ScramServer) -> None:
    exchange = client.mechanism("h")
    assert not exchange.is_complete
    challenge = broker.first(await token(exchange))
    assert (exchange.is_complete, exchange.may_be_followed) == (False, False)
    proof = broker.final(await token(exchange, challenge))
    assert (exchange.is_complete, exchange.may_be_followed) == (False, True)
    assert await exchange.respond(proof) is None
    assert exchange.is_complete
    assert exchange.is_last_token_answered


@pytest.fixture
def derivations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The iterations of each PBKDF2 from now on."""
    made: list[int] = []
    derive = hashlib.pbkdf2_hmac

    def counted(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        made.append(iterations)
        return derive(name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    return made


# --- what the RFCs and scramp say -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hash_name", "nonce", "challenge", "final", "proof"),
    [
        (  # RFC 5802, section 5; SHA-1 is not offered, but the rules are the same
            "sha1",
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (  # RFC 7677, section 3
            "sha256",
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ],
)
async def test_the_vectors_of_the_rfcs(
    hash_name: str, nonce: str, challenge: str, final: str, proof: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scram.secrets, "token_bytes", lambda size: base64.b64decode(nonce))
    client = login(user="user", password="pencil")
    client.hash_name = hash_name
    exchange = client.mechanism("h")
    assert await token(exchange) == f"n,,n=user,r={nonce}".encode()
    assert await token(exchange, challenge.encode()) == final.encode()
    assert await exchange.respond(proof.encode()) is None
    assert exchange.is_complete


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_scramp_accepts_the_password_and_is_accepted(mechanism: str) -> None:
    stored = StoredPassword(mechanism, *ScramMechanism(mechanism).make_auth_info(PASSWORD, iteration_count=8192))
    await authenticate(login(mechanism), ScramServer(mechanism, {"alice": stored}))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=30)
@given(user=PRINTABLE, password=PASSWORDS)
async def test_any_user_and_password_authenticate(mechanism: str, user: str, password: str) -> None:
    broker = ScramServer(mechanism, {user: StoredPassword.of(mechanism, password)})
    await authenticate(login(mechanism, user, password), broker)
    assert broker.user == user


@given(user=PASSWORDS)
async def test_any_user_name_can_be_read_back(user: str) -> None:
    first = (await token(login(user=user).mechanism("h"))).decode()
    name, _ = first.removeprefix("n,,n=").split(",")
    assert name.replace("=2C", ",").replace("=3D", "=") == user
    assert not name.replace("=2C", "").replace("=3D", "").count("=")


@pytest.mark.parametrize("password", ["pässwörd", "pin\uff11\uff12", "pass\u00adword", "pass\u00a0word", "\ufb01"])
async def test_passwords_are_plain_utf_8_as_in_kafka(password: str) -> None:
    await authenticate(login(password=password), server(password=password))


async def test_another_password_is_refused_by_the_server() -> None:
    broker = server(password="another")
    exchange = login().mechanism("h")
    final = await token(exchange, broker.first(await token(exchange)))
    with pytest.raises(ScramException, match="invalid-proof"):
        broker.final(final)


async def test_the_nonce_is_random_and_has_128_bits() -> None:
    client = login()
    nonces = {(await token(client.mechanism("h"))).split(b",r=")[1] for _ in range(20)}
    assert len(nonces) == 20
    assert all(len(base64.b64decode(nonce)) >= 16 for nonce in nonces)


@pytest.mark.parametrize("iterations", [4096, 16_384, 1_000_000])
async def test_accepted_iterations(iterations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *given: asked.append(given[3]) or bytes(32))
    exchange = login().mechanism("h")
    nonce = (await token(exchange)).split(b",r=")[1]
    await token(exchange, b"r=%sx,s=QUJD,i=%d" % (nonce, iterations))
    assert asked == [iterations]


async def test_optional_extensions_are_ignored() -> None:
    broker = server()
    exchange = login().mechanism("h")
    broker.first(await token(exchange))
    salt = base64.b64encode(SALT).decode()
    await token(exchange, f"r={broker.client_nonce}x,s={salt},i={ITERATIONS},ext=1,t=".encode())


# --- delegation tokens and settings ---------------------------------------------------------------------------------


async def test_a_delegation_token_says_that_it_is_one() -> None:
    exchange = login(user="id", password="hmac", sasl_scram_tokenauth=True).mechanism("h")
    nonce = exchange._nonce
    assert await token(exchange) == f"n,,n=id,r={nonce},tokenauth=true".encode()
    assert b"tokenauth" not in await token(login(user="id", password="hmac").mechanism("h"))


def test_tokenauth_must_be_a_bool() -> None:
    with pytest.raises(ConfigError, match="sasl_scram_tokenauth"):
        login(sasl_scram_tokenauth="true")


@pytest.mark.parametrize("user", ["alice", "jürgen"])
def test_a_user_name_that_kafka_refuses_is_a_warning(user: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="pykafka08"):
        login(user=user)
    assert len(caplog.records) == (0 if user.isascii() else 1)
    assert all(record.levelno == logging.WARNING for record in caplog.records)


# --- the salted password --------------------------------------------------------------------------------------------


async def test_connections_and_renewals_share_one_derivation(derivations: list[int]) -> None:
    brokers = [server() for _ in range(5)]
    derivations.clear()
    client = login()
    async with anyio.create_task_group() as group:
        for broker in brokers[:3]:
            group.start_soon(authenticate, client, broker)
    for broker in brokers[3:]:
        await authenticate(client, broker)
    assert derivations == [ITERATIONS]


@pytest.mark.parametrize("changed", [{"salt": b"another salt"}, {"iterations": 5000}, {"password": "new"}])
async def test_a_change_of_the_password_or_its_salt_is_used_at_once(
    changed: dict[str, Any], derivations: list[int]
) -> None:
    password = PASSWORD
    client = login(password=lambda: password)
    brokers = [server(), server(**changed)]
    derivations.clear()
    await authenticate(client, brokers[0])
    password = changed.get("password", PASSWORD)
    await authenticate(client, brokers[1])
    assert len(derivations) == 2


async def test_the_derivation_runs_in_a_thread_and_can_be_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    started, release = threading.Event(), threading.Event()
    derive = hashlib.pbkdf2_hmac
    finished: list[bool] = []

    def slow(*given: Any) -> bytes:
        started.set()
        finished.append(release.wait(5))
        return derive(*given)

    broker, client = server(), login()
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", slow)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(authenticate, client, server_with_keys(broker))
            await anyio.to_thread.run_sync(started.wait, 20)  # the event loop is free meanwhile
            group.cancel_scope.cancel()
        assert finished == [], "the cancelled exchange waited for its thread"
    finally:
        release.set()
    with anyio.fail_after(20):
        await authenticate(client, broker)


def server_with_keys(broker: ScramServer) -> ScramServer:
    """Another exchange with the same server."""
    return ScramServer("SCRAM-SHA-256", broker._users)


# --- hostile servers ------------------------------------------------------------------------------------------------


def secrets_of(mechanism: str, broker: ScramServer | None) -> list[str]:
    """The password, its keys and the proof, in the forms that they may be printed in."""
    name = HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), SALT, ITERATIONS)
    keys = [salted, *(hmac.digest(salted, label, name) for label in (b"Client Key", b"Server Key"))]
    keys.append(hashlib.new(name, keys[1]).digest())
    if broker is not None:
        keys.append(base64.b64decode(broker.proof))
    forms: list[Callable[[bytes], str]] = [repr, bytes.hex, lambda key: base64.b64encode(key).decode()]
    return [PASSWORD, *(form(key) for key in keys for form in forms)]


def texts_of(error: BaseException) -> tuple[str, str]:
    """What is printed of an error: itself, and its traceback with the package's local variables."""
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    frames = [each for each in report.stack if "pykafka08/" in each.filename]
    assert frames
    return f"{error} {error!r} {vars(error)}", "\n".join(str(each.locals) for each in frames)


async def refused(exchange: Any, challenge: bytes | None, says: str) -> AuthenticationError:
    with pytest.raises(AuthenticationError) as caught:
        await exchange.respond(challenge)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400
    assert caught.value.mechanism == exchange.name
    assert exchange.name in str(caught.value)
    assert not exchange.is_complete
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None, "a decoder's error holds the message"
    return caught.value


@pytest.mark.parametrize("fault", FIRST, ids=lambda fault: fault.name)
async def test_a_wrong_first_message_is_refused_before_any_work(fault: Fault, derivations: list[int]) -> None:
    broker, exchange = server(), login().mechanism("h")
    challenge = fault.tamper(broker.first(await token(exchange)), broker)
    derivations.clear()
    tracemalloc.start()
    try:
        error = await refused(exchange, challenge, fault.says)
        assert tracemalloc.get_traced_memory()[1] < 512 * 1024
    finally:
        tracemalloc.stop()
    assert derivations == []
    shown = "".join(texts_of(error))
    assert not [each for each in secrets_of("SCRAM-SHA-256", None) if each in shown]
    await refused(exchange, challenge, "after the exchange had ended")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("fault", FINAL, ids=lambda fault: fault.name)
async def test_a_wrong_final_message_is_refused(mechanism: str, fault: Fault) -> None:
    broker, exchange = server(mechanism), login(mechanism).mechanism("h")
    honest = broker.final(await token(exchange, broker.first(await token(exchange))))
    error = await refused(exchange, fault.tamper(honest, broker), fault.says)
    shown, local_variables = texts_of(error)
    hidden = secrets_of(mechanism, broker)
    assert not [each for each in hidden if each in shown]
    if "echo" not in fault.name:
        assert not [each for each in hidden if each in local_variables]
    await refused(exchange, honest, "after the exchange had ended")


async def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    broker, impostor = server(), StoredPassword.of("SCRAM-SHA-256", "guess")
    exchange = login().mechanism("h")
    first = broker.first(await token(exchange))
    final = (await token(exchange, first)).decode()
    signed = ",".join((broker.client_first.removeprefix("n,,"), first.decode(), final.split(",p=")[0]))
    signature = hmac.digest(impostor.server_key, signed.encode(), "sha256")
    await refused(exchange, b"v=" + base64.b64encode(signature), "signature is wrong")


@pytest.mark.parametrize("challenge", [None, b"", b"v=QUJD", b"r=x,s=QUJD,i=4096"])
async def test_nothing_is_accepted_after_success(challenge: bytes | None) -> None:
    broker, exchange = server(), login().mechanism("h")
    proof = broker.final(await token(exchange, broker.first(await token(exchange))))
    assert await exchange.respond(proof) is None
    with pytest.raises(AuthenticationError, match="after the exchange had ended"):
        await exchange.respond(challenge)


async def test_messages_must_come_when_they_are_due() -> None:
    await refused(login().mechanism("h"), b"", "before the client's first message")
    exchange = login().mechanism("h")
    await token(exchange)
    await refused(exchange, None, "message is missing")
    broker, exchange = server(), login().mechanism("h")
    await token(exchange, broker.first(await token(exchange)))
    await refused(exchange, None, "message is missing")


async def test_the_salted_password_and_the_login_print_no_secret() -> None:
    client = login()
    await authenticate(client, server())
    salted = await client.salted_password(SALT, ITERATIONS)
    assert repr(salted) == str(salted) == "***"
    shown = f"{vars(client)} {vars(client.credentials)} {vars(client.mechanism('h'))}"
    assert not [each for each in secrets_of("SCRAM-SHA-256", None) if each in shown]


async def test_a_cancelled_exchange_leaves_no_password_in_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, exchange = server(), login(password=Secret(PASSWORD)).mechanism("h")
    first = broker.first(await token(exchange))

    def fails(*given: Any) -> bytes:
        raise MemoryError

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", fails)
    with pytest.raises(MemoryError) as caught:
        await exchange.respond(first)
    monkeypatch.undo()
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True).stack
    shown = "".join(str(each.locals) for each in frames if "test_scram" not in each.filename)
    assert "_SaltedPassword" in shown, "anyio's frames are looked at too"
    assert not [each for each in secrets_of("SCRAM-SHA-256", None) if each in shown]
