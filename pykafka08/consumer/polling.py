"""Does the application still ask for records?  Pure; times are seconds of one clock.

Nothing is noted per record: whoever watches looks at what the reader shows of its progress, from time to time.
"""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["PollClock"]

LOOKS = 20
"""In one limit."""


class PollClock:
    """``limit`` is how long an application may be silent, ``interval`` how often to look."""

    def __init__(self, limit: float, now: float) -> None:
        self.limit = limit
        self.interval = limit / LOOKS
        self._seen: Hashable = None
        self._since = now

    def looked(self, progress: Hashable, *, is_waiting: bool, now: float) -> float:
        """How long nothing has been asked for; ``progress`` differs whenever something was."""
        if is_waiting or progress != self._seen:
            self._seen = progress
            self._since = now
        return now - self._since

    def restart(self, now: float) -> None:
        self._since = now
