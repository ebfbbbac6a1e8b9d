"""The one-shot :class:`Waiter` and the :class:`Wakeup` flag, on asyncio and trio.

Neither needs a task, an event or, without a deadline, a cancel scope.  Both can be set outside any task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from types import coroutine
from typing import Any, Generic, TypeVar

import anyio

__all__ = ["NEVER", "Waiter", "Wakeup"]

T = TypeVar("T")

NEVER = float("inf")


class Waiter(Generic[T]):
    """One outcome, set once and awaited by any number of tasks.

    Cancelling a task that awaits it does not affect the waiter or the other tasks.  All calls belong to the
    event loop's thread.
    """

    __slots__ = ("_callbacks", "_error", "_is_done", "_result", "_sleepers")

    def __init__(self) -> None:
        self._is_done = False
        self._result: T | None = None
        self._error: BaseException | None = None
        # Lists are created on first use: most waiters have one task or one callback.
        self._sleepers: list[Any] | None = None
        self._callbacks: list[Callable[[Waiter[T]], None]] | None = None

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def error(self) -> BaseException | None:
        """The exception; None before the outcome or after a result."""
        return self._error

    def result(self) -> T:
        """The result; raises the exception if that is the outcome.  Only if ``is_done``."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def set_result(self, result: T) -> bool:
        """Set the result; False if there was an outcome already."""
        if self._is_done:
            return False
        self._result = result
        self._finish()
        return True

    def set_exception(self, error: BaseException) -> bool:
        """Set the exception; False if there was an outcome already."""
        if self._is_done:
            return False
        self._error = error
        self._finish()
        return True

    def add_done_callback(self, callback: Callable[[Waiter[T]], None]) -> None:
        """Call ``callback(self)`` when the outcome is set, at once if it is set already."""
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
    """A flag for which one task waits; setting it twice before the task runs wakes the task once.

    With ``keeps_timer`` later waits reuse the timer, since they mostly have a later deadline; call :meth:`close` after
    the last wait.
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
