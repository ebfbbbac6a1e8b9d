"""Back-pressure: the bound on the bytes of records that have not ended, and the line of callers that wait for room."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from pykafka08.driver import Waiter
from pykafka08.errors import BufferFullError, KafkaError

__all__ = ["Room"]


class Room:
    """``capacity`` bytes, of which ``used()`` are taken; first come, first served; errors name it ``setting``.

    Room that was promised to a caller who has not run yet counts as taken, so that nobody slips in before it.
    """

    def __init__(self, capacity: int, used: Callable[[], int], setting: str = "buffer_memory") -> None:
        self.capacity = capacity
        self.promised = 0
        self.bound = capacity
        """What may be taken in all, beside what is promised."""
        self._used = used
        self._setting = setting
        self._line: deque[tuple[int, Waiter[None]]] = deque()

    def has(self, size: int) -> bool:
        return self._used() + size <= self.bound

    @property
    def has_line(self) -> bool:
        """Somebody waits."""
        return bool(self._line)

    def is_free(self, size: int) -> bool:
        """There is room, and nobody waits for it."""
        return not self._line and self.has(size)

    def stand_in_line(self, size: int) -> Waiter[None]:
        """Ends when ``size`` bytes are promised to who waits (``waits.wait_for_room``)."""
        waiter = Waiter[None]()
        self._line.append((size, waiter))
        self.grant()
        return waiter

    def take_promised(self, size: int) -> None:
        """What was promised is taken now."""
        self._promise(-size)

    def leave(self, size: int, waiter: Waiter[None]) -> None:
        """Wait no longer; what was promised is for the next."""
        if not waiter.is_done:
            self._line.remove((size, waiter))
        elif waiter.error is None:
            self._promise(-size)
        self.grant()

    def grant(self) -> None:
        """Promise free room to those who wait."""
        while self._line and self.has(self._line[0][0]):
            size, waiter = self._line.popleft()
            self._promise(size)
            waiter.set_result(None)

    def _promise(self, size: int) -> None:
        self.promised += size
        self.bound = self.capacity - self.promised

    def fail(self, error: KafkaError) -> None:
        """There will never be room again."""
        line, self._line = self._line, deque()
        for _, waiter in line:
            waiter.set_exception(error)

    def full(self, topic: str | None, partition: int | None, how_long: str = "") -> BufferFullError:
        """The error of a record that there is no room for."""
        return BufferFullError(
            f"{self._used()} of {self._setting}={self.capacity} bytes wait to be acknowledged{how_long}; await ready()",
            topic=topic,
            partition=partition,
        )
