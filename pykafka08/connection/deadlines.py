"""The deadlines of one connection's calls: one heap, swept by one task."""

from __future__ import annotations

import heapq

from pykafka08.connection.call import Call

__all__ = ["Deadlines"]


class Deadlines:
    """Calls by the moment at which something is due: the caller's deadline, then that of a missing answer."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Call]] = []
        self._added = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def first(self) -> float | None:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else None

    def add(self, deadline: float, call: Call, open_calls: int) -> None:
        """Entries of answered calls are left in the heap until it is mostly made of them."""
        if len(self._heap) > 4 * open_calls + 64:
            self._heap = [entry for entry in self._heap if entry[2].response or entry[2].outcome]
            heapq.heapify(self._heap)
        self._added += 1
        heapq.heappush(self._heap, (deadline, self._added, call))

    def pop_due(self, now: float) -> Call | None:
        """The call that is due first, once for each deadline; None if nothing is due."""
        return heapq.heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now else None

    def clear(self) -> None:
        self._heap.clear()
