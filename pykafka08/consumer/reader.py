"""The reading end of a consumer: waits for records, takes them out of the machine, and lets the event loop breathe.

``Consumer`` gives it its public shape.  Nothing here awaits between taking a record and handing it over, so that a
cancelled call loses none.

Here is also what the application has *in hand*: what its last call gave it, until it calls for more.  That is asked of
the cursor when somebody wants to know; a record costs nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from operator import length_hint
from typing import Protocol

import anyio
import anyio.lowlevel

from pykafka08.consumer.cursor import Cursor
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.machine import ConsumerMachine, HandedOut
from pykafka08.driver import Waiter
from pykafka08.errors import ClosedError, ConfigError, CorruptRecordError, KafkaError
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

__all__ = ["Reader", "wait_for_news"]

#: After so many records without a pause the other tasks of the event loop get a turn.
RECORDS_PER_TURN = 2048


class Workload(Protocol):
    """Records that were taken and are being worked on."""

    @property
    def is_running(self) -> bool: ...
    def first(self, tp: TopicPartition) -> int | None: ...
    def runs(self, tp: TopicPartition) -> bool: ...
    def drop(self, tp: TopicPartition) -> None: ...
    def forget(self, tp: TopicPartition) -> None: ...
    def excuse(self) -> None: ...
    def abandon(self) -> None: ...


class Reader:
    """Reads from ``machine``; ``fetcher`` is None before the consumer is entered."""

    def __init__(self, machine: ConsumerMachine) -> None:
        self.fetcher: Fetcher | None = None
        self.cursor = Cursor()
        self.is_closed = False
        self.is_leaving = False
        self._machine = machine
        self._in_hand: HandedOut | None = None
        """A batch that a cancelled call did not take with it."""
        self._kept_error: KafkaError | None = None
        self._records_in_turn = 0
        self.held: dict[TopicPartition, int] = {}
        """The first offset in hand of each partition; of the cursor's the cursor knows better."""
        self.began_at: dict[TopicPartition, int] = {}
        """Where handing out began in each partition, since the application went somewhere in it or committed."""
        self.calls = 0
        """Grows when records are called for, but for those that lie ready in the cursor."""
        self.waiting = 0
        """Calls that wait for records."""
        self._handled = 0
        self.workload: Workload | None = None
        """Records that several handlers share; these count as in hand until they are finished."""
        self._acknowledged: dict[TopicPartition, int] = {}
        self.may_hand_out: Callable[[], bool] = lambda: True
        """Asked before records are handed out; while it says no, news are waited for."""
        self.has_source: Callable[[], bool] = lambda: True
        """Asked before news are waited for: without, they would be waited for without end."""
        self._finishing: Waiter[None] = Waiter()
        self._checks: list[Callable[[], None]] = []

    def open_fetcher(self, *, to_read: bool = True) -> Fetcher:
        """The fetcher, if the consumer is open and well; ClosedError or ClientFailedError if not.

        While it leaves its group nothing is read, but positions are still there.
        """
        if self.is_closed and (to_read or not self.is_leaving):
            raise ClosedError("the consumer is closed")
        if self.fetcher is None:
            raise ClosedError("use the consumer with 'async with'")
        self.fetcher.check()
        for check in self._checks:
            check()
        return self.fetcher

    def on_check(self, check: Callable[[], None]) -> None:
        """Call ``check()`` wherever the consumer is used: what it raises, the application gets."""
        self._checks.append(check)

    def close(self) -> None:
        """End all waiting; positions stay known."""
        self.is_closed = True
        if self.workload is not None:
            self.workload.excuse()
        if (tp := self.cursor.owner) is not None:
            self.withhold(tp)
        self._tell_finished()
        if self.fetcher is not None:
            self.fetcher.stop()

    def end(self) -> None:
        """The consumer has left its group, if it had one: what is still being worked on is cancelled."""
        self.is_leaving = False
        if self.workload is not None:
            self.workload.abandon()

    # Records

    async def load(self, deadline: float | None) -> bool:
        """Have records in the cursor; False if none came before the deadline."""
        self.finish()
        while True:
            fetcher = self.open_fetcher()
            news = fetcher.news
            if not self.may_hand_out():
                if not await self._wait(news, deadline):
                    return False
                continue
            loaded = 0 if length_hint(self.cursor.records) else self._load_nowait()
            await self._take_turn(fetcher, loaded)
            if length_hint(self.cursor.records):
                return True
            if loaded:
                continue  # they were dropped in that turn
            if not news.is_done and not await self._wait(news, deadline):
                return False

    async def _wait(self, news: Waiter[None], deadline: float | None) -> bool:
        if not self.has_source():
            raise ConfigError("nothing to read: give topics, a pattern, or assign()")
        self.waiting += 1
        try:
            return await wait_for_news(news, deadline)
        finally:
            self.waiting -= 1

    async def take(self, most: int, deadline: float | None) -> list[Record]:
        """Up to ``most`` records that are there, else the first that come; empty at the deadline."""
        records: list[Record] = []
        while not records and await self.load(deadline):
            records += self._take_loaded(most)
        try:
            while len(records) < most and self.may_hand_out() and self._load_nowait():
                records += self._take_loaded(most - len(records))
        except KafkaError as error:
            if not records:
                raise
            self._kept_error = error  # for the next call: these records must not be lost
        self._records_in_turn += len(records)
        return records

    def _take_loaded(self, most: int) -> Iterator[Record]:
        tp, position = self.cursor.tp, self.cursor.position
        if tp is not None and position is not None:
            self.held.setdefault(tp, position)
        return islice(self.cursor.records, most)

    def _load_nowait(self) -> int:
        """Have records in the cursor, if there are any: how many."""
        self._raise_kept()
        while True:
            try:
                loaded = self.cursor.load()
            except CorruptRecordError as error:
                self._damage_met(error)
                continue
            if loaded:
                return loaded
            in_hand, self._in_hand = self._in_hand or self._hand_out(), None
            if in_hand is None:
                return 0
            self.cursor.open(in_hand.batch, in_hand.start)

    def _damage_met(self, error: CorruptRecordError) -> None:
        tp, position = self.cursor.tp, self.cursor.position
        assert tp is not None
        assert position is not None
        self.cursor.drop()
        self._machine.records_damaged(tp, position, error, anyio.current_time())

    # Batches

    async def next_batch(self) -> FetchedBatch:
        """The next batch; waits for it without end."""
        self.finish()
        if (tp := self.cursor.tp) is not None:
            # Its records were taken one by one so far, and not all: the rest comes as a batch of its own.
            self._machine.assignment.seek(tp, self.position(tp) or 0)
            self.cursor.drop()
        while True:
            fetcher = self.open_fetcher()
            news = fetcher.news
            if not self.may_hand_out():
                await self._wait(news, None)
                continue
            if self._in_hand is None:
                self._raise_kept()
                self._in_hand = self._hand_out()
                await self._take_turn(fetcher, len(self._in_hand.batch) if self._in_hand is not None else 0)
            if self._in_hand is not None:
                in_hand, self._in_hand = self._in_hand, None
                self.held[in_hand.tp] = in_hand.start
                return in_hand.batch
            if not news.is_done:
                await self._wait(news, None)

    def _hand_out(self) -> HandedOut | None:
        try:
            handed_out = self._machine.next_batch(anyio.current_time())
        except KafkaError:
            if self.fetcher is not None:
                self.fetcher.pump()  # the other partitions go on
            raise
        if handed_out is not None and handed_out.tp not in self.began_at:
            self.began_at[handed_out.tp] = handed_out.start
        return handed_out

    async def _take_turn(self, fetcher: Fetcher, records: int) -> None:
        """Let fetches out, and other tasks run, before ``records`` are worked on."""
        is_sent = self._machine.assignment.is_dirty and fetcher.pump()
        self._records_in_turn += records
        if is_sent or self._records_in_turn >= RECORDS_PER_TURN:
            self._records_in_turn = 0
            await anyio.lowlevel.checkpoint()

    # Positions

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record; None while it is looked up."""
        if self._in_hand is not None and self._in_hand.tp == tp:
            return self._in_hand.start
        return self.cursor.position if self.cursor.tp == tp else self._machine.position(tp)

    def forget(self, tp: TopicPartition) -> None:
        """What was fetched of the partition must not be read, and what is in hand of it counts for nothing."""
        self.held.pop(tp, None)
        self._acknowledged.pop(tp, None)
        self.began_at.pop(tp, None)
        if self.workload is not None:
            self.workload.forget(tp)
        self._forget_fetched(tp)

    def _forget_fetched(self, tp: TopicPartition) -> None:
        if self.cursor.owner == tp:
            self.cursor.drop()
        if self._in_hand is not None and self._in_hand.tp == tp:
            self._in_hand = None
        error = self._kept_error
        if error is not None and (error.topic, error.partition) == tuple(tp):
            self._kept_error = None

    def withhold(self, tp: TopicPartition) -> None:
        """What was fetched of the partition must not be read for now; where it is read, and what is in hand, stay."""
        position = self.position(tp)
        if self.cursor.owner == tp and (last := self.cursor.in_hand) is not None:
            self.held.setdefault(tp, last)
        self._forget_fetched(tp)
        if position is not None:
            self._machine.assignment.go_back(self._machine.assignment.state(tp), position)

    def read_again(self, tp: TopicPartition, offset: int) -> None:
        """Go back to a record that was handed out."""
        if tp in self._machine.assignment.states:
            began_at = self.began_at.get(tp)
            self.forget(tp)
            if began_at is not None:
                self.began_at[tp] = began_at  # what comes before the record was handed out all the same
            self._machine.assignment.seek(tp, offset)

    # What is finished

    def finish(self) -> None:
        """The application asks for more: what it has in hand is finished."""
        self.calls += 1
        self.cursor.finish()
        if self.held or self._acknowledged:
            self.held.clear()
            if self.workload is None:  # else it is only reading ahead that asks for more
                self._acknowledged.clear()
            self._tell_finished()

    def acknowledge(self, tp: TopicPartition, offset: int) -> None:
        """All before ``offset`` is finished, though it is in hand."""
        if offset > self._acknowledged.get(tp, 0):
            self._acknowledged[tp] = offset
            self._tell_finished()

    def finished(self, tp: TopicPartition) -> int | None:
        """The offset before which every record of the partition is finished; None while it has no position."""
        position, first = self.position(tp), self._first_in_hand(tp)
        if position is None or first is None:
            return position
        return min(position, max(first, self._acknowledged.get(tp, 0)))

    async def wait_finished(self, partitions: Iterable[TopicPartition], deadline: float) -> None:
        """Until nothing of these partitions is in hand, or the deadline.

        Of a consumer that is closed only handlers are waited for: nothing else calls for more.
        """
        wanted = set(partitions)
        while any(self._is_in_hand(tp) for tp in wanted & self._machine.assignment.states.keys()):
            self._finishing = Waiter() if self._finishing.is_done else self._finishing
            if not await wait_for_news(self._finishing, deadline):
                return

    def progress(self) -> tuple[Hashable, bool]:
        """What differs whenever the application has asked for more, and whether it waits for it now.

        While handlers run what is read ahead of them says nothing: their ends do.
        """
        if self.workload is not None and self.workload.is_running:
            return ("handled", self._handled), False
        return (self.calls, length_hint(self.cursor.records)), self.waiting > 0

    def work_done(self) -> None:
        """A handler has finished a record."""
        self.calls += 1
        self._handled += 1
        self._tell_finished()

    def _is_in_hand(self, tp: TopicPartition) -> bool:
        if self.workload is not None:
            return self.workload.runs(tp)
        return not self.is_closed and self.finished(tp) != self.position(tp)

    def _first_in_hand(self, tp: TopicPartition) -> int | None:
        first = self.workload.first(tp) if self.workload is not None else None
        if (held := self.held.get(tp)) is not None:
            first = held if first is None else min(first, held)
        if self.cursor.owner == tp and (last := self.cursor.in_hand) is not None:
            first = last if first is None else min(first, last)
        return first

    def _tell_finished(self) -> None:
        self._finishing.set_result(None)

    def _raise_kept(self) -> None:
        error, self._kept_error = self._kept_error, None
        if error is not None:
            raise error


async def wait_for_news(news: Waiter[None], deadline: float | None) -> bool:
    """True when there are news, False at the deadline."""
    if deadline is None:
        await news
        return True
    with anyio.CancelScope(deadline=deadline):
        await news
        return True
    return False
