"""The times at which a client warns of trouble that lasts.  Pure; times are seconds of one monotonic clock."""

from __future__ import annotations

__all__ = ["REPORT_EVERY", "ReportTimer"]

REPORT_EVERY = 60.0
"""Seconds between two warnings of the same trouble."""


class ReportTimer:
    """The first warning is due ``after`` seconds of trouble, the next ones every ``REPORT_EVERY`` seconds."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._reported_at: float | None = None

    def next_at(self, since: float) -> float:
        """When the next warning of trouble that began at ``since`` is due."""
        first = since + self._after
        return first if self._reported_at is None else max(first, self._reported_at + REPORT_EVERY)

    def reported(self, now: float) -> None:
        """Note that a warning was given."""
        self._reported_at = now

    def reset(self) -> None:
        """Note that the trouble is over."""
        self._reported_at = None
