"""OAUTHBEARER of the embedded broker: signed and unsecured tokens, and the sessions that end with them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, Key, RSAKey

from pykafka08 import Admin, AuthenticationError, EmbeddedCluster, Producer
from pykafka08.broker.personality import Personality
from pykafka08.broker.scram_users import ScramUsers
from pykafka08.broker.security.mechanisms import Principal, Refused, TokenCheck
from pykafka08.broker.security.protection import Protection
from pykafka08.broker.security.sasl_session import SaslSession
from pykafka08.broker.security.tokens import signed_tokens, unsecured_tokens
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import ApiKey

NOW = 1_800_000_000
RSA, EC, OTHER = (
    RSAKey.generate_key(2048, {"kid": "rsa"}),
    ECKey.generate_key("P-256", {"kid": "ec"}),
    ECKey.generate_key("P-256", {"kid": "ec"}),
)
JWKS: dict[str, Any] = {"keys": [RSA.as_dict(private=False), EC.as_dict(private=False)]}
CLAIMS: dict[str, Any] = {"sub": "alice", "iat": NOW - 60, "exp": NOW + 60, "iss": "https://issuer", "aud": "kafka"}
EXPECTED = {
    "sasl.oauthbearer.expected.audience": "other, kafka",
    "sasl.oauthbearer.expected.issuer": "https://issuer",
}


def signed(key: Key, algorithm: str, header: dict[str, Any] | None = None, **changes: Any) -> str:
    """``None`` removes a claim or a field of the header."""
    claims, fields = ({**CLAIMS, **changes}, {"alg": algorithm, "kid": key.kid, **(header or {})})
    return jwt.encode(given(fields), given(claims), key, algorithms=[algorithm])


def given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def unsecured(header: dict[str, Any] | None = None, signature: str = "", **changes: Any) -> str:
    parts = (json.dumps(each).encode() for each in (header or {"alg": "none"}, given({**CLAIMS, **changes})))
    return ".".join((*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), signature))


def a_check(**properties: str) -> TokenCheck:
    made = signed_tokens(JWKS, {**EXPECTED, **properties}, lambda: NOW)
    assert made is not None
    return made


@pytest.mark.parametrize(
    "token",
    [
        signed(RSA, "RS256"),
        signed(RSA, "PS512"),
        signed(EC, "ES256"),
        signed(EC, "ES256", {"kid": None}),
        signed(EC, "ES256", aud=["other"], scope="a b", nbf=NOW),
        signed(EC, "ES256", scope=["a", "b"]),
        signed(EC, "ES256", scope=[]),
        signed(EC, "ES256", scope=7),
        signed(EC, "ES256", iat=NOW + 59),
    ],
)
def test_a_signed_token_names_its_user(token: str) -> None:
    """These and the refused ones were held against a broker of 4.3.1."""
    assert a_check()(token) == Principal("alice", NOW + 60)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (signed(OTHER, "ES256"), "no key of the JWKS has signed the token"),
        (signed(EC, "ES256", {"kid": "rsa"}), "no key of the JWKS has signed the token"),
        (signed(EC, "ES256")[:-4] + "AAAA", "no key of the JWKS has signed the token"),
        (unsecured(), "algorithm 'none' is not one of"),
        (unsecured({"alg": "HS256"}, "x"), "algorithm 'HS256' is not one of"),
        (unsecured({"alg": ["ES256"]}), "algorithm"),
        ("token", "not a JSON Web Token"),
        ("", "not a JSON Web Token"),
        ("[" * 100_000, "not a JSON Web Token"),
        (signed(EC, "ES256", exp=None), "'exp' is missing"),
        (signed(EC, "ES256", exp="soon"), "'exp' is missing, or is not a number"),
        (signed(EC, "ES256", exp=10**15), "'exp' is missing, or is not a number"),
        (signed(EC, "ES256", exp=NOW - 30), "has expired"),
        (signed(EC, "ES256", iat=None), "'iat' is missing"),
        (signed(EC, "ES256", iat=NOW + 61), "expired before it was issued"),
        (signed(EC, "ES256", nbf=NOW + 31), "not valid yet"),
        (signed(EC, "ES256", iss="https://other"), "issuer is not https://issuer"),
        (signed(EC, "ES256", iss=None), "issuer is not https://issuer"),
        (signed(EC, "ES256", aud="else"), "audience is not one of kafka, other"),
        (signed(EC, "ES256", aud=None), "audience is not one of kafka, other"),
        (signed(EC, "ES256", aud=[1]), "'aud' is not a text"),
        (signed(EC, "ES256", sub=None), "'sub' is not the name of a user"),
        (signed(EC, "ES256", sub=" "), "'sub' is not the name of a user"),
        (signed(EC, "ES256", scope=" "), "'scope' has an empty scope"),
        (signed(EC, "ES256", scope=["a", ""]), "'scope' has an empty scope"),
        (signed(EC, "ES256", scope=["a", 1]), "'scope' has an empty scope"),
        (signed(EC, "ES256", scope=["a", "b", "a "]), "'scope' has an empty scope, or one twice"),
    ],
)
def test_a_wrong_token_is_refused(token: str, text: str) -> None:
    with pytest.raises(Refused, match=text):
        a_check()(token)


def test_a_token_may_be_off_by_the_clock_skew() -> None:
    assert a_check()(signed(EC, "ES256", exp=NOW - 29, nbf=NOW + 30)) == Principal("alice", NOW - 29)
    with pytest.raises(Refused, match="expired"):
        a_check(**{"sasl.oauthbearer.clock.skew.seconds": "0"})(signed(EC, "ES256", exp=NOW))


def test_claims_can_have_other_names() -> None:
    check = a_check(**{"sasl.oauthbearer.sub.claim.name": "azp", "sasl.oauthbearer.scope.claim.name": "scp"})
    assert check(signed(EC, "ES256", azp="bob", scope="")).name == "bob"
    with pytest.raises(Refused, match="'scp'"):
        check(signed(EC, "ES256", azp="bob", scp=""))


def test_a_token_for_an_audience_is_refused_where_none_is_expected() -> None:
    check = a_check(**{"sasl.oauthbearer.expected.audience": ""})
    assert check(signed(EC, "ES256", aud=None)).name == "alice"
    with pytest.raises(Refused, match=r"sasl\.oauthbearer\.expected\.audience"):
        check(signed(EC, "ES256"))


def test_an_unsecured_token_names_its_user() -> None:
    assert unsecured_tokens(lambda: NOW)(unsecured()) == Principal("alice", NOW + 60)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (signed(EC, "ES256"), "not an unsecured"),
        (unsecured({"alg": "ES256"}), "algorithm is not none"),
        (unsecured(exp=NOW), "expired"),
        (unsecured(sub=None), "'sub'"),
        ("a.b", "not an unsecured"),
    ],
)
def test_a_wrong_unsecured_token_is_refused(token: str, text: str) -> None:
    with pytest.raises(Refused, match=text):
        unsecured_tokens(lambda: NOW)(token)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file"),
        (b"{", "is not a JSON Web Key Set"),
        (b"[]", "is not a JSON Web Key Set"),
        (b"{}", "is not a JSON Web Key Set"),
        (b'{"keys": [{"kty": "EC"}]}', "is not a JSON Web Key Set"),
        (b'{"keys": []}', "is not a JSON Web Key Set"),
    ],
)
def test_a_wrong_key_set_is_an_error_at_once(content: bytes | None, text: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=text):
        EmbeddedCluster(security="SASL_PLAINTEXT", jwks=path)


def test_a_key_set_is_read_from_a_file_only() -> None:
    url = {"sasl.oauthbearer.jwks.endpoint.url": "https://login.example.com/keys"}
    with pytest.raises(ConfigError, match="is not a file: URL"):
        EmbeddedCluster(security="SASL_PLAINTEXT", properties=url)


async def round_trip(settings: dict[str, Any]) -> None:
    async with Producer(**settings) as producer:
        await producer.send("t", b"value", partition=0)


@pytest.mark.anyio
@pytest.mark.parametrize("user", [None, "bob"])
async def test_clients_pass_with_unsecured_tokens(user: str | None) -> None:
    async with EmbeddedCluster(security="SASL_SSL", mechanisms=["OAUTHBEARER"], topics={"t": 1}) as cluster:
        await round_trip(cluster.client_settings(user))
        async with Producer.from_properties(cluster.client_properties(user, "OAUTHBEARER")) as producer:
            await producer.send("t", b"value", partition=0)


def provider(*, lifetime: float, issued: list[str], key: ECKey = EC) -> Callable[[], str]:
    def token() -> str:
        now = time.time()
        issued.append(signed(key, "ES256", iat=int(now), exp=now + lifetime))
        return issued[-1]

    return token


@pytest.mark.anyio
@pytest.mark.parametrize("is_file", [False, True])
async def test_clients_pass_with_signed_tokens_only(is_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "the keys.json"
    path.write_text(json.dumps(JWKS))
    source: dict[str, Any] = {"jwks": JWKS, "properties": EXPECTED}
    if is_file:
        source = {"properties": {**EXPECTED, "sasl.oauthbearer.jwks.endpoint.url": path.as_uri()}}
    async with EmbeddedCluster(security="SASL_PLAINTEXT", topics={"t": 1}, **source) as cluster:
        settings = cluster.client_settings()
        assert settings["sasl_mechanism"] == "OAUTHBEARER"
        await round_trip({**settings, "sasl_oauth_token_provider": provider(lifetime=60, issued=[])})
        wrong = provider(lifetime=60, issued=[], key=OTHER)
        with pytest.raises(AuthenticationError):
            async with Admin(**settings, sasl_oauth_token_provider=wrong):
                pass


@pytest.mark.anyio
async def test_sessions_end_with_their_token_and_are_renewed() -> None:
    issued: list[str] = []
    skewless = {**EXPECTED, "sasl.oauthbearer.clock.skew.seconds": "0"}
    async with EmbeddedCluster(security="SASL_PLAINTEXT", jwks=JWKS, topics={"t": 1}, properties=skewless) as cluster:

        def renewals() -> int:
            """Each connection has one ApiVersions and one first SaslHandshake."""
            apis = [each.api for each in cluster.requests]
            return apis.count("SaslHandshake") - apis.count("ApiVersions")

        source = {"sasl_oauth_token_provider": provider(lifetime=0.5, issued=issued)}
        async with Producer(**cluster.client_settings(), **source, linger_ms=0) as producer:
            await producer.send("t", b"first")
            tokens = len(issued)
            while renewals() < 3:
                await producer.send("t", b"next")
                await anyio.sleep(0.01)
        assert len(issued) > tokens


def test_a_session_ends_with_its_token() -> None:
    protection = Protection(
        ["SASL_PLAINTEXT"], Personality("4.3"), ScramUsers(), check_token=lambda _: Principal("alice", NOW + 60)
    )
    session = SaslSession(protection)
    assert session.handshake("OAUTHBEARER", 1, 0) == ErrorCode.NONE
    assert not session.allows(ApiKey.METADATA, NOW)
    assert session.authenticate(b"n,,\x01auth=Bearer token\x01\x01", NOW) == (b"", 60_000)
    assert session.allows(ApiKey.METADATA, NOW + 59)
    assert not session.allows(ApiKey.METADATA, NOW + 60)
    assert session.allows(ApiKey.SASL_HANDSHAKE, NOW + 60)


def test_a_session_is_renewed_at_most_once_a_second() -> None:
    protection = Protection(
        ["SASL_PLAINTEXT"], Personality("4.3"), ScramUsers(), check_token=lambda _: Principal("alice", NOW + 60)
    )
    session = SaslSession(protection)
    for began, code in (
        (NOW, ErrorCode.NONE),
        (NOW, ErrorCode.NONE),
        (NOW + 0.99, ErrorCode.ILLEGAL_SASL_STATE),
        (NOW + 1, ErrorCode.NONE),
    ):
        assert session.handshake("OAUTHBEARER", 1, began) == code
        if not code:
            session.authenticate(b"n,,\x01auth=Bearer token\x01\x01", began)
