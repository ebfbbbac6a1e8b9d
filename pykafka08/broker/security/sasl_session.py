"""SASL on one connection of the embedded broker.

Before authentication, ApiVersions is served once, then SaslHandshake, then SaslAuthenticate to its end.

Sources: KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

from math import inf

from pykafka08.broker.security.mechanisms import Principal, Refused, SaslExchange
from pykafka08.broker.security.protection import Protection
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages import ApiKey

__all__ = ["SaslSession"]

LONGEST_SESSION_MS = 2**63 - 1
"""The largest INT64; seconds as a float round it up."""
RENEWAL_INTERVAL_S = 1.0
"""Within this time a connection takes no second renewal (KIP-368)."""
ILLEGAL = "SaslAuthenticate request received after successful authentication"


class SaslSession:
    """Who a connection belongs to, and how far it has come in proving it."""

    def __init__(self, protection: Protection) -> None:
        self._protection = protection
        self._mechanism: str | None = None
        self._exchange: SaslExchange | None = None
        self._ends_at: float | None = None
        self._renewed_at = -inf
        self._has_versions = False
        self.principal: Principal | None = None
        self.takes_bare_tokens = False
        """True if the next frame is a token without a header (SaslHandshake v0)."""
        self.has_failed = False
        """True if the connection is to be closed after the answer."""

    def allows(self, api_key: int, now: float) -> bool:
        """True if a request of this API is served now, in Unix time."""
        if self._exchange is not None:
            return api_key in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
        if self.principal is None:
            return api_key == ApiKey.SASL_HANDSHAKE or (api_key == ApiKey.API_VERSIONS and not self._has_versions)
        is_over = self._ends_at is not None and now >= self._ends_at
        return not is_over or api_key in (ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS)

    def ask_versions(self) -> int:
        """Note that ApiVersions is served; an error code."""
        if self._exchange is not None:
            self.has_failed = True
            return ErrorCode.ILLEGAL_SASL_STATE
        self._has_versions = self._protection.serves_versions_once
        return ErrorCode.NONE

    def handshake(self, mechanism: str, version: int, now: float) -> int:
        """Begin, or begin again with the same mechanism in a session that ends; an error code.

        ``now`` is in monotonic seconds, unlike that of other methods.
        """
        is_renewal = self.principal is not None and self._exchange is None
        if is_renewal and (self._ends_at is None or now - self._renewed_at < RENEWAL_INTERVAL_S):
            return ErrorCode.ILLEGAL_SASL_STATE
        if is_renewal:
            self._renewed_at = now
        if self._exchange is not None:
            self.has_failed = True
            return ErrorCode.ILLEGAL_SASL_STATE
        if mechanism not in self._protection.mechanisms:
            self.has_failed = True
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self.principal is not None and mechanism != self._mechanism:
            self.has_failed = True
            return ErrorCode.ILLEGAL_SASL_STATE
        self._mechanism = mechanism
        self._exchange = self._protection.exchange(mechanism)
        self.takes_bare_tokens = version == 0
        return ErrorCode.NONE

    def authenticate(self, token: bytes, now: float) -> tuple[bytes, int]:
        """The answer to a token, and milliseconds until the session ends (0: never); Refused if it is wrong."""
        if self._exchange is None:
            raise Refused(ILLEGAL, ErrorCode.ILLEGAL_SASL_STATE)
        try:
            answer = self._exchange.respond(token)
            found = self._exchange.principal
            if found is not None and self.principal is not None and found.name != self.principal.name:
                names = f"from User.{self.principal.name}: User.{found.name}"
                raise Refused(f"Cannot change principals during re-authentication {names}")
        except Refused:
            self.has_failed = True
            raise
        if found is None:
            return answer, 0
        self.principal, self._exchange, self.takes_bare_tokens = found, None, False
        seconds = self._protection.session_seconds(found, now)
        self._ends_at = None if seconds is None else now + seconds
        return answer, 0 if seconds is None else min(max(1, int(seconds * 1000)), LONGEST_SESSION_MS)
