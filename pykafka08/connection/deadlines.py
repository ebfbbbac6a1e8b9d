"""The deadlines of one connection's calls, swept by one task."""

from __future__ import annotations

import heapq
from collections import deque

from pykafka08.connection.call import Call

__all__ = ["Deadlines"]


class Deadlines:
    """Calls by the moment at which something is due: the caller's deadline, then that of a missing answer.

    Most calls have the time-out of the call before them and so a later deadline: those stand in line, and go from the
    front of the line as they are answered.  Only the others are sorted, in a heap.
    """

    def __init__(self) -> None:
        self._line: deque[tuple[float, int, Call]] = deque()
        self._heap: list[tuple[float, int, Call]] = []
        self._last = float("-inf")
        self._added = 0

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    @property
    def first(self) -> float | None:
        """When the next one is due."""
        line, heap = self._line, self._heap
        if line and not (heap and heap[0] < line[0]):
            return line[0][0]
        return heap[0][0] if heap else None

    def add(self, deadline: float, call: Call, open_calls: int) -> None:
        """Entries of answered calls are left until they come to the front, or until most are such."""
        line = self._line
        while line and _is_over(line[0][2]):
            line.popleft()
        if len(line) + len(self._heap) > 4 * open_calls + 64:
            self._line = line = deque(entry for entry in line if not _is_over(entry[2]))
            self._heap = [entry for entry in self._heap if not _is_over(entry[2])]
            heapq.heapify(self._heap)
        self._added += 1
        if not line or deadline >= self._last:
            self._last = deadline
            line.append((deadline, self._added, call))
        else:
            heapq.heappush(self._heap, (deadline, self._added, call))

    def pop_due(self, now: float) -> Call | None:
        """The call that is due first, once for each deadline; None if nothing is due."""
        line, heap = self._line, self._heap
        if line and not (heap and heap[0] < line[0]):
            return line.popleft()[2] if line[0][0] <= now else None
        return heapq.heappop(heap)[2] if heap and heap[0][0] <= now else None

    def clear(self) -> None:
        self._line.clear()
        self._heap.clear()


def _is_over(call: Call) -> bool:
    return call.response is None and call.outcome is None
