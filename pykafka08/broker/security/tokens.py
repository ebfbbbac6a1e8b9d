"""Checks of OAUTHBEARER tokens: signed ones with a JWKS, as Kafka's BrokerJwtValidator, and unsecured ones.

Sources: RFC 7515, RFC 7517, RFC 7519; KIP-255 (unsecured tokens), KIP-768 (signed ones).
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from pykafka08.broker.security.mechanisms import Principal, Refused, TokenCheck
from pykafka08.errors import ConfigError

__all__ = ["Jwks", "signed_tokens", "unsecured_tokens"]

Jwks = Mapping[str, Any] | str | os.PathLike[str]
"""A JSON Web Key Set, or the path of a file with one."""

ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC"}
PREFIX = "sasl.oauthbearer."
JWKS_URL = PREFIX + "jwks.endpoint.url"
DEFAULT_SKEW_S = 30.0
PARTS = 3
LAST_SECOND = 253_402_300_799
"""The end of the year 9999."""


def signed_tokens(jwks: Jwks | None, properties: Mapping[str, str], now: Callable[[], float]) -> TokenCheck | None:
    """A check of signatures and claims; None without a JWKS.

    ``properties`` has Kafka's ``sasl.oauthbearer.jwks.endpoint.url`` (a file), ``.expected.audience``,
    ``.expected.issuer``, ``.clock.skew.seconds``, ``.sub.claim.name`` and ``.scope.claim.name``.
    """
    url = properties.get(JWKS_URL)
    if jwks is None and url:
        jwks = _path_of(url)
    return None if jwks is None else _SignedTokens(_key_set(jwks), properties, now).check


def unsecured_tokens(now: Callable[[], float]) -> TokenCheck:
    """A check of tokens without a signature (``alg`` none), which anybody can make."""

    def check(token: str) -> Principal:
        parts = token.split(".")
        if len(parts) != PARTS or parts[2]:
            raise Refused("the token is not an unsecured JSON Web Token")
        header, claims = (_decoded(part) for part in parts[:2])
        if header.get("alg") != "none":
            raise Refused("the token's algorithm is not none; unsecured tokens are expected")
        return _Claims(claims, now(), skew_s=0.0).principal("sub")

    return check


class _SignedTokens:
    def __init__(self, keys: Any, properties: Mapping[str, str], now: Callable[[], float]) -> None:
        self._keys = keys
        self._now = now
        self._audiences = {
            each.strip() for each in properties.get(PREFIX + "expected.audience", "").split(",") if each.strip()
        }
        self._issuer = properties.get(PREFIX + "expected.issuer") or None
        self._skew_s = float(properties.get(PREFIX + "clock.skew.seconds", DEFAULT_SKEW_S))
        self._user_claim = properties.get(PREFIX + "sub.claim.name", "sub")
        self._scope_claim = properties.get(PREFIX + "scope.claim.name", "scope")

    def check(self, token: str) -> Principal:
        claims = _Claims(self._verified(token), self._now(), self._skew_s)
        claims.check_issuer(self._issuer)
        claims.check_audience(self._audiences)
        claims.number("iat")
        claims.check_scopes(self._scope_claim)
        return claims.principal(self._user_claim)

    def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token that one of the keys has signed."""
        from joserfc import jwt
        from joserfc.errors import JoseError

        header = _decoded(token.split(".")[0])
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise Refused(f"the token's algorithm {algorithm!r:.50} is not one of {', '.join(ALGORITHMS)}")
        for key in self._keys:
            if key.key_type == KEY_TYPES[algorithm[:2]] and key_id in (None, key.kid):
                try:
                    return dict(jwt.decode(token, key, algorithms=[algorithm]).claims)
                except (JoseError, ValueError):
                    continue
        raise Refused(f"no key of the JWKS has signed the token (alg {algorithm}, kid {key_id!r:.100})")


class _Claims:
    """Claims at a time."""

    def __init__(self, claims: Mapping[str, Any], now: float, skew_s: float) -> None:
        self._claims = claims
        self._now = now
        self._skew_s = skew_s

    def principal(self, user_claim: str) -> Principal:
        """The user, if the token is valid now."""
        expires_at = self.number("exp")
        if expires_at + self._skew_s <= self._now:
            raise Refused(f"the token has expired (exp {expires_at})")
        if "nbf" in self._claims and self.number("nbf") - self._skew_s > self._now:
            raise Refused(f"the token is not valid yet (nbf {self._claims['nbf']})")
        if "iat" in self._claims and self.number("iat") > expires_at:
            raise Refused("the token has expired before it was issued (iat, exp)")
        user = self._claims.get(user_claim)
        if not isinstance(user, str) or not user.strip():
            raise Refused(f"the token's claim {user_claim!r:.100} is not the name of a user")
        return Principal(user, expires_at)

    def number(self, name: str) -> float:
        value = self._claims.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LAST_SECOND:
            raise Refused(f"the token's claim {name!r} is missing, or is not a number of seconds")
        return float(value)

    def check_issuer(self, expected: str | None) -> None:
        if expected is not None and self._claims.get("iss") != expected:
            raise Refused(f"the token's issuer is not {expected}")

    def check_scopes(self, name: str) -> None:
        """As in Kafka, a text is one scope, and a value that is neither a text nor a list is no scope."""
        scopes = self._claims.get(name)
        listed = [scopes] if isinstance(scopes, str) else scopes if isinstance(scopes, list) else []
        are_texts = all(isinstance(each, str) and each.strip() for each in listed)
        if not are_texts or len({each.strip() for each in listed}) < len(listed):
            raise Refused(f"the token's claim {name!r:.100} has an empty scope, or one twice")

    def check_audience(self, expected: Collection[str]) -> None:
        """As jose4j in Kafka: a token for an audience is refused where none is expected."""
        audience = self._claims.get("aud", [])
        named = [audience] if isinstance(audience, str) else audience
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            raise Refused("the token's claim 'aud' is not a text or a list of texts")
        if expected and not set(named) & set(expected):
            raise Refused(f"the token's audience is not one of {', '.join(sorted(expected))}")
        if named and not expected:
            raise Refused(f"the token is for an audience (aud); set the property {PREFIX}expected.audience")


def _decoded(part: str) -> dict[str, Any]:
    """A header, or claims, of a JSON Web Token."""
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("the token is not a JSON Web Token")
    return found


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme.lower() != "file":
        raise ConfigError(f"properties: {JWKS_URL}={url!r:.300} is not a file: URL, the only kind that is read here")
    return url2pathname(parts.path)


def _key_set(jwks: Jwks) -> Any:
    try:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet
    except ImportError:
        raise ConfigError("signed tokens (jwks) need the extra 'oauth': pip install 'pykafka08[oauth]'") from None
    name = "jwks" if isinstance(jwks, Mapping) else f"jwks: {os.fspath(jwks)}"
    try:
        found: Any = jwks if isinstance(jwks, Mapping) else json.loads(Path(jwks).read_bytes())
        keys = KeySet.import_key_set(found)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}") from error
    except (JoseError, AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(f"{name} is not a JSON Web Key Set with a key") from None
    if not keys.keys:
        raise ConfigError(f"{name} is not a JSON Web Key Set with a key")
    return keys
