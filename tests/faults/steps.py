"""Getting between the steps of a coroutine: to cancel it, or to raise in it, at the nth time that it waits."""

from __future__ import annotations

import re
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest
from anyio._backends import _asyncio, _trio

from pykafka08.driver import TaskTree

__all__ = ["Killed", "KillingTree", "cancelled_at", "groups_watched", "nothing_left", "stepped"]

GONE_S = 60
"""Until everything has ended; far above what it takes."""

T = TypeVar("T")


@types.coroutine
def stepped(
    run: Coroutine[Any, Any, T], *, before_wait: Callable[[int], None], after_wait: Callable[[int], None]
) -> Generator[Any, Any, T]:
    """The coroutine, with a call before and after each of its waits, numbered from 1; `after_wait` may raise in it.

    Where a task group waits for its tasks to end does not count: nothing can be raised there.
    """
    count = 0
    waits = run.__await__()
    step: Callable[[], Any] = lambda: next(waits)  # noqa: E731
    while True:
        try:
            awaited = step()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        is_own = not _is_leaving_a_group(run)
        count += is_own
        if is_own:
            before_wait(count)
        try:
            value = yield awaited
            if is_own:
                after_wait(count)
        except BaseException as error:  # noqa: BLE001 - it goes into the coroutine
            step = _throwing(waits, error)
        else:
            step = _sending(waits, value)


def _is_leaving_a_group(run: Any) -> bool:
    """True if the coroutine waits in the `__aexit__` of one of anyio's or trio's groups of tasks."""
    while run is not None:
        code = getattr(run, "cr_code", None)
        if (
            code is not None
            and code.co_name == "__aexit__"
            and re.search(r"anyio.+_backends|trio._core", code.co_filename)
        ):
            return True
        run = getattr(run, "cr_await", None) or getattr(run, "gi_yieldfrom", None) or getattr(run, "ag_await", None)
    return False


def _sending(waits: Generator[Any, Any, T], value: Any) -> Callable[[], Any]:
    return lambda: waits.send(value)


def _throwing(waits: Generator[Any, Any, T], error: BaseException) -> Callable[[], Any]:
    return lambda: waits.throw(error)


async def cancelled_at(wait: int, call: Callable[[], Coroutine[Any, Any, object]]) -> bool:
    """Run `call` and cancel it as it begins to wait for the `wait`-th time; False if it ended before."""
    with anyio.CancelScope() as scope:

        def look(count: int) -> None:
            if count == wait:
                scope.cancel()

        await stepped(call(), before_wait=look, after_wait=lambda _: None)
    return scope.cancelled_caught


class Killed(Exception):
    """What a killed task raises."""


_TREE: ContextVar[KillingTree | None] = ContextVar("tree", default=None)


class KillingTree(TaskTree):
    """A client's tasks, and the tasks that those start; one of them dies.

    ``victim`` is the number of a task, in the order in which they are started, and ``wait`` how often it has waited
    before.  ``names`` are the tasks' so far.  Only within :func:`groups_watched`.
    """

    def __init__(self, victim: int = -1, wait: int = 1) -> None:
        super().__init__()
        self.names: list[str] = []
        self.is_dead = False
        self._victim = victim
        self._wait = wait

    def start(self, name: str, run: Callable[..., Awaitable[object]], *args: Any) -> None:
        super().start(name, self.watched(name, run), *args)

    def watched(self, name: str, run: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
        """The task's function, killed if it is the victim."""
        number = len(self.names)
        self.names.append(name)

        def kill(count: int) -> None:
            if number == self._victim and count == self._wait:
                self.is_dead = True
                raise Killed(name)

        async def running(*args: Any) -> object:
            token = _TREE.set(self)
            try:
                return await run(*args)
            finally:
                _TREE.reset(token)

        async def task(*args: Any) -> object:
            return await stepped(running(*args), before_wait=lambda _: None, after_wait=kill)

        return task


@contextmanager
def groups_watched() -> Iterator[None]:
    """Task groups of a client's tasks hand theirs to the tree too."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (_asyncio.TaskGroup, _trio.TaskGroup):
            patch.setattr(kind, "start_soon", _starting(kind.start_soon))
        yield


def _starting(start_soon: Any) -> Callable[..., None]:
    def start(group: Any, run: Callable[..., Awaitable[object]], *args: Any, name: object = None) -> None:
        tree = _TREE.get()
        if tree is not None and not str(name).startswith("pykafka08: "):  # those the tree has started itself
            run = tree.watched(getattr(run, "__qualname__", str(run)), run)
        start_soon(group, run, *args, name=name)

    return start


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """What runs inside leaves no task; the embedded broker's end of a closed connection goes by itself."""
    before = len(anyio.get_running_tasks())
    yield
    with anyio.fail_after(GONE_S):
        while len(anyio.get_running_tasks()) > before:
            await anyio.lowlevel.checkpoint()
