"""Tokens of an OAuth token endpoint: grants, assertions, failures, and what of it is shown."""

from __future__ import annotations

import base64
import json
import logging
import ssl
import threading
import time
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from joserfc.jwk import ECKey, RSAKey

from pykafka08.errors import AuthenticationError, ConfigError, KafkaError, TransportError
from pykafka08.security.oauth import token_endpoint
from pykafka08.security.oauth.shared_token import RefreshTimes, SharedToken
from pykafka08.security.oauth.sources import source_of
from pykafka08.security.oauth.token import OAuthToken
from pykafka08.security.oauth.unsecured import Unsecured
from pykafka08.security.sasl.login import login_of
from pykafka08.security.settings import SecurityConfig
from tests.security.oidc_endpoint import Answer, OidcEndpoint

pytestmark = pytest.mark.anyio
SECRET = "Tr0ub4dor&3 +/="
PACKAGE = "org.apache.kafka.common.security.oauthbearer."
PASSPHRASE = "open sesame"


@pytest.fixture
def endpoint() -> Iterator[OidcEndpoint]:
    with OidcEndpoint(clients={"app": SECRET}) as started:
        yield started


def config(endpoint: OidcEndpoint | None = None, **settings: Any) -> SecurityConfig:
    given: dict[str, Any] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": endpoint.token_url if endpoint else None,
        "sasl_oauthbearer_client_credentials_client_id": "app",
        "sasl_oauthbearer_client_credentials_client_secret": SECRET,
        "sasl_login_retry_backoff_ms": 1,
    }
    return SecurityConfig(**{**given, **settings})


async def token_of(endpoint: OidcEndpoint, **settings: Any) -> OAuthToken:
    return await source_of(config(endpoint, **settings))()


async def test_client_credentials(endpoint: OidcEndpoint) -> None:
    exchange = login_of(config(endpoint, sasl_oauthbearer_scope="kafka write")).mechanism("broker")
    assert await exchange.respond(None) == f"n,,\x01auth=Bearer {endpoint.issued[0]}\x01\x01".encode()
    (asked,) = endpoint.asked
    assert asked.form == {"grant_type": "client_credentials", "scope": "kafka write"}
    assert asked.headers["accept"] == "application/json"


@pytest.mark.parametrize(("is_encoded", "pair"), [(False, f"app:{SECRET}"), (True, "app:Tr0ub4dor%263+%2B%2F%3D")])
async def test_the_authorization_header(endpoint: OidcEndpoint, is_encoded: bool, pair: str) -> None:
    endpoint.scripted.append(Answer(200, b'{"access_token": "opaque"}'))
    await token_of(endpoint, sasl_oauthbearer_header_urlencode=is_encoded)
    assert base64.b64decode(endpoint.asked[0].headers["authorization"].removeprefix("Basic ")).decode() == pair


async def test_extensions_of_the_settings(endpoint: OidcEndpoint) -> None:
    token = await token_of(endpoint, sasl_oauthbearer_extensions={"logicalCluster": "lkc-1"})
    assert token.initial_response().endswith(b"\x01logicalCluster=lkc-1\x01\x01")


# --- lifetimes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skew", [-7200, 0, 7200])
@pytest.mark.parametrize("more", [{}, {"expires_in": None}, {"expires_in": "600"}])
async def test_a_clock_that_disagrees_does_not_change_the_lifetime(
    endpoint: OidcEndpoint, skew: float, more: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.skew, endpoint.more, endpoint.lifetime = skew, more, 600
    token = await token_of(endpoint)
    assert token.expiry == pytest.approx(time.time() + 600, abs=30)
    assert ("security.clock_skew" in caplog.text) == bool(skew)


@pytest.mark.parametrize(("text", "seconds"), [("60", 60), ("-1", None), ("٦٠", None), ("9" * 12, None), ("1e3", None)])
async def test_a_lifetime_as_text(endpoint: OidcEndpoint, text: str, seconds: int | None) -> None:
    endpoint.scripted.append(Answer(body=json.dumps({"access_token": "opaque", "expires_in": text}).encode()))
    token = await token_of(endpoint)
    assert token.expiry == (None if seconds is None else pytest.approx(time.time() + seconds, abs=30))


@pytest.mark.parametrize(
    ("lifetime", "chance", "refreshed"),
    [(3600, 0, 2880), (3600, 1, 3060), (3600, 5, 3300), (400, 0, 100), (300, 0, 240), (361, 0, 61), (360, 0, 60)],
)
def test_when_a_token_is_refreshed(lifetime: float, chance: float, refreshed: float) -> None:
    """As Kafka does: part of the lifetime, but some minutes before the end, unless the lifetime is short."""
    assert RefreshTimes().refresh_at(1000, 1000 + lifetime, chance) == pytest.approx(1000 + refreshed)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_one_request_serves_many_connections_and_each_gets_its_error() -> None:
    asked, answers = [], [OAuthToken("first", 4600), TransportError("away"), AuthenticationError("no")]

    async def fetch() -> OAuthToken:
        asked.append(None)
        await anyio.lowlevel.checkpoint()
        answer = answers[len(asked) - 1]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    clock = Clock()
    shared = SharedToken(fetch, RefreshTimes(), now=clock, chance=lambda: 0)
    outcomes: list[Any] = []

    async def connection() -> None:
        try:
            outcomes.append((await shared.get()).token.reveal())
        except KafkaError as error:
            outcomes.append(type(error))

    async def connections() -> list[Any]:
        outcomes.clear()
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(connection)
        return outcomes

    assert await connections() == ["first"] * 5
    clock.now = 1000 + 2879
    assert await connections() == ["first"] * 5
    assert len(asked) == 1
    clock.now = 1000 + 2880  # due, and the endpoint is away: the token is good for 12 minutes more
    assert await connections() == ["first"] * 5
    assert len(asked) == 2
    clock.now = 1000 + 3601
    assert await connections() == [AuthenticationError] * 5
    assert len(asked) == 3


async def test_a_cancelled_request_is_taken_over() -> None:
    started, asked = anyio.Event(), []

    async def fetch() -> OAuthToken:
        asked.append(None)
        if len(asked) == 1:
            started.set()
            await anyio.sleep_forever()
        return OAuthToken("second", time.time() + 60)

    shared = SharedToken(fetch, RefreshTimes())
    async with anyio.create_task_group() as first, anyio.create_task_group() as second:
        first.start_soon(shared.get)
        await started.wait()
        second.start_soon(shared.get)
        first.cancel_scope.cancel()
    assert (await shared.get()).token.reveal() == "second"


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "passing",
    [Answer(status=500), Answer(status=503), Answer(status=429, headers={"Retry-After": "0"}), Answer(closes=True)],
)
async def test_failures_that_pass_are_tried_again(endpoint: OidcEndpoint, passing: Answer) -> None:
    endpoint.scripted.extend([passing] * 3)
    assert (await token_of(endpoint)).token.reveal() == endpoint.issued[0]
    assert len(endpoint.asked) == 4


async def test_an_endpoint_that_stays_away_is_a_transport_error_with_the_cause(endpoint: OidcEndpoint) -> None:
    error = json.dumps({"error": "temporarily_unavailable"}).encode()
    endpoint.scripted.extend([Answer(503), Answer(closes=True), Answer(503, error, {"Retry-After": "3600"})])
    with pytest.raises(TransportError, match=r"3 requests in .*status 503: temporarily_unavailable; see sasl_"):
        await token_of(endpoint)
    with OidcEndpoint() as closed:
        pass
    with pytest.raises(TransportError, match=r"127\.0\.0\.1.* after 1 request in .* ConnectError"):
        await token_of(closed, sasl_login_retry_backoff_ms=600_000)


async def test_an_answer_that_is_not_http_is_not_quoted() -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(f"SMTP {SECRET}\r\n\r\n".encode())

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        url = f"http://127.0.0.1:{port}/token"
        settings = config(sasl_oauthbearer_token_endpoint_url=url, sasl_login_retry_backoff_max_ms=1)
        with pytest.raises(TransportError, match="the answer is not HTTP") as caught:
            await source_of(settings)()
        assert SECRET not in str(caught.value)
        group.cancel_scope.cancel()


async def test_no_retries_are_one_request(endpoint: OidcEndpoint) -> None:
    assert (await token_of(endpoint, sasl_login_retry_backoff_max_ms=0)).token.reveal() == endpoint.issued[0]
    endpoint.scripted.append(Answer(503))
    with pytest.raises(TransportError, match=r"after 1 request .* status 503"):
        await token_of(endpoint, sasl_login_retry_backoff_max_ms=0)


async def test_a_long_retry_after_ends_the_tries(endpoint: OidcEndpoint) -> None:
    endpoint.scripted.extend([Answer(429, b"", {"Retry-After": "3600"})] * 3)
    with pytest.raises(TransportError, match="after 1 request "):
        await token_of(endpoint)


async def test_a_silent_endpoint_ends_before_the_callers_deadline(
    endpoint: OidcEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the error says which server did not answer."""
    monkeypatch.setattr(token_endpoint, "DEADLINE_MARGIN", 20.0)  # a busy machine may take seconds for it
    blocked = threading.Event()
    endpoint.before_answer = lambda: blocked.wait(60)
    try:
        with anyio.fail_after(20.5), pytest.raises(TransportError, match=r"127\.0\.0\.1.* did not answer in time"):
            await token_of(endpoint)
    finally:
        blocked.set()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            Answer(400, b'{"error":"invalid_scope","error_description":"no \\u0007 scope"}'),
            "invalid_scope: no \\? s",
        ),
        (Answer(401, b'{"errorCode":"E1","errorSummary":"Invalid client"}'), "status 401: E1: Invalid client"),
        (Answer(403, b"<html>"), "status 403; check the client's id"),
        (
            Answer(404, b"[" * 100_000),
            "status 404; check sasl_oauthbearer_token_endpoint_url: there is no token endpoint",
        ),
        (Answer(405), "status 405; check sasl_oauthbearer_token_endpoint_url"),
        (Answer(400, json.dumps({"error": "x" * 100_000}).encode()), "status 400: xxx"),
        (Answer(200, b"not json"), "no access_token"),
        (Answer(200, b"[]"), "no access_token"),
        (Answer(200, b'{"access_token": 1}'), "no access_token"),
        (Answer(200, b'{"access_token": "two words"}'), "no access token may have"),
        (Answer(200, b'{"access_token": "' + b"x" * 2_000_000 + b'"}'), "more than 1048576 bytes"),
        (
            Answer(302, b"", {"Location": "https://u:p@evil.example/a?x=1"}),
            r"https://evil\.example/a; redirects",
        ),
    ],
)
async def test_refusals_are_final(endpoint: OidcEndpoint, answer: Answer, text: str) -> None:
    endpoint.scripted.append(answer)
    with pytest.raises(AuthenticationError, match=text) as caught:
        await token_of(endpoint)
    assert len(endpoint.asked) == 1
    assert len(str(caught.value)) < 800


async def test_the_endpoint_stands_in_the_error_and_its_query_does_not(endpoint: OidcEndpoint) -> None:
    url = f"{endpoint.token_url}?tenant=hidden"
    with pytest.raises(AuthenticationError, match=r"127\.0\.0\.1:\d+/token: status 401: invalid_client: unk") as caught:
        await token_of(
            endpoint,
            sasl_oauthbearer_token_endpoint_url=url,
            sasl_oauthbearer_client_credentials_client_secret="wrong",
        )
    assert "hidden" not in str(caught.value)


async def test_certificates_are_checked(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    with OidcEndpoint(clients={"app": SECRET}, tls=context) as endpoint:
        with pytest.raises(AuthenticationError, match=r"certificate is not accepted: .*sasl_oauthbearer_ssl"):
            await token_of(endpoint)
        assert not endpoint.asked
        tls = {"ssl.cafile": str(tmp_path / "ca.pem")}
        assert (await token_of(endpoint, sasl_oauthbearer_ssl=tls)).token.reveal() == endpoint.issued[0]


async def test_no_secret_is_shown(endpoint: OidcEndpoint, caplog: pytest.LogCaptureFixture) -> None:
    """Not even by httpx's and httpcore's own log lines, or by an endpoint that sends the request back."""
    caplog.set_level(logging.DEBUG)
    basic = base64.b64encode(f"app:{SECRET}".encode()).decode()
    echo = json.dumps({"error": "bad", "error_description": f"was {basic} {SECRET}"}).encode()
    given = config(endpoint)
    shown = [repr(given), repr(await source_of(given)())]
    for answer in (Answer(400, echo), Answer(200, echo), Answer(200, b'{"access_token": "to-ken\\n"}')):
        endpoint.scripted.append(answer)
        with pytest.raises(AuthenticationError) as caught:
            await source_of(given)()
        report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        report.stack = traceback.StackSummary.from_list(each for each in report.stack if "/tests/" not in each.filename)
        assert len(report.stack) > 1
        shown += report.format()
    shown.append(caplog.text)
    assert "httpcore" in caplog.text
    everything = "\n".join(shown)
    assert "was *** ***" in everything
    for hidden in (basic, SECRET, endpoint.issued[0], "to-ken"):
        assert hidden not in everything


# --- assertions -----------------------------------------------------------------------------------------------------


@cache
def private_key(algorithm: str) -> Any:
    return (
        rsa.generate_private_key(public_exponent=65537, key_size=2048)
        if algorithm == "RS256"
        else ec.generate_private_key(ec.SECP256R1())
    )


def public_key(algorithm: str) -> RSAKey | ECKey:
    pem = private_key(algorithm).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return (RSAKey if algorithm == "RS256" else ECKey).import_key(pem)


def write_key(path: Path, algorithm: str, passphrase: str | None = None) -> str:
    protection = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path.write_bytes(private_key(algorithm).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection))
    return str(path)


def assertion_settings(endpoint: OidcEndpoint, key: str, algorithm: str = "RS256", **more: Any) -> dict[str, Any]:
    return {
        "sasl_oauthbearer_client_credentials_client_secret": None,
        "sasl_oauthbearer_assertion_private_key_file": key,
        "sasl_oauthbearer_assertion_algorithm": algorithm,
        "sasl_oauthbearer_assertion_claim_aud": endpoint.token_url,
        "sasl_oauthbearer_assertion_claim_iss": "app-issuer",
        "sasl_oauthbearer_assertion_claim_sub": "app-user",
        **more,
    }


def decoded(part: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return content


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
async def test_the_jwt_bearer_grant(
    endpoint: OidcEndpoint, tmp_path: Path, algorithm: str, passphrase: str | None
) -> None:
    endpoint.assertion_keys["app-issuer"] = public_key(algorithm)
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"header": {"kid": "k1"}, "payload": {"tenant": 7, "sub": "overridden"}}))
    await token_of(
        endpoint,
        sasl_oauthbearer_jwt_retriever_class=f"{PACKAGE}JwtBearerJwtRetriever",
        sasl_oauthbearer_scope="kafka",
        **assertion_settings(
            endpoint,
            write_key(tmp_path / "key.pem", algorithm, passphrase),
            algorithm,
            sasl_oauthbearer_assertion_private_key_passphrase=passphrase,
            sasl_oauthbearer_assertion_template_file=str(template),
            sasl_oauthbearer_assertion_claim_jti_include=True,
        ),
    )
    (asked,) = endpoint.asked
    assert asked.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert asked.form["scope"] == "kafka"
    assert "authorization" not in asked.headers
    header, claims = (decoded(part) for part in asked.form["assertion"].split(".")[:2])
    assert header == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
    assert claims["exp"] - claims["iat"] == 300
    assert claims["iat"] - claims["nbf"] == 60
    assert abs(claims["iat"] - time.time()) < 60
    assert claims["tenant"] == 7
    assert claims["sub"] == "app-user"
    assert claims["jti"]


async def test_client_credentials_with_a_signed_assertion(endpoint: OidcEndpoint, tmp_path: Path) -> None:
    endpoint.assertion_keys["app-issuer"] = public_key("ES256")
    await token_of(endpoint, **assertion_settings(endpoint, write_key(tmp_path / "key.pem", "ES256"), "es256"))
    (asked,) = endpoint.asked
    assert asked.form["client_id"] == "app"
    assert asked.form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert "authorization" not in asked.headers


async def test_an_assertion_of_a_file_is_read_for_each_request(endpoint: OidcEndpoint, tmp_path: Path) -> None:
    endpoint.scripted.extend([Answer(200, b'{"access_token": "t"}')] * 2)
    source = source_of(
        config(
            endpoint,
            sasl_oauthbearer_jwt_retriever_class="JwtBearerJwtRetriever",
            sasl_oauthbearer_assertion_file=str(tmp_path / "assertion"),
        )
    )
    for text in ("a.b.c", "d.e.f"):
        (tmp_path / "assertion").write_text(f"{text}\n")
        await source()
    assert [asked.form["assertion"] for asked in endpoint.asked] == ["a.b.c", "d.e.f"]


@pytest.mark.parametrize(
    ("algorithm", "written", "passphrase", "given", "text"),
    [
        ("RS256", "ES256", None, None, "has no RSA private key for RS256"),
        ("ES256", "RS256", None, None, "has no EC private key for ES256"),
        ("RS256", "RS256", PASSPHRASE, "wrong", "passphrase is missing or wrong"),
        ("RS256", "RS256", PASSPHRASE, None, "passphrase is missing or wrong"),
        ("RS256", None, None, None, "No such file"),
    ],
)
async def test_keys_that_cannot_sign(
    endpoint: OidcEndpoint,
    tmp_path: Path,
    algorithm: str,
    written: str | None,
    passphrase: str | None,
    given: str | None,
    text: str,
) -> None:
    key = tmp_path / "key.pem"
    if written is not None:
        write_key(key, written, passphrase)
    settings = assertion_settings(
        endpoint, str(key), algorithm, sasl_oauthbearer_assertion_private_key_passphrase=given
    )
    with pytest.raises(AuthenticationError, match=text) as caught:
        await token_of(endpoint, **settings)
    assert "sasl_oauthbearer_assertion_private_key_file" in str(caught.value)
    assert PASSPHRASE not in str(caught.value)
    assert not endpoint.asked


@pytest.mark.parametrize(("content", "text"), [("[]", "not a JSON object"), ('{"header": 1}', "'header' is not")])
async def test_templates_that_are_none(endpoint: OidcEndpoint, tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "template").write_text(content)
    settings = assertion_settings(
        endpoint,
        write_key(tmp_path / "key.pem", "ES256"),
        "ES256",
        sasl_oauthbearer_assertion_template_file=str(tmp_path / "template"),
    )
    with pytest.raises(AuthenticationError, match=text):
        await token_of(endpoint, **settings)


# --- other sources --------------------------------------------------------------------------------------------------


async def test_a_token_of_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    login = login_of(config(sasl_oauthbearer_token_endpoint_url=path.as_uri()))
    for text in ("a.b.c", "d.e.f"):
        path.write_text(f"{text}\n")
        assert await login.mechanism("h").respond(None) == f"n,,\x01auth=Bearer {text}\x01\x01".encode()
    path.unlink()
    with pytest.raises(AuthenticationError, match="a token: No such file"):
        await login.mechanism("h").respond(None)


async def test_unsigned_tokens(caplog: pytest.LogCaptureFixture) -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "7",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_trace": "x",
    }
    login = login_of(config(sasl_oauthbearer_unsecured_login=options))
    assert "security.unsigned_tokens" in caplog.text
    message = await login.mechanism("h").respond(None)
    assert message is not None
    token, extension = message.decode().removeprefix("n,,\x01auth=Bearer ").removesuffix("\x01\x01").split("\x01")
    header, claims, signature = token.split(".")
    assert (decoded(header), signature, extension) == ({"alg": "none"}, "", "trace=x")
    found = decoded(claims)
    assert found["exp"] - found.pop("iat") == pytest.approx(60)
    assert found == {"sub": "alice", "level": 7, "scope": ["read", "write"], "exp": found["exp"]}


async def test_an_unsigned_token_is_issued_before_the_present_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka compares the time with its clock in whole milliseconds."""
    source = Unsecured({"unsecuredLoginStringClaim_sub": "alice"})
    for now in (1_700_000_000_123_000_000, 1_700_000_000_123_999_999, 1_700_000_000_000_000_001):
        with monkeypatch.context() as clock:
            clock.setattr(time, "time_ns", lambda now=now: now)
            token = await source.token()
        issued = decoded(token.token.reveal().split(".")[1])["iat"] * 1000
        assert now // 1_000_000 - 1.5 < issued < now // 1_000_000


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "needs sasl_oauth_token_provider or sasl_oauthbearer_token_endpoint_url"),
        (
            {"sasl_oauthbearer_token_endpoint_url": "ftp://h/token"},
            "'ftp://h/token' cannot be used: give an https: URL",
        ),
        ({"sasl_oauthbearer_token_endpoint_url": "https://u:hidden@h/t"}, "has a user or password"),
        ({"sasl_oauthbearer_token_endpoint_url": "file://host/token"}, "file:///path"),
        (
            {
                "sasl_oauthbearer_token_endpoint_url": "https://h/t",
                "sasl_oauthbearer_client_credentials_client_secret": None,
            },
            "needs sasl_oauthbearer_client_credentials_client_secret",
        ),
        (
            {
                "sasl_oauthbearer_token_endpoint_url": "https://h/t",
                "sasl_oauthbearer_jwt_retriever_class": "FileJwtRetriever",
            },
            "needs a file: URL",
        ),
        (
            {
                "sasl_oauthbearer_token_endpoint_url": "https://h/t",
                "sasl_oauthbearer_jwt_retriever_class": f"{PACKAGE}JwtBearerJwtRetriever",
            },
            "need sasl_oauthbearer_assertion_private_key_file",
        ),
        ({"sasl_oauthbearer_jwt_retriever_class": "com.example.Mine"}, "sasl_oauthbearer_jwt_retriever_class='com"),
        ({"sasl_login_callback_handler_class": "com.example.Mine"}, "sasl_login_callback_handler_class='com.example.M"),
        ({"sasl_client_callback_handler_class": "com.example.Mine"}, "sasl_client_callback_handler_class='com.exam"),
        ({"sasl_oauthbearer_ssl": {"sasl_mechanism": "PLAIN"}}, "sasl_oauthbearer_ssl: no such setting"),
        ({"sasl_login_refresh_window_factor": 0.4}, "sasl_login_refresh_window_factor=0.4"),
        ({"sasl_login_connect_timeout_ms": 0}, "sasl_login_connect_timeout_ms=0"),
        ({"sasl_oauthbearer_unsecured_login": {}}, "needs unsecuredLoginStringClaim_sub"),
        ({"sasl_oauthbearer_unsecured_login": {"unsecuredLoginX": "1"}}, "no option 'unsecuredLoginX'"),
        ({"sasl_oauthbearer_unsecured_login": {"unsecuredLoginNumberClaim_a": "x"}}, "is not a number"),
        ({"sasl_oauthbearer_unsecured_login": {"unsecuredLoginStringClaim_exp": "1"}}, "no option"),
        (
            {
                "sasl_oauthbearer_unsecured_login": {"unsecuredLoginStringClaim_sub": "a"},
                "sasl_oauthbearer_extensions": {"auth": "x"},
            },
            "'auth' is reserved",
        ),
    ],
)
def test_settings_without_a_meaning(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        login_of(config(**settings))
    assert "hidden" not in str(caught.value)


async def test_javas_classes_are_taken(endpoint: OidcEndpoint) -> None:
    for package in (PACKAGE, f"{PACKAGE}secured."):
        await token_of(
            endpoint,
            sasl_login_callback_handler_class=f"{package}OAuthBearerLoginCallbackHandler",
            sasl_oauthbearer_jwt_retriever_class=f"{PACKAGE}ClientCredentialsJwtRetriever",
        )
    assert len(endpoint.issued) == 2


@pytest.mark.parametrize(
    "host", ["idp.example", "192.0.2.2", "localhost.example", "[2001:db8::1]", "[::ffff:192.0.2.2]"]
)
def test_http_to_another_host_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="without TLS: use https") as caught:
        source_of(config(sasl_oauthbearer_token_endpoint_url=f"http://{host}/token?key=hidden"))
    assert f"sasl_oauthbearer_token_endpoint_url='http://{host}/token'" in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "[::1]"])
def test_http_to_this_machine_is_taken(host: str) -> None:
    assert source_of(config(sasl_oauthbearer_token_endpoint_url=f"http://{host}:8080/token"))


async def test_credentials_without_tls_never_go_through_a_proxy(
    endpoint: OidcEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await token_of(endpoint)
    assert len(endpoint.issued) == 1
