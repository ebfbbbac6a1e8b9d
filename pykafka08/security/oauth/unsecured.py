"""Unsigned tokens, as Kafka's OAuthBearerUnsecuredLoginCallbackHandler makes them, for development.

Anyone can make such a token, so the broker must not be reachable by others.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from pykafka08.errors import ConfigError
from pykafka08.logs import library_logger
from pykafka08.security.oauth.token import OAuthToken, checked_extensions

__all__ = ["Unsecured"]

SETTING = "sasl_oauthbearer_unsecured_login"
PREFIX = "unsecuredLogin"
CLAIM = re.compile(r"unsecuredLogin(String|Number|List)Claim_(.+)")
EXTENSION = "unsecuredLoginExtension_"
OPTIONS = ("unsecuredLoginPrincipalClaimName", "unsecuredLoginLifetimeSeconds", "unsecuredLoginScopeClaimName")
OWN_CLAIMS = ("iat", "exp")
LONGEST_LIFETIME = 10 * 365 * 86_400

log = library_logger("security")


class Unsecured:
    """Makes a token for each connection and each renewal; ConfigError for options that Kafka does not have."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._claims: dict[str, Any] = {}
        extensions: dict[str, str] = {}
        for name, value in options.items():
            found = CLAIM.fullmatch(name)
            if found is not None and found[2] not in OWN_CLAIMS:
                self._claims[found[2]] = _claim(name, found[1], value)
            elif name.startswith(EXTENSION):
                extensions[name.removeprefix(EXTENSION)] = value
            elif name not in OPTIONS:
                raise ConfigError(f"{SETTING} has no option {name[:100]!r}")
        self._extensions = checked_extensions(extensions, ConfigError)
        principal = options.get("unsecuredLoginPrincipalClaimName", "sub")
        if not isinstance(self._claims.get(principal), str):
            raise ConfigError(f"{SETTING} needs unsecuredLoginStringClaim_{principal[:100]}, the name of the user")
        lifetime = _number("unsecuredLoginLifetimeSeconds", options.get("unsecuredLoginLifetimeSeconds", "3600"))
        if not 0 < lifetime <= LONGEST_LIFETIME:
            raise ConfigError(f"{SETTING}: unsecuredLoginLifetimeSeconds must be from 1 to {LONGEST_LIFETIME}")
        self._lifetime = lifetime
        log.warning("security.unsigned_tokens", advice="anyone can make such tokens: use them for development only")

    async def token(self) -> OAuthToken:
        """A token that is valid from now on."""
        # Brokers compare `iat` with their clock in whole milliseconds, and refuse a token of the same millisecond.
        now = (time.time_ns() // 1_000_000 - 1) / 1000
        claims = {**self._claims, "iat": now, "exp": now + self._lifetime}
        return OAuthToken(f"{_encoded({'alg': 'none'})}.{_encoded(claims)}.", None, self._extensions)


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).rstrip(b"=").decode()


def _claim(name: str, kind: str, value: str) -> Any:
    if kind == "String":
        return value
    if kind == "Number":
        return _number(name, value)
    # The first character is the separator: "|a|b" is a list of two.
    return value[1:].split(value[0]) if len(value) > 1 else []


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ConfigError(f"{SETTING}: {name[:100]}={value[:50]!r} is not a number") from None
    return int(number) if number.is_integer() else number
