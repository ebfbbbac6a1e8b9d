"""Pauses between requests that normally follow each other at once.  Pure; times are monotonic seconds."""

from __future__ import annotations

from pykafka08.backoff import Backoff

__all__ = ["FREE_STEPS", "Pace"]

FREE_STEPS = 4
"""Requests in a row without a pause: member id, join, another member's rebalance, a cooperative follow-up."""


class Pace:
    """Counts requests in a row; from ``FREE_STEPS`` on, the pause after each one grows.

    Without it, a coordinator whose every answer requires another request would receive them in a busy loop.
    """

    def __init__(self, backoff: Backoff) -> None:
        self.not_before = 0.0
        self._backoff = backoff
        self._steps = 0

    def step(self, now: float) -> None:
        """Note a request that is sent without waiting."""
        self._steps += 1
        if self._steps >= FREE_STEPS:
            self.not_before = now + self._backoff.failed()

    def rest(self) -> None:
        """Start counting anew: the membership has lasted for a heartbeat."""
        self._steps = 0
        self.not_before = 0.0
        self._backoff.succeeded()
