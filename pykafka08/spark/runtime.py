"""Where asynchronous clients live in Spark's Python workers: an event loop without a thread, and what is kept in it.

Spark's worker is plain blocking code that serves one task after another in one thread.  So the event loop runs only
while something is waited for (:func:`run`), and what must outlive a task (connections, metadata, producers) stays
asleep in it in between: the kernel takes in what brokers send meanwhile.  A worker is reused for a minute after its
last task, and with it all that is kept here.

Not here: what is asked and read (``locating``, ``reading``, ``sink``).
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Hashable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import anyio

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig
from pykafka08.errors import RequestTimeoutError

__all__ = ["Runtime", "client", "run", "runtime"]

T = TypeVar("T")


class _PausedLoop(asyncio.SelectorEventLoop):
    """Its clock stands still while it does not run.

    Deadlines count only the time in which an answer could be taken in: one that lay in the socket while Spark worked is
    not late.
    """

    def __init__(self) -> None:
        self._stopped_at: float | None = time.monotonic()
        self._asleep = 0.0
        super().__init__()

    def time(self) -> float:
        """Monotonic seconds, without those in which the loop stood still."""
        now = time.monotonic() if self._stopped_at is None else self._stopped_at
        return now - self._asleep

    def run_forever(self) -> None:
        if self._stopped_at is not None:
            self._asleep += time.monotonic() - self._stopped_at
            self._stopped_at = None
        try:
            super().run_forever()
        finally:
            self._stopped_at = time.monotonic()


class Runtime:
    """One event loop of one thread, and the clients and producers that are kept in it by name."""

    def __init__(self) -> None:
        self._loop = _PausedLoop()
        self._kept: dict[Hashable, AbstractAsyncContextManager[Any]] = {}
        self.pid = os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """What ``coroutine`` returns or raises; RequestTimeoutError when it takes longer than ``timeout`` seconds.

        Not to be called by a coroutine that runs in here.
        """
        task = self._loop.create_task(_bounded(coroutine, timeout))
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            if not task.done() and not self._loop.is_running():  # Ctrl-C stopped the loop, not the task
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task]))
            raise

    def keep(self, name: Hashable, make: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What is kept under ``name``; made and entered if nothing is."""
        kept = self._kept.get(name)
        if kept is None:
            kept = self._kept[name] = self.run(_entered(make))
        return kept  # type: ignore[return-value]  # clients and producers enter as themselves

    def drop(self, name: Hashable) -> None:
        """Close what is kept under ``name``, if something is."""
        kept = self._kept.pop(name, None)
        if kept is not None:
            self.run(kept.__aexit__(None, None, None))

    def client(self, config: ClientConfig) -> Client:
        """The open client of these settings; a new one where the last has failed.  It creates no topics."""
        kept = self._kept.get(config)
        if isinstance(kept, Client) and kept.tasks.failure is not None:
            self.drop(config)
        return self.keep(config, lambda: Client(config, allow_auto_topic_creation=False))

    def close(self) -> None:
        """Close all that is kept, and the loop."""
        for name in list(self._kept):
            self.drop(name)
        self._loop.close()
        if getattr(_local, "runtime", None) is self:
            del _local.runtime


async def _entered(make: Callable[[], AbstractAsyncContextManager[T]]) -> AbstractAsyncContextManager[T]:
    made = make()  # in here: clients want a loop that runs
    await made.__aenter__()
    return made


async def _bounded(coroutine: Coroutine[Any, Any, T], timeout: float | None) -> T:
    with anyio.move_on_after(timeout):
        return await coroutine
    raise RequestTimeoutError(f"a call of the data source did not end within {timeout:g} s")


_local = threading.local()
_of_parents: list[Runtime] = []
"""Those that a fork has left behind, never closed here: that would take sockets out of the parent's own selector."""


def runtime() -> Runtime:
    """The runtime of this thread; a process that was forked has its own (the sockets belong to its parent)."""
    present: Runtime | None = getattr(_local, "runtime", None)
    if present is not None and present.pid != os.getpid():
        _of_parents.append(present)
        present = None
    if present is None:
        present = _local.runtime = Runtime()
    return present


def run(coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
    """Run ``coroutine`` in this thread's runtime, see :meth:`Runtime.run`."""
    return runtime().run(coroutine, timeout)


def client(config: ClientConfig) -> Client:
    """The client of this thread's runtime for these settings, see :meth:`Runtime.client`."""
    return runtime().client(config)
