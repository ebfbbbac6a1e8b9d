"""SASL sessions that clients renew many times a second, on embedded brokers that close none of them.

    with renewed_sessions() as sessions:
        async with EmbeddedCluster(..., properties=LONG_SESSIONS) as cluster, Producer(...) as producer:
            ...
            await sessions.renewed()

Brokers that enforced such short sessions would close connections whenever the machine is busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

import pykafka08.broker.security.sasl_session
import pykafka08.connection.session
from pykafka08.broker.security.sasl_session import SaslSession
from pykafka08.broker.session import Session

__all__ = ["LONG_SESSIONS", "RenewedSessions", "renewed_sessions"]

LONG_SESSIONS = {"connections.max.reauth.ms": "3600000"}
"""Broker properties; without a limit, brokers refuse a renewal."""
TOLD_MS = 100
"""Lifetime in the answers to clients, which renew a session after three quarters of it."""
DEADLINE_S = 60


class RenewedSessions:
    """The number of renewals of each open session."""

    def __init__(self) -> None:
        self._renewals: dict[SaslSession, int] = {}
        self.total = 0

    def authenticated(self, session: SaslSession, *, is_renewal: bool) -> None:
        self._renewals[session] = self._renewals.get(session, 0) + is_renewal
        self.total += is_renewal

    def closed(self, session: SaslSession) -> None:
        self._renewals.pop(session, None)

    async def renewed(self) -> None:
        """Wait until a session is renewed, and every other one that is open now is renewed or closed."""
        seen, total = dict(self._renewals), self.total
        assert seen
        with anyio.fail_after(DEADLINE_S):
            while self.total == total or self._is_any_unchanged(seen):  # noqa: ASYNC110 - no event tells of closed sessions
                await anyio.sleep(0.01)

    def _is_any_unchanged(self, seen: dict[SaslSession, int]) -> bool:
        return any(self._renewals.get(session) == count for session, count in seen.items())


@contextmanager
def renewed_sessions() -> Iterator[RenewedSessions]:
    """Tell clients of embedded brokers that their sessions end after ``TOLD_MS``."""
    sessions = RenewedSessions()
    usual_authenticate, usual_closed = SaslSession.authenticate, Session.closed

    def authenticate(session: SaslSession, token: bytes, now: float) -> tuple[bytes, int]:
        was_authenticated = session.principal is not None
        answer, lifetime_ms = usual_authenticate(session, token, now)
        if lifetime_ms:
            sessions.authenticated(session, is_renewal=was_authenticated)
        return answer, min(lifetime_ms, TOLD_MS)

    def closed(session: Session) -> None:
        usual_closed(session)
        if session._sasl is not None:
            sessions.closed(session._sasl)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SaslSession, "authenticate", authenticate)
        patch.setattr(Session, "closed", closed)
        patch.setattr(pykafka08.connection.session, "RENEWAL_INTERVAL", 0.0)
        patch.setattr(pykafka08.broker.security.sasl_session, "RENEWAL_INTERVAL_S", 0.0)
        yield sessions
