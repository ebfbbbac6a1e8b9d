"""How much of what is there a micro-batch takes: at most so many offsets, at least so many, or a delay.  Pure.

The arithmetic is that of Spark's connector (its options ``maxOffsetsPerTrigger``, ``minOffsetsPerTrigger`` and
``maxTriggerDelay``), so that a query that changes its source has batches of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pykafka08.records.record import TopicPartition

__all__ = ["Delay", "prorated"]

Offsets = Mapping[TopicPartition, int]


def prorated(starts: Offsets, ends: Offsets, most: int) -> dict[TopicPartition, int]:
    """Ends no further than some ``most`` offsets from ``starts``, shared out by lag.

    A partition whose share is less than one offset is given one, so that small ones do not starve: the sum may be above
    ``most``.  A partition without a start is taken whole; one that ends before its start is left as it is.
    """
    sizes = {tp: end - starts[tp] for tp, end in ends.items() if tp in starts and end > starts[tp]}
    total = sum(sizes.values())
    if not total:
        return dict(ends)
    result = {}
    for tp, end in ends.items():
        size = sizes.get(tp)
        if size is not None:
            share = most * (size / total)
            end = min(end, starts[tp] + (math.ceil(share) if share < 1 else math.floor(share)))
        result[tp] = end
    return result


class Delay:
    """Waits until ``least`` offsets are there, but never longer than ``most_ms`` after the last batch."""

    def __init__(self, least: int, most_ms: int) -> None:
        self._least = least
        self._most_ms = most_ms
        self._last_ms: float | None = None

    def is_waiting(self, starts: Offsets, ends: Offsets, now_ms: float) -> bool:
        """True if there is to be no batch yet; ``now_ms`` is monotonic.  The first batch never waits."""
        is_late = self._last_ms is None or now_ms - self._last_ms >= self._most_ms
        if not is_late and sum(end - starts.get(tp, 0) for tp, end in ends.items()) < self._least:
            return True
        self._last_ms = now_ms
        return False
