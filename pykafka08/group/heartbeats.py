"""The two clocks of a session: when the next heartbeat is due, and when the broker must have given the member up.

Pure; times are monotonic seconds.
"""

from __future__ import annotations

__all__ = ["HeartbeatClock"]


class HeartbeatClock:
    """``heard_at``: since then the broker's own clock cannot have begun later."""

    def __init__(self, interval: float) -> None:
        self.heard_at = 0.0
        self.session_timeout = 0.0
        self.is_v0 = False
        """JoinGroup was (before Kafka 0.10.1): a rebalance waits for as long as the session, which is not renewed."""
        self.due_at = 0.0
        self.interval = interval
        self._in_flight: tuple[int, float] | None = None

    @property
    def expires_at(self) -> float:
        return self.heard_at + self.session_timeout

    @property
    def is_in_flight(self) -> bool:
        return self._in_flight is not None

    @property
    def waiting_since(self) -> float | None:
        """The time at which the heartbeat in flight was sent, or None."""
        return None if self._in_flight is None else self._in_flight[1]

    def restart(self, heard_at: float) -> None:
        """JoinGroup or SyncGroup were answered: as good as a heartbeat of that time."""
        self.heard_at = heard_at
        self.due_at = heard_at + self.interval
        self._in_flight = None

    def sent(self, attempt: int, now: float) -> None:
        self._in_flight = (attempt, now)
        self.due_at = now + self.interval

    def awaits(self, attempt: int) -> bool:
        """True if that heartbeat is the one in flight."""
        return self._in_flight is not None and self._in_flight[0] == attempt

    def answered(self) -> None:
        """Well."""
        self._renew()
        self._in_flight = None

    def told_to_rejoin(self) -> None:
        """The broker renews the session all the same, as the application may take its time; not so the oldest."""
        if not self.is_v0:
            self._renew()

    def _renew(self) -> None:
        """The broker's clock began when it received the one in flight, which is not before it was sent."""
        if self._in_flight is not None:
            _, self.heard_at = self._in_flight

    def drop(self) -> None:
        """No answer to the heartbeat in flight counts any more."""
        self._in_flight = None
