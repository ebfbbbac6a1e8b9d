"""How long to wait before the next try of the same thing: doubling, with jitter.  Pure.

What is tried again, and when a row of failures counts as ended, is up to those who ask: cluster, producer, consumer and
group.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Backoff", "pause_after"]


def pause_after(failures: int, first: float, most: float, chance: float) -> float:
    """How long to wait after so many failures in a row, in the unit of ``first`` and ``most``.

    ``first`` after one, doubled by each further one, no more than ``most``; ``chance``, from 0 to 1, makes it up to a
    fifth shorter or longer, so that clients that failed together do not come back together.
    """
    return min(max(first, most), first * 2.0 ** min(max(0, failures - 1), 30)) * (0.8 + 0.4 * chance)


LEAST_FIRST = 0.001
LEAST_MOST = 0.02
"""Floors in seconds: settings of 0 still give growing pauses, so that no request is repeated in a busy loop."""


class Backoff:
    """Growing pauses after consecutive failures; times in seconds; ``chance()`` gives floats from 0 to 1."""

    __slots__ = ("_chance", "_first", "_most", "failures")

    def __init__(self, first: float, most: float, chance: Callable[[], float]) -> None:
        self._first = max(first, LEAST_FIRST)
        self._most = max(most, LEAST_MOST)
        self._chance = chance
        self.failures = 0

    def fresh(self) -> Backoff:
        """A new backoff with the same settings and no failures."""
        return Backoff(self._first, self._most, self._chance)

    def pause(self) -> float:
        """Seconds to wait after the failures so far."""
        return pause_after(self.failures, self._first, self._most, self._chance())

    def failed(self) -> float:
        """Count one failure; seconds to wait after it."""
        self.failures += 1
        return self.pause()

    def succeeded(self) -> None:
        self.failures = 0
