"""The thread, event loop and process that an open client belongs to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from threading import get_ident
from weakref import WeakSet

from pykafka08.errors import WrongEventLoopError

__all__ = ["NO_THREAD", "Affinity"]

NO_THREAD = -1
"""Stands for the thread of a closed client, and of every client in a forked process; no thread has this id."""


class Affinity:
    """The thread, event loop and process in which this object was created, which is where a client opens.

    :meth:`check` raises elsewhere.  Hot paths compare ``thread`` only: looking up the event loop costs a system call
    on Python 3.11 and before.
    """

    __slots__ = ("__weakref__", "_is_forked", "_loop", "_on_fork", "_process", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()
        self._loop = asyncio._get_running_loop()
        self._process = os.getpid()
        self._is_forked = False
        self._on_fork: list[Callable[[], None]] = []
        _open.add(self)

    def check(self) -> None:
        """Raise WrongEventLoopError in another thread, event loop or process than the client was opened in.

        A plain call in the client's own thread is allowed while no event loop runs there.
        """
        if get_ident() == self.thread:
            loop = asyncio._get_running_loop()
            if loop is self._loop or loop is None:
                return
        raise self._error()

    def on_fork(self, callback: Callable[[], None]) -> None:
        """Call ``callback()``, a plain function, first thing in each forked child."""
        self._on_fork.append(callback)

    def forked(self) -> None:
        """Note that this process is a forked child, and that the client belongs to the parent."""
        self._is_forked = True
        self.thread = NO_THREAD
        for callback in self._on_fork:
            callback()

    def _error(self) -> WrongEventLoopError:
        if self._is_forked:
            return WrongEventLoopError(
                f"the client was opened in process {self._process}, and this is process {os.getpid()}, forked from it; "
                "create a client in each process"
            )
        if get_ident() != self.thread:
            return WrongEventLoopError(
                "the client was opened in another thread; call it there, for example with "
                "loop.call_soon_threadsafe() or asyncio.run_coroutine_threadsafe()"
            )
        return WrongEventLoopError(
            "the client was opened in another event loop; open and use a client inside the same event loop"
        )


_open: WeakSet[Affinity] = WeakSet()


def _mark_forked() -> None:
    for each in list(_open):
        each.forked()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_mark_forked)
