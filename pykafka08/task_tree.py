"""The tree of a client's background tasks, and the cancel scopes of its objects.

anyio starts tasks, opens cancel scopes and tells the time only where a task runs.  asyncio calls protocols, timers and
done-callbacks outside any task, so plain functions use this module instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any

import anyio

from pykafka08.affinity import Affinity
from pykafka08.errors import ClientFailedError, ClosedError
from pykafka08.waiter import NEVER, Waiter, Wakeup

__all__ = ["TaskScope", "TaskTree", "current_task"]

_Task = tuple[str, Callable[..., Awaitable[object]], tuple[Any, ...]]


def current_task() -> object:
    """The running task; None in a callback of asyncio."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return asyncio.current_task(loop)
    import trio

    return trio.lowlevel.current_task()


class TaskScope:
    """A cancel scope that can be created and cancelled outside any task; the task to be cancelled enters it."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None
        self._is_cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """True after :meth:`cancel`."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Cancel the task inside, or a task that enters later."""
        self._is_cancelled = True
        if self._scope is not None:
            self._scope.cancel()

    @contextmanager
    def entered(self, deadline: float = NEVER) -> Iterator[anyio.CancelScope]:
        """Enter the scope, once, in a task."""
        with anyio.CancelScope(deadline=deadline) as scope:
            self._scope = scope
            if self._is_cancelled:
                scope.cancel()
            yield scope


_branch: ContextVar[object] = ContextVar("_branch", default=None)
"""The background task in which the current code runs, also where that task has started others."""


def _sole_cause(error: Exception) -> Exception:
    """The exception that a task group has wrapped, if it is the only one."""
    inner: Sequence[Exception] = getattr(error, "exceptions", ())
    return _sole_cause(inner[0]) if len(inner) == 1 else error


def _start_task(run: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> object:
    """Run ``run(*args)`` in a task of the event loop; the caller must keep a reference to the result."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return loop.create_task(run(*args), name="pykafka08")
    import trio

    return trio.lowlevel.spawn_system_task(run, *args, name="pykafka08", context=copy_context())


class TaskTree:
    """All background tasks of one client; each failure is raised, and no task outlives :meth:`aclose`.

    A task that ends with an exception marks the tree as failed: :meth:`check` then raises :class:`ClientFailedError`
    with the cause, and each ``on_failure`` callback is called once with that error, to wake waiting tasks.
    """

    def __init__(self) -> None:
        self._group: anyio.abc.TaskGroup | None = None
        self._host: object = None
        self._affinity: Affinity | None = None
        self._ended: Waiter[None] = Waiter()
        self._failure: ClientFailedError | None = None
        self._on_failure: list[Callable[[ClientFailedError], None]] = []
        self._pending: list[_Task] = []
        self._has_pending = Wakeup()
        self._branches: set[object] = set()
        self._last_branch: object = None
        """The background task that closed the tree; it is not cancelled."""
        self._is_closed = False

    @property
    def failure(self) -> ClientFailedError | None:
        return self._failure

    async def __aenter__(self) -> TaskTree:
        if self._group is not None or self._is_closed:
            raise ClosedError("a client cannot be reused; create a new one")
        self._affinity = Affinity()
        started: Waiter[anyio.abc.TaskGroup] = Waiter()
        with anyio.CancelScope(shield=True):
            self._host = _start_task(self._hold_group, started)
            self._group = await started
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel every task and wait until all have ended; any task may call it, any number of times.

        A call from one of the tree's own tasks, for example a listener, returns at once, because it would wait for
        itself; the other tasks are cancelled when that task has ended.
        """
        if self._affinity is None:
            self._is_closed = True
            return
        self._affinity.check()
        branch = _branch.get()
        if branch in self._branches:
            self._last_branch = branch
            return
        self._cancel()
        with anyio.CancelScope(shield=True):
            await self._ended

    def _cancel(self) -> None:
        group, self._is_closed = self._group, True
        if group is not None:
            self._start_pending(group)  # callers wait for the cleanup of these tasks
            self._group = None
            group.cancel_scope.cancel()

    async def _hold_group(self, started: Waiter[anyio.abc.TaskGroup]) -> None:
        # In its own task: a group must be left in the task and scope in which it was entered, which fixtures, start-up
        # hooks and time limits around aclose() cannot guarantee.
        try:
            async with anyio.create_task_group() as group:
                started.set_result(group)
                while True:
                    await self._has_pending.wait()
                    self._start_pending(group)
        finally:
            if not self._is_closed:  # asyncio.run() cancels all tasks at its end: a close must not wait for them
                self.fail("the client's background tasks have ended", ClosedError("the event loop cancelled them"))
            self._ended.set_result(None)

    def _start_pending(self, group: anyio.abc.TaskGroup) -> None:
        pending, self._pending = self._pending, []
        for task in pending:
            self._start_now(group, task)

    def on_failure(self, callback: Callable[[ClientFailedError], None]) -> None:
        """Call ``callback`` with the failure, at once if the tree has already failed."""
        if self._failure is not None:
            callback(self._failure)
        else:
            self._on_failure.append(callback)

    def off_failure(self, callback: Callable[[ClientFailedError], None]) -> None:
        """Undo :meth:`on_failure`."""
        if callback in self._on_failure:
            self._on_failure.remove(callback)

    def start(self, name: str, run: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run ``run(*args)`` in the background; can be called outside any task."""
        if self._group is None:
            raise ClosedError("the client is not open")
        if current_task() is not None:
            self._start_now(self._group, (name, run, args))
        else:
            self._pending.append((name, run, args))
            self._has_pending.set()

    def _start_now(self, group: anyio.abc.TaskGroup, task: _Task) -> None:
        group.start_soon(self._supervise, *task, name=f"pykafka08: {task[0]}")

    async def _supervise(self, name: str, run: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
        branch = object()
        _branch.set(branch)
        self._branches.add(branch)
        try:
            await run(*args)
        except Exception as error:  # noqa: BLE001 - the outer edge: kept and raised at the user's next await
            self.fail(f"the client's task {name!r} ended", error)
        finally:
            self._branches.discard(branch)
            if self._last_branch is branch:
                self._cancel()

    def fail(self, what: str, error: Exception) -> None:
        """Mark the client as failed: the user's next await raises ``error``.  Can be called outside any task."""
        if self._failure is not None:
            return
        error = _sole_cause(error)
        self._failure = failure = ClientFailedError(f"{what}: {error!r}; close this client")
        failure.__cause__ = error
        for callback in list(self._on_failure):
            with suppress(Exception):  # all callers are woken, and get the first error
                callback(failure)

    def check(self) -> None:
        """Raise if a task has died, if the client is closed, or was opened in another event loop."""
        if self._failure is not None:
            raise self._failure
        if self._group is None or self._affinity is None:
            raise ClosedError("the client is closed" if self._is_closed else "use the client with 'async with'")
        self._affinity.check()

    def check_affinity(self) -> None:
        """WrongEventLoopError in another thread, event loop or process than the client was opened in."""
        if self._affinity is not None:
            self._affinity.check()

    @property
    def affinity(self) -> Affinity | None:
        """The thread, event loop and process of the client; None before it is opened."""
        return self._affinity
