"""``Consumer.process``: a handler is called for each record, several at a time, in the order of a partition or a key.

Which record comes next, and what is finished, is ``schedule``'s.  Here are the tasks: one that reads and, for each
handler that may run at a time, one that calls it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable

import anyio

from pykafka08.consumer.reader import Reader
from pykafka08.consumer.schedule import Order, Schedule
from pykafka08.driver import TaskScope, Waiter, current_task
from pykafka08.errors import ClientFailedError, ClosedError, ConfigError
from pykafka08.records.record import Record, TopicPartition

__all__ = ["Handler", "Processing", "schedule_of"]

Handler = Callable[[Record], Awaitable[object]]

AHEAD = 16
"""Records read ahead for each handler that may run: keys that are not held up are found among them."""

FINISHED_AHEAD = 10_000
"""Records that may be finished behind ones that are not: a handler that hangs holds up the others then."""


def schedule_of(concurrency: int, order: str) -> Schedule:
    """ConfigError if the two mean nothing."""
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise ConfigError(f"concurrency={concurrency!r} is not a number of handlers")
    try:
        return Schedule(Order(order))
    except ValueError:
        raise ConfigError(f"order={order!r} is not 'key' or 'partition'") from None


def _check_handler(handler: object) -> None:
    """ConfigError unless it is called with ``await``: found out later, one record would have been handled."""
    function = handler
    while isinstance(function, functools.partial):
        function = function.func
    calls = [inspect.unwrap(each) for each in (function, type(function).__call__) if callable(each)]
    if not any(map(inspect.iscoroutinefunction, calls)):
        raise ConfigError(f"handler={handler!r:.100} is no coroutine function ('async def')")


class _Worker:
    """One of the tasks that call the handler."""

    def __init__(self) -> None:
        self.task = current_task()
        self.scope = TaskScope()
        self.record: Record | None = None


class Processing:
    """One call of ``process``; tells the reader what is being worked on."""

    def __init__(self, reader: Reader, schedule: Schedule, handler: Handler, concurrency: int) -> None:
        _check_handler(handler)
        self._reader = reader
        self._schedule = schedule
        self._handler = handler
        self._concurrency = concurrency
        self._most = concurrency * AHEAD
        self._work: Waiter[None] = Waiter()
        self._room: Waiter[None] = Waiter()
        self._error: Exception | None = None
        self._cancellation: BaseException | None = None
        """With which a handler ended; if nobody cancelled the whole, the handler itself has brought it."""
        self._workers: list[_Worker] = []
        self._excused: list[_Worker] = []
        """Their handlers close the consumer."""
        self._is_over = False

    async def run(self) -> None:
        """Until the consumer is closed; raises what a handler or reading does.

        Whatever ends it, reading goes on at each partition's first record that is not finished; of those behind it the
        next call leaves out what was.
        """
        self._reader.workload = self
        for tp, offsets in self._reader.take_handled().items():
            self._schedule.leave_out(tp, offsets)
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(self._concurrency):
                    tasks.start_soon(self._handle, tasks.cancel_scope)
                try:
                    await self._feed()
                except Exception as error:  # noqa: BLE001 - raised below: out of here it would come in a group
                    self._error = self._error or error
                self._end(tasks.cancel_scope)
        finally:
            self._reader.workload = None
            self._go_back()
        if self._error is not None:
            raise self._error
        if self._cancellation is not None and not self._reader.is_closed:
            raise ClientFailedError("a handler was cancelled from within: what it awaited was") from self._cancellation

    async def _feed(self) -> None:
        try:
            while True:
                while (places := self._places()) <= 0:
                    self._room = Waiter()
                    await self._room
                for record in await self._reader.take(places, None):
                    self._schedule.add(record)
                self._reader.finish()  # the schedule knows better
                work, self._work = self._work, Waiter()
                work.set_result(None)
        except ClosedError:
            if not self._reader.is_closed:
                raise
        while len(self._schedule):
            self._room = Waiter()
            await self._room

    def _places(self) -> int:
        """How many records may be read now."""
        schedule = self._schedule
        return self._most - max(len(schedule), schedule.span - FINISHED_AHEAD)

    async def _handle(self, scope: anyio.CancelScope) -> None:
        worker = _Worker()
        self._workers.append(worker)
        with worker.scope.entered():
            await self._handle_all(worker, scope)

    async def _handle_all(self, worker: _Worker, scope: anyio.CancelScope) -> None:
        while True:
            work = self._work
            worker.record = record = None if self._is_over else self._schedule.next()
            if record is None:
                await work
                continue
            try:
                await self._handler(record)
            except Exception as error:  # noqa: BLE001 - the application's, and raised there
                self._schedule.gave_up(record)
                self._error = self._error or error
                self._end(scope)
                return
            except BaseException as cancellation:
                self._cancellation = cancellation
                # Those behind it in its lane are not to overtake it.
                self._is_over = True
                self._schedule.gave_up(record)
                self._room.set_result(None)
                raise
            self._schedule.ended(record)
            self._reader.work_done()
            self._room.set_result(None)

    def _end(self, scope: anyio.CancelScope) -> None:
        """Begin nothing more, at once: a cancellation comes only where a task waits."""
        self._is_over = True
        scope.cancel()

    # What the reader asks

    @property
    def is_running(self) -> bool:
        return self._schedule.is_running

    def first(self, tp: TopicPartition) -> int | None:
        return self._schedule.first(tp)

    def runs(self, tp: TopicPartition) -> bool:
        """True if a record of the partition is to be waited for."""
        return self._schedule.under_way(tp) > self._excused_in(tp)

    def drop(self, tp: TopicPartition) -> None:
        """Begin no more of its records, but for those without which what is finished behind them counts for nothing."""
        self._schedule.drop(tp, drains=not self._excused_in(tp))
        self._room.set_result(None)

    def cut(self, tp: TopicPartition, end_offset: int) -> None:
        self._schedule.cut(tp, end_offset)
        self._room.set_result(None)

    def forget(self, tp: TopicPartition) -> None:
        self._schedule.forget(tp)
        self._room.set_result(None)

    def close(self) -> None:
        """The consumer is closed: begin nothing more.

        If a handler calls this, nobody waits for it: it waits itself for what waits for handlers.
        """
        task = current_task()
        self._excused += [each for each in self._workers if each.task is task and each not in self._excused]
        for tp in self._schedule.partitions():
            self.drop(tp)

    def abandon(self) -> None:
        """Cancel the handlers, but for those that are excused: they go on to their end."""
        for each in self._workers:
            if each not in self._excused:
                each.scope.cancel()
        for tp in self._schedule.partitions():
            self._schedule.drop(tp, drains=False)

    def _excused_in(self, tp: TopicPartition) -> int:
        """Records of the partition whose handlers are not waited for."""
        records = [each.record for each in self._excused if each.record is not None]
        return sum((record.topic, record.partition) == tp for record in records)

    def _go_back(self) -> None:
        for tp, offsets in self._schedule.left_out().items():
            self._reader.keep_handled(tp, offsets)
        for tp in self._schedule.partitions():
            first = self._schedule.first(tp)
            if first is not None:
                self._reader.read_again(tp, first, self._schedule.finished_out_of_turn(tp))
