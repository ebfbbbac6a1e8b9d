"""Segments of a log: rolling and retention.

Source: ``LogSegment.shouldRoll`` and ``UnifiedLog.deleteOldSegments``; KIP-32 (retention by timestamps).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["FOREVER_MS", "Segment", "deletable"]

FOREVER_MS = (1 << 63) - 1
UNLIMITED = -1


class Segment:
    """A run of batches from ``base_offset`` on.

    ``latest_ms`` is its largest timestamp, or the time of the last append if records have no timestamps.
    """

    __slots__ = ("base_offset", "count", "first_timestamp_ms", "max_timestamp_ms", "modified_at_ms", "size", "trimmed")

    def __init__(self, base_offset: int, first_timestamp_ms: int) -> None:
        self.base_offset = base_offset
        self.first_timestamp_ms = first_timestamp_ms
        self.max_timestamp_ms = -1
        self.modified_at_ms = -1
        self.size = 0
        self.count = 0
        """Batches."""
        self.trimmed = 0
        """Bytes of deleted batches that its file still has."""

    @property
    def latest_ms(self) -> int:
        return self.max_timestamp_ms if self.max_timestamp_ms >= 0 else self.modified_at_ms

    def add(self, size: int, timestamp_ms: int, appended_at_ms: int) -> None:
        """Add a batch of ``size`` bytes."""
        self.size += size
        self.count += 1
        self.modified_at_ms = appended_at_ms
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms


def deletable(
    segments: Sequence[Segment], *, now_ms: int, retention_ms: int = UNLIMITED, retention_bytes: int = UNLIMITED
) -> int:
    """Number of the oldest segments that retention deletes, the active one included; -1 stands for no limit."""
    gone = 0
    if retention_ms != UNLIMITED:
        while gone < len(segments) and now_ms - segments[gone].latest_ms > retention_ms:
            gone += 1
    if retention_bytes != UNLIMITED:
        excess = sum(segment.size for segment in segments[gone:]) - retention_bytes
        while gone < len(segments) and excess >= segments[gone].size:
            excess -= segments[gone].size
            gone += 1
    return gone
