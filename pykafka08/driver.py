"""The loop around a machine, and what every driver needs beside it.

A *machine* decides and never waits; its *driver* performs the actions.  All drivers share the loop here:
poll, perform, wait for input or wake-up.  Waiter and wake-up (``waiter``), the tree of a client's tasks
(``task_tree``), the clock (``clock``) and the loggers (``logs``) are passed on from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from pykafka08.clock import clock, current_time
from pykafka08.logs import LibraryLogger, library_logger
from pykafka08.task_tree import TaskScope, TaskTree, current_task
from pykafka08.waiter import Waiter, Wakeup

__all__ = [
    "Driver",
    "LibraryLogger",
    "Machine",
    "TaskScope",
    "TaskTree",
    "Waiter",
    "Wakeup",
    "clock",
    "current_task",
    "current_time",
    "library_logger",
]

A = TypeVar("A", covariant=True)


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
