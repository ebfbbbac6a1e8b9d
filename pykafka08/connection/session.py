"""When the SASL session of a connection is renewed (KIP-368).  Times are monotonic seconds."""

from __future__ import annotations

from math import inf

__all__ = ["RENEWAL_INTERVAL", "RENEWED_AT", "Session"]

RENEWED_AT = (0.75, 0.85)
"""Between which parts of its life a session is renewed, so that connections do not all do it at once."""

RENEWAL_INTERVAL = 1.0
"""Seconds between two renewals of a connection: the broker refuses a second one within this time."""

RETRY_PART = 0.05
"""Part of a session's life after which a token that could not be had is asked for again."""


class Session:
    """The times of one connection's session: without a limit until the broker tells one.

    The broker closes the connection at a request after ``ends_at``, but it still takes a renewal.  So requests are held
    from ``hold_at`` until the renewal, if the broker does not take one before the end, or if there is no token by then.
    """

    __slots__ = ("_life", "_part", "ends_at", "hold_at", "renew_at")

    def __init__(self, jitter: float) -> None:
        self._part = RENEWED_AT[0] + jitter * (RENEWED_AT[1] - RENEWED_AT[0])
        self._life = 0.0
        self.ends_at = self.renew_at = self.hold_at = inf

    def begun(self, life: float, token_sent_at: float, now: float, *, is_renewal: bool) -> None:
        """The broker limits the session to ``life`` seconds after it received the last token; 0: it does not."""
        self._life = life
        self.ends_at = self.renew_at = self.hold_at = inf
        if not life:
            return
        self.ends_at = token_sent_at + life
        wanted = token_sent_at + life * self._part
        self.renew_at = max(wanted, now + RENEWAL_INTERVAL) if is_renewal else wanted
        if self.renew_at > wanted:
            self.hold_at = wanted

    def token_asked_for(self) -> None:
        """A renewal begins."""
        self.renew_at, self.hold_at = inf, min(self.hold_at, self.ends_at)

    def token_made(self) -> None:
        """The renewal is sent, before all later requests."""
        self.hold_at = inf

    def has_ended(self, now: float) -> bool:
        return now >= self.ends_at

    def retry_later(self, now: float) -> None:
        """No token could be had."""
        self.renew_at = now + max(1.0, self._life * RETRY_PART)
