"""OAuth 2 access tokens (RFC 6750), and the claims of those that are JWTs (RFC 7519)."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from pykafka08.errors import AuthenticationError, KafkaError
from pykafka08.security.secret import Secret

__all__ = ["LONGEST_TOKEN", "OAuthToken", "checked_extensions", "claims_of", "time_text"]

MECHANISM = "OAUTHBEARER"
LONGEST_TOKEN = 500_000
"""Characters; brokers take 524,288 bytes (``sasl.server.max.receive.size``)."""

TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
EXTENSION_NAME = re.compile(r"[A-Za-z]+")
EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")
"""The same as the broker's own patterns."""
RESERVED_EXTENSION = "auth"


@dataclass(frozen=True, repr=False)
class OAuthToken:
    """An access token, as a token provider may return it.

    ``expiry`` is a time in seconds since 1970 or a ``datetime``; a token that has one is kept and used again until it
    has to be refreshed.  ``extensions`` are sent to the broker beside the token (KIP-342).
    """

    token: Secret
    expiry: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)

    def __init__(
        self,
        token: str | Secret,
        expiry: float | datetime | None = None,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        object.__setattr__(self, "token", _checked_token(token))
        object.__setattr__(self, "expiry", _seconds(expiry))
        object.__setattr__(self, "extensions", checked_extensions(extensions or {}))

    def __repr__(self) -> str:
        return "OAuthToken(***)"

    def expires_at(self) -> float | None:
        """``expiry``, else the claim ``exp`` of a JWT; None if neither is known."""
        if self.expiry is not None:
            return self.expiry
        return number_claim(claims_of(self.token), "exp")

    def initial_response(self) -> bytes:
        """The client's first message in OAUTHBEARER (RFC 7628, KIP-255)."""
        extensions = "".join(f"{name}={value}\x01" for name, value in self.extensions.items())
        return f"n,,\x01auth=Bearer {self.token.reveal()}\x01{extensions}\x01".encode()


def _checked_token(token: object) -> Secret:
    if not isinstance(token, (str, Secret)):
        raise _invalid(f"the token is {type(token).__name__}, not a string")
    secret = Secret(token)
    length = len(secret.reveal())
    if length > LONGEST_TOKEN:
        raise _invalid(f"the token has {length} characters; brokers take {LONGEST_TOKEN}")
    if not TOKEN.fullmatch(secret.reveal()):
        raise _invalid(
            "the token is empty, or has a space, a line break or another character that no access token may have "
            "(RFC 6750)"
        )
    return secret


def _seconds(expiry: object) -> float | None:
    if expiry is None:
        return None
    if isinstance(expiry, datetime):
        # Some libraries return UTC without a time zone.
        return (expiry if expiry.tzinfo else expiry.replace(tzinfo=timezone.utc)).timestamp()
    if isinstance(expiry, (int, float)) and not isinstance(expiry, bool) and math.isfinite(expiry):
        return float(expiry)
    raise _invalid(f"the token's expiry is {type(expiry).__name__}, not seconds since 1970 or a datetime")


def checked_extensions(extensions: object, error: Callable[[str], KafkaError] = AuthenticationError) -> dict[str, str]:
    """SASL extensions (KIP-342) that a broker takes; ``error`` for others."""
    if not isinstance(extensions, Mapping):
        raise error(f"the SASL extensions are {type(extensions).__name__}, not a mapping")
    for name, value in extensions.items():
        if not isinstance(name, str) or not EXTENSION_NAME.fullmatch(name) or name.lower() == RESERVED_EXTENSION:
            raise error(f"SASL extension {str(name)[:100]!r}: names consist of letters, and 'auth' is reserved")
        if not isinstance(value, str) or not EXTENSION_VALUE.fullmatch(value):
            raise error(f"SASL extension {name[:100]!r}: its value is not printable ASCII text")
    return dict(extensions)


def claims_of(token: Secret) -> dict[str, Any]:
    """The claims of a JWT, unverified; empty for a token of another kind."""
    parts = token.reveal().split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def number_claim(claims: Mapping[str, Any], name: str) -> float | None:
    """A claim that is a number, such as ``exp``."""
    value = claims.get(name)
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def time_text(seconds: float) -> str:
    """A time for error texts, in UTC."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"second {seconds:.0f}"


def _invalid(text: str) -> AuthenticationError:
    return AuthenticationError(f"{MECHANISM}: {text}", mechanism=MECHANISM)
