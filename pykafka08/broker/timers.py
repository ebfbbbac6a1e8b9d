"""The cluster's clock: callbacks at given times, in one heap, run by one task.

Handlers never sleep; what must happen later (the end of a long poll, a session time-out) is a timer.  A timer costs no
task.  Nothing wakes while no timer is due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from pykafka08.driver import Wakeup
from pykafka08.errors import ClosedError

__all__ = ["Timer", "Timers"]


class Timer:
    """One callback to come; ``cancel()`` is cheap and may be called at any time."""

    __slots__ = ("_callback", "when")

    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self._callback: Callable[[], object] | None = callback

    @property
    def is_pending(self) -> bool:
        return self._callback is not None

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class Timers:
    """Calls back at times of the event loop's clock, in seconds; of ``clock`` if that is given."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._wakeup = Wakeup()
        self._clock = clock

    def start(self) -> None:
        """Take the running event loop's clock.

        anyio.current_time() cannot be asked from an asyncio protocol's callbacks, which run in no task.
        """
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._clock = loop.time
        else:
            import trio

            self._clock = trio.current_time

    def now(self) -> float:
        if self._clock is None:
            raise ClosedError("the embedded cluster is not running")
        return self._clock()

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(when, callback)
        heap = self._heap
        if not heap or when < heap[0][0]:
            self._wakeup.set()
        heapq.heappush(heap, (when, next(self._order), timer))
        return timer

    def call_after(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self.call_at(self.now() + seconds, callback)

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            await self._wakeup.wait(self.fire_due())

    def fire_due(self) -> float | None:
        """Fire what is due now; when the next one will be."""
        heap, now = self._heap, self.now()
        while heap and (heap[0][0] <= now or not heap[0][2].is_pending):
            heapq.heappop(heap)[2].fire()
        return heap[0][0] if heap else None
