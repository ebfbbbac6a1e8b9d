"""From another thread to the event loop: a list that threads append to, and one wake-up for whatever is in it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

__all__ = ["Inbox"]

T = TypeVar("T")


class Inbox(Generic[T]):
    """``wake`` is called in the event loop after something was put; it is to ``take`` all there is.

    Taking is allowed at any time, so that who is about to decide by the clock can look first at what has come.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._items: deque[T] = deque()
        self._is_woken = False
        self._schedule: Callable[[Callable[[], None]], object] | None = None

    def open(self) -> None:
        """In the event loop that is to be woken."""
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._schedule = loop.call_soon_threadsafe
            return
        import trio

        self._schedule = trio.lowlevel.current_trio_token().run_sync_soon

    def close(self) -> None:
        """What comes later is dropped."""
        self._schedule = None
        self._items.clear()

    def put(self, item: T) -> None:
        """From any thread."""
        schedule = self._schedule
        if schedule is None:
            return
        self._items.append(item)
        if not self._is_woken:
            self._is_woken = True
            # RuntimeError: the loop is closed already, or its run has ended.
            with suppress(RuntimeError):
                schedule(self._wake)

    def take(self) -> Iterator[T]:
        """Everything, in the order it was put."""
        self._is_woken = False  # first: what is put from now on wakes again
        while self._items:
            yield self._items.popleft()
