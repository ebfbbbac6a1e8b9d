"""What every driver stands on: the waiter, the wake-up, the loop around a machine, and the tree of a client's tasks.

A *machine* decides and never waits; its *driver* performs what it says.  Here is the loop that both share ("poll,
perform, wait for input or wake-up"), written once, and the light one-shot :class:`Waiter`, which asyncio and trio both
know how to await and which costs no task, no event and no cancel scope.  What every driver needs beside that is passed
on from here: the clock (``clock``) and loggers (``logs``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextvars import copy_context
from types import coroutine
from typing import Any, Generic, Protocol, TypeVar

import anyio

from pykafka08.clock import clock
from pykafka08.errors import ClientFailedError, ClosedError
from pykafka08.logs import library_logger

__all__ = ["Driver", "Machine", "TaskTree", "Waiter", "Wakeup", "clock", "library_logger"]

T = TypeVar("T")
A = TypeVar("A", covariant=True)

NEVER = float("inf")


class Waiter(Generic[T]):
    """One outcome, set once by a plain call, awaited by any number of tasks.

    A task that is cancelled while it awaits leaves the waiter and the other tasks alone.  All calls belong to the
    event loop's thread.
    """

    __slots__ = ("_callbacks", "_error", "_is_done", "_result", "_sleepers")

    def __init__(self) -> None:
        self._is_done = False
        self._result: T | None = None
        self._error: BaseException | None = None
        # Lists are made when somebody is there for them: most waiters have one task or one callback, and no other.
        self._sleepers: list[Any] | None = None
        self._callbacks: list[Callable[[Waiter[T]], None]] | None = None

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def error(self) -> BaseException | None:
        """The exception it ended with, None while it waits or after a result."""
        return self._error

    def result(self) -> T:
        """The result; raises the exception it ended with.  Only after ``is_done``."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def set_result(self, result: T) -> bool:
        """End it with ``result``; False if it had ended before."""
        if self._is_done:
            return False
        self._result = result
        self._finish()
        return True

    def set_exception(self, error: BaseException) -> bool:
        """End it with ``error``; False if it had ended before."""
        if self._is_done:
            return False
        self._error = error
        self._finish()
        return True

    def add_done_callback(self, callback: Callable[[Waiter[T]], None]) -> None:
        """Call ``callback(self)`` at the end, at once if that was before."""
        if self._is_done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def _finish(self) -> None:
        self._is_done = True
        sleepers, self._sleepers = self._sleepers, None
        for sleeper in sleepers or ():
            _wake(sleeper)
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback(self)

    def __await__(self) -> Generator[Any, None, T]:
        if not self._is_done:
            sleepers = self._sleepers
            if sleepers is None:
                sleepers = self._sleepers = []
            yield from _sleep(sleepers)
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


def _sleep(sleepers: list[Any]) -> Generator[Any, None, None]:
    """Park the current task in ``sleepers`` until :func:`_wake`; leave the list when cancelled."""
    loop = asyncio._get_running_loop()
    if loop is None:
        yield from _sleep_on_trio(sleepers).__await__()
        return
    future = loop.create_future()
    sleepers.append(future)
    try:
        yield from future
    except BaseException:
        if future in sleepers:
            sleepers.remove(future)
        raise


_slept: Callable[[list[Any]], Awaitable[None]] = coroutine(_sleep)  # the same for ``await``


async def _sleep_on_trio(sleepers: list[Any]) -> None:
    import trio

    task = trio.lowlevel.current_task()
    sleepers.append(task)

    def abort(_: object) -> trio.lowlevel.Abort:
        sleepers.remove(task)
        return trio.lowlevel.Abort.SUCCEEDED

    await trio.lowlevel.wait_task_rescheduled(abort)


def _wake(sleeper: Any) -> None:
    if isinstance(sleeper, asyncio.Future):
        if not sleeper.done():
            sleeper.set_result(None)
        return
    import trio

    trio.lowlevel.reschedule(sleeper)


class Wakeup:
    """A flag that one task waits for and anybody sets; setting it twice before it is seen wakes once.

    With ``keeps_timer`` a wait leaves its timer to the next ones, which mostly have a later deadline and need no other;
    who has waited for the last time calls :meth:`close`.
    """

    __slots__ = ("_is_set", "_keeps_timer", "_sleepers", "_timer", "_timer_at", "_until")

    def __init__(self, *, keeps_timer: bool = False) -> None:
        self._is_set = False
        self._sleepers: list[Any] = []
        self._keeps_timer = keeps_timer
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._until = NEVER

    def set(self) -> None:
        self._is_set = True
        if self._sleepers:
            self._wake_all()

    def _wake_all(self) -> None:
        sleepers, self._sleepers = self._sleepers, []
        for sleeper in sleepers:
            _wake(sleeper)

    async def wait(self, until: float | None = None) -> None:
        """Return when set, or at ``until`` (seconds of the event loop's clock); clears the flag."""
        if not self._is_set:
            if until is None or until == NEVER:
                await _slept(self._sleepers)
            elif not self._keeps_timer or asyncio._get_running_loop() is None:
                with anyio.CancelScope(deadline=until):
                    await _slept(self._sleepers)
            else:
                await self._wait_with_timer(until)
        self._is_set = False

    async def _wait_with_timer(self, until: float) -> None:
        self._until = until
        if self._timer is None or until < self._timer_at:
            self._set_timer(until)
        try:
            await _slept(self._sleepers)
        except BaseException:
            self.close()
            raise
        finally:
            self._until = NEVER

    def _set_timer(self, until: float) -> None:
        self.close()
        self._timer = asyncio.get_running_loop().call_at(until, self._timer_due)
        self._timer_at = until

    def _timer_due(self) -> None:
        self._timer = None
        if self._until <= asyncio.get_running_loop().time():
            self._wake_all()
        elif self._until != NEVER:  # it was set for an earlier wait
            self._set_timer(self._until)

    def close(self) -> None:
        """Cancel the timer that a wait has left, if any."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Machine(Protocol[A]):
    """Pure state: no I/O, no clock; time is an argument, in monotonic seconds."""

    def poll(self, now: float) -> Sequence[A]:
        """What is to be done now; each action is handed out once."""

    def next_wakeup(self) -> float | None:
        """When to poll again though nothing happened; None for never."""


class Driver(Generic[A]):
    """Polls a machine and performs its actions until cancelled.

    ``perform`` is a plain function: what must be awaited is started in the client's :class:`TaskTree` or submitted to a
    connection, and comes back as an input of the machine followed by :meth:`wake`.
    """

    def __init__(self, machine: Machine[A], perform: Callable[[A], None]) -> None:
        self._machine = machine
        self._perform = perform
        self._wakeup = Wakeup(keeps_timer=True)

    def wake(self) -> None:
        """Something happened: poll again in this turn of the loop or the next."""
        self._wakeup.set()

    async def run(self) -> None:
        now = clock()
        try:
            while True:
                for action in self._machine.poll(now()):
                    self._perform(action)
                await self._wakeup.wait(self._machine.next_wakeup())
        finally:
            self._wakeup.close()


def _sole_cause(error: Exception) -> Exception:
    """What a task group has wrapped, where it is one exception."""
    inner: Sequence[Exception] = getattr(error, "exceptions", ())
    return _sole_cause(inner[0]) if len(inner) == 1 else error


def _start_task(run: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> object:
    """Run ``run(*args)`` beside the caller's task, owned by the event loop; keep what is returned."""
    loop = asyncio._get_running_loop()
    if loop is not None:
        return loop.create_task(run(*args), name="pykafka08")
    import trio

    return trio.lowlevel.spawn_system_task(run, *args, name="pykafka08", context=copy_context())


class TaskTree:
    """All background tasks of one client: none dies unseen, none outlives :meth:`aclose`.

    A task that ends with an exception marks the tree as failed: :meth:`check` then raises :class:`ClientFailedError`
    with the cause, and each ``on_failure`` callback is called once with that error, to wake whoever waits.
    """

    def __init__(self) -> None:
        self._group: anyio.abc.TaskGroup | None = None
        self._host: object = None
        self._ended: Waiter[None] = Waiter()
        self._failure: ClientFailedError | None = None
        self._on_failure: list[Callable[[ClientFailedError], None]] = []
        self._is_closed = False

    @property
    def failure(self) -> ClientFailedError | None:
        return self._failure

    async def __aenter__(self) -> TaskTree:
        if self._group is not None or self._is_closed:
            raise ClosedError("a client is entered once; make a new one")
        started: Waiter[anyio.abc.TaskGroup] = Waiter()
        with anyio.CancelScope(shield=True):
            self._host = _start_task(self._hold_group, started)
            self._group = await started
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        """Cancel every task and wait for their end; any task may call it."""
        group, self._group, self._is_closed = self._group, None, True
        if group is not None:
            group.cancel_scope.cancel()
        if self._host is not None:
            with anyio.CancelScope(shield=True):
                await self._ended

    async def _hold_group(self, started: Waiter[anyio.abc.TaskGroup]) -> None:
        # In a task of its own: a group that is entered in the caller's task must be left there, in the same scope, and
        # fixtures, start-up hooks and time limits around aclose() would all break that.
        try:
            async with anyio.create_task_group() as group:
                started.set_result(group)
                await anyio.sleep_forever()
        finally:
            self._ended.set_result(None)

    def on_failure(self, callback: Callable[[ClientFailedError], None]) -> None:
        """Call ``callback`` with the failure, at once if it was before."""
        if self._failure is not None:
            callback(self._failure)
        else:
            self._on_failure.append(callback)

    def off_failure(self, callback: Callable[[ClientFailedError], None]) -> None:
        """Undo :meth:`on_failure`."""
        if callback in self._on_failure:
            self._on_failure.remove(callback)

    def start(self, name: str, run: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Run ``run(*args)`` in the background."""
        if self._group is None:
            raise ClosedError("the client is not open")
        self._group.start_soon(self._supervise, name, run, args, name=f"pykafka08: {name}")

    async def _supervise(self, name: str, run: Callable[..., Awaitable[object]], args: tuple[Any, ...]) -> None:
        try:
            await run(*args)
        except Exception as error:  # noqa: BLE001 - the outer edge: kept and raised at the user's next await
            self._fail(name, error)

    def _fail(self, name: str, error: Exception) -> None:
        if self._failure is not None:
            return
        error = _sole_cause(error)
        self._failure = ClientFailedError(f"the client's task {name!r} ended: {error!r}; close this client")
        self._failure.__cause__ = error
        for callback in self._on_failure:
            callback(self._failure)

    def check(self) -> None:
        """Raise if a task has died, or if the client is closed."""
        if self._failure is not None:
            raise self._failure
        if self._group is None:
            raise ClosedError("the client is closed" if self._is_closed else "use the client with 'async with'")
