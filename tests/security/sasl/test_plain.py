"""PLAIN, and the user and password of PLAIN and SCRAM."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.sasl.login import Login, login_of
from pykafka08.security.secret import Secret
from pykafka08.security.settings import SecurityConfig

pytestmark = pytest.mark.anyio

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=100)
UNUSABLE = {
    "": "is empty",
    "pass\0word": "has a NUL character",
    "pass\ud800word": "cannot be written as UTF-8",
}


def login(mechanism: str = "PLAIN", protocol: str = "SASL_SSL", **settings: Any) -> Login:
    given = {"sasl_plain_username": "alice", "sasl_plain_password": "alice-secret", **settings}
    return login_of(SecurityConfig(security_protocol=protocol, sasl_mechanism=mechanism, **given))


async def test_the_token_is_no_authorization_identity_user_and_password() -> None:
    exchange = login().mechanism("h")
    assert (exchange.name, exchange.is_complete, exchange.is_last_token_answered) == ("PLAIN", False, True)
    assert await exchange.respond(None) == b"\0alice\0alice-secret"
    assert (exchange.is_complete, exchange.may_be_followed) == (True, False)
    assert await exchange.respond(b"") is None
    assert exchange.is_complete


@given(user=TEXTS, password=TEXTS)
async def test_any_text_is_sent_as_utf_8(user: str, password: str) -> None:
    exchange = login(sasl_plain_username=user, sasl_plain_password=password).mechanism("h")
    token = await exchange.respond(None)
    assert token is not None
    assert [part.decode() for part in token.split(b"\0")] == ["", user, password]


@pytest.mark.parametrize(
    ("challenges", "says"),
    [
        ([b""], "before the credentials"),
        ([b"hello"], "before the credentials"),
        ([None, b"alice-secret"], "sent a challenge"),
        ([None, None], "is missing"),
        ([None, b"", b""], "after authentication had succeeded"),
        ([None, b"", b"more"], "after authentication had succeeded"),
        ([None, b"", None], "after authentication had succeeded"),
    ],
)
async def test_messages_that_are_not_due_are_refused(challenges: list[bytes | None], says: str) -> None:
    exchange = login().mechanism("h")
    for challenge in challenges[:-1]:
        await exchange.respond(challenge)
    with pytest.raises(AuthenticationError, match=says) as caught:
        await exchange.respond(challenges[-1])
    assert caught.value.mechanism == "PLAIN"
    assert "alice-secret" not in repr(caught.value)


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_a_password_without_tls_is_one_warning_for_each_login(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="pykafka08"):
        one = login(protocol=protocol)
        for _ in range(3):
            await one.mechanism("h").respond(None)
    assert [each.levelno for each in caplog.records] == ([logging.WARNING] if protocol == "SASL_PLAINTEXT" else [])
    assert "alice-secret" not in caplog.text


def test_plain_takes_no_delegation_tokens() -> None:
    with pytest.raises(ConfigError, match="sasl_scram_tokenauth needs SCRAM"):
        login(sasl_scram_tokenauth=True)


# --- user and password ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["sasl_plain_username", "sasl_plain_password"])
class TestCredentials:
    def test_a_missing_one_is_named(self, mechanism: str, name: str) -> None:
        with pytest.raises(ConfigError, match=f"sasl_mechanism='{mechanism}' needs {name}$"):
            login(mechanism, **{name: None})

    @pytest.mark.parametrize(("text", "says"), UNUSABLE.items(), ids=["empty", "NUL", "surrogate"])
    def test_one_that_cannot_be_sent_is_named(self, mechanism: str, name: str, text: str, says: str) -> None:
        with pytest.raises(ConfigError, match=f"^{name} {says}$") as caught:
            login(mechanism, **{name: text})
        assert caught.value.__context__ is None, "an encoder's error holds the text"

    def test_one_of_another_type_is_named(self, mechanism: str, name: str) -> None:
        with pytest.raises(ConfigError, match=f"^{name} is of type int, not a string"):
            login(mechanism, **{name: 12345678})


def ways_to_give(password: object) -> list[Any]:
    """A plain function and an async one."""

    async def later() -> object:
        return password

    return [lambda: password, later]


async def first_use(mechanism: str, function: Any) -> bytes | None:
    """The first token that is made out of the password."""
    exchange = login(mechanism, sasl_plain_password=function).mechanism("h")
    token = await exchange.respond(None)
    if mechanism == "PLAIN":
        return token
    assert token is not None
    return await exchange.respond(b"r=%sx,s=QUJD,i=4096" % token.split(b",r=")[1])


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_function_gives_the_password(mechanism: str) -> None:
    for password in ("changing", Secret("changing")):
        for function in ways_to_give(password):
            assert await first_use(mechanism, function)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_plain_function_runs_beside_the_event_loop(mechanism: str) -> None:
    """It may ask a server."""
    threads = []

    def password() -> str:
        threads.append(threading.get_ident())
        return "slow"

    await first_use(mechanism, password)
    assert threads
    assert threading.get_ident() not in threads


async def test_a_function_is_called_for_each_exchange() -> None:
    passwords = iter(["first", "second"])
    one = login(sasl_plain_password=lambda: next(passwords))
    assert [await one.mechanism("h").respond(None) for _ in range(2)] == [b"\0alice\0first", b"\0alice\0second"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("password", "says"),
    [
        *((text, f"returned a password that {fault}") for text, fault in UNUSABLE.items()),
        (None, "returned NoneType, not a string"),
        (b"alice-secret", "returned bytes, not a string"),
    ],
    ids=["empty", "NUL", "surrogate", "None", "bytes"],
)
async def test_a_function_that_gives_no_usable_password_is_an_error(
    mechanism: str, password: object, says: str
) -> None:
    for function in ways_to_give(password):
        with pytest.raises(AuthenticationError, match=f"the function in sasl_plain_password {says}") as caught:
            await first_use(mechanism, function)
        assert caught.value.mechanism == mechanism
        assert "alice-secret" not in str(caught.value)
        assert caught.value.__context__ is None


async def test_a_function_that_fails_is_an_error_without_its_text() -> None:
    def fails() -> str:
        raise PermissionError("alice-secret")

    with pytest.raises(AuthenticationError, match="in sasl_plain_password raised PermissionError") as caught:
        await first_use("PLAIN", fails)
    assert "alice-secret" not in str(caught.value)
    assert isinstance(caught.value.__cause__, PermissionError)
