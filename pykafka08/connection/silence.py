"""When a peer that owes an answer has been silent for too long.  Times are monotonic seconds."""

from __future__ import annotations

from pykafka08.connection.call import Call

__all__ = ["SILENCE", "Silence"]

SILENCE = 3.0
"""Seconds without a byte for an open call after which the peer is suspected: it may be paused or cut off.

They begin when the answer may no longer be kept back lawfully, as that of a long poll is."""


class Silence:
    """How long the peer of one connection has said nothing."""

    __slots__ = ("_suspected_last", "quiet_since")

    def __init__(self, now: float) -> None:
        self.quiet_since = now
        """When it was heard last, or the first call was opened after it owed nothing."""
        self._suspected_last = now

    def suspicious_from(self, oldest: Call) -> float:
        """When silence becomes suspicious.  A broker begins to hold a call when it has answered those before it."""
        return self.quiet_since + oldest.may_be_held + SILENCE

    def suspect_at(self, oldest: Call) -> float:
        """When the suspicion is to be told, again if need be."""
        return max(self.suspicious_from(oldest), self._suspected_last + SILENCE)

    def suspected(self, now: float) -> None:
        """The suspicion was told."""
        self._suspected_last = now
