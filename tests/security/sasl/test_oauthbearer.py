"""OAUTHBEARER: the application's token provider, the client's messages, and what a refusing broker says."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka08.errors import AuthenticationError, ConfigError
from pykafka08.security.oauth.token import OAuthToken
from pykafka08.security.sasl.login import login_of
from pykafka08.security.settings import SecurityConfig

pytestmark = pytest.mark.anyio
TOKEN = "header.payload.signature-_~+/=="
MESSAGE = f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode()


def jwt(**claims: Any) -> str:
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    return f"{part({'alg': 'RS256'})}.{part(claims)}.c2lnbmF0dXJl"


def login(provider: Any, **settings: Any) -> Any:
    return login_of(
        SecurityConfig(
            security_protocol="SASL_SSL",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=provider,
            **settings,
        )
    )


async def first_message(provider: Any) -> bytes:
    message: bytes = await login(provider).mechanism("broker").respond(None)
    return message


class AsyncProvider:
    """As aiokafka has it."""

    async def token(self) -> str:
        return TOKEN


class PlainProvider:
    """As kafka-python has it; may ask a server, so that it belongs in a thread."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def token(self) -> str:
        self.threads.append(threading.get_ident())
        return TOKEN

    def extensions(self) -> dict[str, str]:
        return {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}


async def plain_token() -> str:
    return TOKEN


class AsyncCall:
    async def __call__(self) -> str:
        return TOKEN


@pytest.mark.parametrize(
    "provider",
    [
        AsyncProvider(),
        lambda: TOKEN,
        lambda: plain_token(),
        plain_token,
        partial(plain_token),
        AsyncCall(),
        lambda: OAuthToken(TOKEN),
        lambda: OAuthToken(TOKEN, time.time() + 60),
        lambda: (TOKEN, time.time() + 60),
        lambda: SimpleNamespace(token=TOKEN, expires_on=int(time.time()) + 60),
        lambda: SimpleNamespace(token=TOKEN, expiry=datetime.now(timezone.utc) + timedelta(minutes=1)),
    ],
)
async def test_a_provider_of_any_form(provider: Callable[[], Awaitable[str]]) -> None:
    exchange = login(provider).mechanism("broker")
    assert await exchange.respond(None) == MESSAGE
    assert (exchange.is_complete, exchange.may_be_followed) == (True, False)
    assert await exchange.respond(b"") is None
    assert exchange.refusal is None


async def test_a_plain_provider_runs_in_a_thread_and_may_have_extensions() -> None:
    provider = PlainProvider()
    message = await first_message(provider)
    assert message == f"n,,\x01auth=Bearer {TOKEN}\x01logicalCluster=lkc-1\x01identityPoolId=pool-2\x01\x01".encode()
    assert provider.threads != [threading.get_ident()]


async def test_a_time_without_a_zone_is_utc() -> None:
    expiry = datetime(2030, 1, 1)
    assert OAuthToken(TOKEN, expiry).expiry == datetime(2030, 1, 1, tzinfo=timezone.utc).timestamp()


async def test_text_is_asked_for_each_time_and_a_token_with_an_expiry_is_kept() -> None:
    calls = []

    def text() -> str:
        calls.append("text")
        return TOKEN

    def timed() -> tuple[str, float]:
        calls.append("timed")
        return TOKEN, time.time() + 3600

    for provider in (text, timed):
        own = login(provider)
        for _ in range(3):
            await own.mechanism("broker").respond(None)
    assert calls == ["text", "text", "text", "timed"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("", "is empty, or has a space"),
        ("two words", "is empty, or has a space"),
        ("line\n", "is empty, or has a space"),
        ("with\x01control", "is empty, or has a space"),
        ("ümlaut", "is empty, or has a space"),
        ("a=b", "is empty, or has a space"),
        ("a" * 500_001, "500001 characters"),
        (None, "returned NoneType"),
        (b"bytes", "returned bytes"),
        ((TOKEN, "soon"), "expiry is str"),
        ((TOKEN, float("nan")), "expiry is float"),
        ((TOKEN, True), "expiry is bool"),
        ((None, 1.0), "token is NoneType"),
        ((TOKEN, 1.0), "expired at 1970-01-01T00:00:01Z"),
        (jwt(exp=1), "expired at 1970-01-01T00:00:01Z, and this host's clock says"),
    ],
)
async def test_answers_that_are_no_token(answer: Any, text: str) -> None:
    with pytest.raises(AuthenticationError, match=text) as caught:
        await first_message(lambda: answer)
    if isinstance(answer, str) and answer:
        assert answer not in str(caught.value)


@pytest.mark.parametrize(
    "extensions",
    [{"auth": "x"}, {"AUTH": "x"}, {"a-b": "x"}, {"": "x"}, {"a": ""}, {"a": "x\x01y"}, {"a": "ü"}, {"a": 1}, ["a"]],
)
async def test_extensions_that_a_broker_would_refuse(extensions: Any) -> None:
    class Provider(AsyncProvider):
        def extensions(self) -> Any:
            return extensions

    with pytest.raises(AuthenticationError, match="SASL extension"):
        await first_message(Provider())


def test_a_provider_that_is_none() -> None:
    with pytest.raises(ConfigError, match="sasl_oauth_token_provider is str"):
        login("a token")
    with pytest.raises(ConfigError, match="needs sasl_oauth_token_provider"):
        login(None)


async def test_the_text_of_a_refusal() -> None:
    exchange = login(plain_token).mechanism("broker")
    await exchange.respond(None)
    answer = {"status": "invalid_token", "scope": "kafka", "openid-configuration": "https://issuer/.well-known"}
    assert await exchange.respond(json.dumps(answer).encode()) == b"\x01"
    assert exchange.refusal == "status=invalid_token, scope=kafka, openid-configuration=https://issuer/.well-known"
    with pytest.raises(AuthenticationError, match="status=invalid_token"):
        await exchange.respond(b"")


@pytest.mark.parametrize(
    "challenge", [b"\xff\x00 nonsense", b"[" * 100_000, b"{}", b'{"status": "' + b"x" * 100_000 + b'"}', b"1" * 10_000]
)
async def test_a_refusal_that_is_not_json_is_bounded_and_printable(challenge: bytes) -> None:
    exchange = login(plain_token).mechanism("broker")
    await exchange.respond(None)
    assert await exchange.respond(challenge) == b"\x01"
    assert len(exchange.refusal) <= 400
    assert exchange.refusal.isprintable()


async def test_a_token_that_the_broker_sends_back_is_not_shown() -> None:
    exchange = login(plain_token).mechanism("broker")
    await exchange.respond(None)
    await exchange.respond(json.dumps({"status": f"bad token {TOKEN}"}).encode())
    assert TOKEN not in exchange.refusal


async def test_a_token_that_is_cut_is_not_shown() -> None:
    async def long_token() -> str:
        return "secret" * 100

    exchange = login(long_token).mechanism("broker")
    await exchange.respond(None)
    await exchange.respond(json.dumps({"status": f"bad token {await long_token()}"}).encode())
    assert "secret" not in exchange.refusal


async def test_a_refusal_compares_the_clocks() -> None:
    soon = time.time() + 600
    exchange = login(lambda: jwt(iat=soon, exp=soon + 300)).mechanism("broker")
    await exchange.respond(None)
    await exchange.respond(b'{"status":"invalid_token"}')
    assert "the token is valid from 2" in exchange.refusal
    assert "compare the clocks" in exchange.refusal


async def test_a_token_prints_as_stars() -> None:
    assert TOKEN not in repr(OAuthToken(TOKEN, 1.0))
    assert TOKEN not in repr(login(plain_token).__dict__)
