"""What the application is to be told, one thing at a time, and what it is busy with."""

from __future__ import annotations

from collections import deque

from pykafka08.group.actions import ListenerCall, Lost, Revoke
from pykafka08.records.record import TopicPartition

__all__ = ["ListenerCalls"]


class ListenerCalls:
    def __init__(self) -> None:
        self._waiting: deque[ListenerCall] = deque()
        self._running: ListenerCall | None = None

    @property
    def is_drained(self) -> bool:
        """True if the application has heard everything."""
        return self._running is None and not self._waiting

    @property
    def is_due(self) -> bool:
        return self._running is None and bool(self._waiting)

    @property
    def being_revoked(self) -> frozenset[TopicPartition]:
        """What the application is giving up at this moment."""
        return self._running.partitions if isinstance(self._running, Revoke) else frozenset()

    def add(self, call: ListenerCall) -> None:
        self._waiting.append(call)

    def begin(self) -> ListenerCall:
        self._running = self._waiting.popleft()
        return self._running

    def end(self) -> ListenerCall | None:
        ended, self._running = self._running, None
        return ended

    def forget(self) -> None:
        """What the application has not heard yet has not happened, but for losses."""
        self._waiting = deque(call for call in self._waiting if isinstance(call, Lost))
