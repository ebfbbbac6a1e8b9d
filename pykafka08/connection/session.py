"""The times at which the SASL session of a connection is renewed (KIP-368), in monotonic seconds."""

from __future__ import annotations

from math import inf

__all__ = ["RENEWAL_INTERVAL", "RENEWED_AT", "Session"]

RENEWED_AT = (0.75, 0.85)
"""A session is renewed after a part of its life between these two, so that connections do not all do it at once."""

RENEWAL_INTERVAL = 1.0
"""Seconds between two renewals of a connection: the broker refuses a second one within this time."""

RETRY_PART = 0.05
"""Part of a session's life, but at least a second, after which a failed request for a token is repeated."""


class Session:
    """The times of one connection's session, which has no limit until the broker sets one.  ``jitter``: from 0 to 1.

    The broker closes the connection at a request after ``ends_at``, but it still takes a renewal.  So requests are held
    from ``hold_at`` until the renewal, if the broker does not take one before the end, or if there is no token by then.
    """

    __slots__ = (
        "_life",
        "_part",
        "asked_at",
        "ends_at",
        "hold_at",
        "is_holding",
        "is_renewing",
        "renew_at",
        "token_sent_at",
    )

    def __init__(self, jitter: float) -> None:
        self._part = RENEWED_AT[0] + jitter * (RENEWED_AT[1] - RENEWED_AT[0])
        self._life = 0.0
        self.ends_at = self.renew_at = self.hold_at = self.asked_at = inf
        self.is_renewing = False
        """True from the first token of a renewal to its end; ``asked_at`` is when that token was asked for."""
        self.is_holding = False
        """True if requests wait for the renewal."""
        self.token_sent_at = 0.0
        """The time at which the last request of an authentication was sent."""

    def begun(self, life: float, now: float) -> None:
        """The broker limits the session to ``life`` seconds; 0: it does not.

        They are counted from ``token_sent_at``, since later requests travel to the broker as long as the token did.
        """
        was_renewed, self._life = self.is_renewing, life
        self.is_renewing = self.is_holding = False
        self.ends_at = self.renew_at = self.hold_at = self.asked_at = inf
        if not life:
            return
        self.ends_at = self.token_sent_at + life
        wanted = self.token_sent_at + life * self._part
        self.renew_at = max(wanted, now + RENEWAL_INTERVAL) if was_renewed else wanted
        if self.renew_at > wanted:
            self.hold_at = wanted

    def hold(self) -> None:
        """Requests wait from now on."""
        self.is_holding, self.hold_at = True, inf

    def token_asked_for(self, now: float) -> None:
        """The first token of an authentication is asked for."""
        self.renew_at, self.asked_at, self.hold_at = inf, now, min(self.hold_at, self.ends_at)

    def token_made(self, *, may_be_followed: bool) -> None:
        """A token of the renewal is sent.  ``may_be_followed``: later requests need not wait for its answer."""
        self.is_renewing, self.is_holding, self.hold_at = True, not may_be_followed, inf

    def may_retry(self, now: float) -> bool:
        """Whether there is time to ask again for a token that could not be had."""
        return not self.is_renewing and not self.is_holding and now < self.ends_at

    def retry_later(self, now: float) -> None:
        """Repeat a failed request for a token."""
        self.renew_at, self.asked_at = now + max(1.0, self._life * RETRY_PART), inf
