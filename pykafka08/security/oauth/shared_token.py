"""One access token for all connections of a client, replaced before it expires."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from pykafka08.errors import AuthenticationError, KafkaError, TransportError
from pykafka08.logs import library_logger
from pykafka08.security.oauth.token import OAuthToken, time_text
from pykafka08.security.settings import SecurityConfig

__all__ = ["RefreshTimes", "SharedToken"]

MECHANISM = "OAUTHBEARER"
PAUSE_SECONDS = 10.0
"""Seconds between two attempts to replace a token that is still valid."""

log = library_logger("security")


@dataclass(frozen=True)
class RefreshTimes:
    """When a token is replaced: the settings ``sasl_login_refresh_``."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period: float = 60
    buffer: float = 300

    @classmethod
    def of(cls, config: SecurityConfig) -> RefreshTimes:
        return cls(
            config.sasl_login_refresh_window_factor,
            config.sasl_login_refresh_window_jitter,
            config.sasl_login_refresh_min_period_seconds,
            config.sasl_login_refresh_buffer_seconds,
        )

    def refresh_at(self, now: float, expiry: float, chance: float) -> float:
        """When to replace a token that was made at ``now``; ``chance`` is from 0 to 1."""
        lifetime = expiry - now
        wanted = now + lifetime * min(1.0, self.window_factor + self.window_jitter * chance)
        if self.min_period + self.buffer > lifetime:
            return wanted
        return max(now + self.min_period, min(wanted, expiry - self.buffer))


class SharedToken:
    """The token that ``fetch`` returned last, for as long as it is good.

    A token without a known expiry is not kept: ``fetch`` is called for each connection and each renewal.  Calls that
    come while one runs wait for its outcome, and share its error.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[OAuthToken]],
        times: RefreshTimes,
        *,
        now: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._fetch = fetch
        self._times = times
        self._now = now
        self._chance = chance
        self._token: OAuthToken | None = None
        self._refresh_at = 0.0
        self._expires_at = 0.0
        self._lock: anyio.Lock | None = None
        self._fetches = 0
        self._failure: KafkaError | None = None

    async def get(self) -> OAuthToken:
        """A token that has not expired."""
        kept = self._token
        if kept is not None and self._now() < self._refresh_at:
            return kept
        if self._lock is None:
            self._lock = anyio.Lock()
        if kept is not None and self._now() < self._expires_at and self._lock.locked():
            return kept
        fetches = self._fetches
        async with self._lock:
            if self._fetches != fetches:
                if self._failure is not None:
                    raise _copy(self._failure)
                if self._token is not None and self._now() < self._refresh_at:
                    return self._token
            return await self._replaced()

    async def _replaced(self) -> OAuthToken:
        """A new token; the old one if there is no new one yet and the old one is still valid."""
        self._failure = None
        try:
            token = await self._fetch()
            self._keep(token)
        except Exception as error:
            self._fetches += 1
            now = self._now()
            if self._token is not None and now < self._expires_at:
                self._refresh_at = min(now + PAUSE_SECONDS, self._expires_at)
                log.warning(
                    "security.token_not_refreshed",
                    expires_at=time_text(self._expires_at),
                    cause=str(error) if isinstance(error, KafkaError) else type(error).__name__,
                )
                return self._token
            self._failure = error if isinstance(error, KafkaError) else None
            raise
        self._fetches += 1
        return token

    def _keep(self, token: OAuthToken) -> None:
        now = self._now()
        expiry = token.expires_at()
        if expiry is not None and expiry <= now:
            raise AuthenticationError(
                f"{MECHANISM}: the token expired at {time_text(expiry)}, and this host's clock says {time_text(now)}: "
                "get a new token, or correct the clock of this host or of the token's issuer",
                mechanism=MECHANISM,
            )
        if token.expiry is None:
            self._token = None
            return
        self._token, self._expires_at = token, token.expiry
        self._refresh_at = self._times.refresh_at(now, token.expiry, self._chance())


def _copy(error: KafkaError) -> KafkaError:
    """The same error for another caller: an exception that is raised twice collects both tracebacks."""
    if isinstance(error, AuthenticationError):
        copy: KafkaError = AuthenticationError(error.message, mechanism=error.mechanism)
    else:
        copy = TransportError(error.message)
    copy.__cause__ = error
    return copy
