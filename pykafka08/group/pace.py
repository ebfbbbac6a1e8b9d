"""Pauses between steps that normally follow each other at once.  Pure; times are monotonic seconds."""

from __future__ import annotations

from pykafka08.backoff import Backoff

__all__ = ["FREE_STEPS", "Pace"]

FREE_STEPS = 4
"""Steps in a row without a pause: a member id, the join, a rebalance that others began, a cooperative follow-up."""


class Pace:
    """Counts steps in a row; from ``FREE_STEPS`` on, the pause after each step grows.

    A coordinator that asks for another step in each of its answers would otherwise be asked without end and at once.
    """

    def __init__(self, backoff: Backoff) -> None:
        self.not_before = 0.0
        self._backoff = backoff
        self._steps = 0

    def step(self, now: float) -> None:
        """A request is sent without waiting for anything."""
        self._steps += 1
        if self._steps >= FREE_STEPS:
            self.not_before = now + self._backoff.failed()

    def rest(self) -> None:
        """The membership has lasted for a heartbeat: the row of steps has ended."""
        self._steps = 0
        self.not_before = 0.0
        self._backoff.succeeded()
