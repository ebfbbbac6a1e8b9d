"""What one log knows of transactions: which are open in it, and which were aborted.

Readers of committed records see the log up to the first open transaction, and are told the aborted ones, to leave them
out.  Source: KIP-98; ``ProducerStateManager`` and ``TransactionIndex``.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AbortedRange", "OpenTransactions"]


class AbortedRange(NamedTuple):
    """Records of ``producer_id`` from ``first_offset`` to its abort marker at ``marker_offset`` do not count."""

    first_offset: int
    marker_offset: int
    producer_id: int

    def covers(self, producer_id: int, offset: int) -> bool:
        return producer_id == self.producer_id and self.first_offset <= offset < self.marker_offset


class OpenTransactions:
    """Of one partition, by producer id: a producer has at most one."""

    def __init__(self) -> None:
        self._first_offsets: dict[int, int] = {}
        self._aborted: list[AbortedRange] = []

    def __contains__(self, producer_id: object) -> bool:
        return producer_id in self._first_offsets

    def first_offset(self, producer_id: int) -> int:
        """Where the producer's open transaction began; -1 if it has none."""
        return self._first_offsets.get(producer_id, -1)

    def written(self, producer_id: int, offset: int) -> None:
        """A transactional batch is in the log at ``offset``."""
        self._first_offsets.setdefault(producer_id, offset)

    def ended(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """A marker is in the log; one without an open transaction means nothing."""
        first = self._first_offsets.pop(producer_id, None)
        if first is not None and not is_commit:
            self._aborted.append(AbortedRange(first, marker_offset, producer_id))

    def stable_offset(self, end_offset: int) -> int:
        """The last stable offset of a log that ends at ``end_offset``: all before it is decided."""
        return min(self._first_offsets.values(), default=end_offset)

    def aborted(self, start: int, end: int) -> list[AbortedRange]:
        """The aborted transactions that touch offsets from ``start`` up to ``end``, which is not included."""
        return [each for each in self._aborted if each.marker_offset >= start and each.first_offset < end]

    def truncated(self, end_offset: int) -> None:
        """The log ends here now: transactions whose marker is lost are open again, those behind it never were."""
        for each in self._aborted:
            if each.marker_offset >= end_offset:
                self._first_offsets.setdefault(each.producer_id, each.first_offset)
        self._aborted = [each for each in self._aborted if each.marker_offset < end_offset]
        self._first_offsets = {each: first for each, first in self._first_offsets.items() if first < end_offset}

    def trimmed(self, start_offset: int) -> None:
        """The log starts here now."""
        self._aborted = [each for each in self._aborted if each.marker_offset >= start_offset]
