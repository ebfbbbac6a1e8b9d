"""The reading end of a consumer: waits for records, takes them out of the machine, and lets the event loop breathe.

``Consumer`` gives it its public shape.  Nothing here awaits between taking a record and handing it over, so that a
cancelled call loses none.  What the application then has in hand is ``in_hand``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from operator import length_hint
from typing import Any

import anyio
import anyio.lowlevel

from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.handing import HandedOut
from pykafka08.consumer.in_hand import InHand, Rest, wait_for_news
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.tables import TablePlan
from pykafka08.driver import Waiter, current_time
from pykafka08.errors import ClosedError, ConcurrentReadError, ConfigError, CorruptRecordError, KafkaError
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

__all__ = ["Reader"]

#: After so many records without a pause the other tasks of the event loop get a turn.
RECORDS_PER_TURN = 2048


class Reader(InHand):
    """Reads from ``machine``; ``fetcher`` is None before the consumer is entered.  One call at a time."""

    def __init__(self, machine: ConsumerMachine) -> None:
        super().__init__(machine)
        self.fetcher: Fetcher | None = None
        self.is_leaving = False
        self.is_reading = False
        """A call waits for records, or a turn of the event loop, to hand them out."""
        self._records_in_turn = 0
        self.may_hand_out: Callable[[], bool] = lambda: True
        """Asked before records are handed out; while it says no, news are waited for."""
        self.has_source: Callable[[], bool] = lambda: True
        """Asked before news are waited for: without, they would be waited for without end."""
        self._checks: list[Callable[[], None]] = []

    def open_fetcher(self, *, to_read: bool = True) -> Fetcher:
        """The fetcher, if the consumer is open and well; ClosedError or ClientFailedError if not.

        While it leaves its group nothing is read, but positions are still there.
        """
        if to_read or not self.is_leaving:
            self.check_open()
        if self.fetcher is None:
            raise ClosedError("use the consumer with 'async with'")
        self.fetcher.check()
        for check in self._checks:
            check()
        return self.fetcher

    def check_affinity(self) -> None:
        """WrongEventLoopError in another thread, event loop or process than the consumer was opened in."""
        if self.fetcher is not None:
            self.fetcher.check_affinity()

    def check_open(self) -> None:
        """ClosedError if it is closed: a loop ends where that happens, but none begins after it."""
        if self.is_closed:
            raise ClosedError("the consumer is closed")

    def on_check(self, check: Callable[[], None]) -> None:
        """Call ``check()`` wherever the consumer is used: what it raises, the application gets."""
        self._checks.append(check)

    def close(self) -> None:
        """End all waiting; positions stay known."""
        self.is_closed = True
        if self.workload is not None:
            self.workload.close()
        rest = () if self._rest is None else (self._rest.tp,)
        for tp in {*rest, *(each.tp for each in self._pending)}:
            self.withhold(tp)
        if self.cursor.owner is not None:
            self.withhold(self.cursor.owner)
        self._tell_finished()
        if self.fetcher is not None:
            self.fetcher.stop()

    def end(self) -> None:
        """The consumer has left its group, if it had one: what is still being worked on is cancelled."""
        self.is_leaving = False
        if self.workload is not None:
            self.workload.abandon()

    # Records

    def check_alone(self) -> None:
        """ConcurrentReadError if another task is being given records: which of them would get which?"""
        if self.is_reading or self.workload is not None:
            who = "process() runs" if self.workload is not None else "a call that waits for records is under way"
            raise ConcurrentReadError(
                f"{who} in this consumer, and one task at a time reads: let it pass records on, use process() with "
                f"concurrency, or one consumer for each task"
            )

    async def load(self, deadline: float | None) -> bool:
        """Have records in the cursor; False if none came before the deadline."""
        self.finish()
        self._put_back_rest()
        self.is_reading = True
        try:
            return await self._load(deadline)
        finally:
            self.is_reading = False

    async def next_record(self) -> Record:
        """The next record, waited for without end; StopAsyncIteration when the consumer is closed."""
        self.check_alone()
        try:
            while await self.load(None):
                for record in self.cursor.records:
                    return record
        except ClosedError:
            if not self.is_closed:
                raise
        raise StopAsyncIteration

    async def _load(self, deadline: float | None) -> bool:
        while True:
            fetcher = self.open_fetcher()
            news = fetcher.news
            if not self.may_hand_out():
                if not await self._wait(news, deadline):
                    return False
                continue
            loaded = 0 if length_hint(self.cursor.records) else self._load_nowait()
            await self._take_turn(fetcher, loaded)
            if length_hint(self.cursor.records) and self.may_hand_out():
                return True
            if loaded:
                continue  # they were dropped in that turn, or the session ended
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
            self._kept_errors.append(error)  # for the next call: these records must not be lost
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
            in_hand = self._pending.popleft() if self._pending else self._hand_out()
            if in_hand is None:
                return 0
            self.cursor.open(in_hand.batch, in_hand.start)

    def _damage_met(self, error: CorruptRecordError) -> None:
        tp, position = self.cursor.tp, self.cursor.position
        assert tp is not None
        assert position is not None
        self.cursor.drop()
        self._machine.records_damaged(tp, position, error, current_time())

    def _put_back_rest(self) -> None:
        """Rows of a table that are left come as records, or as a batch of their own."""
        if self._rest is not None:
            self.withhold(self._rest.tp)

    # Batches

    def next_batch_nowait(self) -> FetchedBatch | None:
        """The next batch, None if it takes :meth:`next_batch` to wait for it, or for a turn of the event loop."""
        self.finish()
        if self._pending or self._kept_errors or self._rest is not None or self.cursor.tp is not None:
            return None
        fetcher = self.open_fetcher()
        if not self.may_hand_out():
            return None
        handed_out = self._hand_out()
        if handed_out is None:
            return None
        if self._is_turn_due(fetcher, len(handed_out.batch)):
            self._pending.append(handed_out)
            return None
        return self._batch_of(handed_out)

    async def next_batch(self) -> FetchedBatch:
        """The next batch; waits for it without end."""
        self.finish()
        self._put_back_rest()
        if (tp := self.cursor.tp) is not None:
            # Its records were taken one by one so far, and not all: the rest comes as a batch of its own.
            self.withhold(tp)
        self.is_reading = True
        try:
            return await self._next_batch()
        finally:
            self.is_reading = False

    async def _next_batch(self) -> FetchedBatch:
        while True:
            fetcher = self.open_fetcher()
            news = fetcher.news
            if not self.may_hand_out():
                await self._wait(news, None)
                continue
            if not self._pending:
                self._raise_kept()
                handed_out = self._hand_out()
                if handed_out is not None:
                    self._pending.append(handed_out)
            await self._take_turn(fetcher, len(self._pending[0].batch) if self._pending else 0)
            if not self.may_hand_out():
                continue
            if self._pending:
                return self._batch_of(self._pending.popleft())
            if not news.is_done:
                await self._wait(news, None)

    def _batch_of(self, handed_out: HandedOut) -> FetchedBatch:
        tp, batch, start = handed_out
        self.held[tp] = start
        batch.taken_from = self.stamp
        return batch

    # Tables

    async def next_table(self, plan: TablePlan) -> Any:
        """The next table; waits for it without end.  What is left of a longer one comes next."""
        self.finish()
        if (tp := self.cursor.tp) is not None:
            self.withhold(tp)
        self.is_reading = True
        try:
            while True:
                fetcher = self.open_fetcher()
                news = fetcher.news
                if not self.may_hand_out():
                    await self._wait(news, None)
                    continue
                await self._take_turn(fetcher, 0 if self._rest is not None else self._gather(plan))
                if not self.may_hand_out():
                    continue
                table = self._make_table(plan)
                if table is not None:
                    return table
                if not news.is_done and not self._machine.assignment.is_dirty:
                    await self._wait(news, None)
        finally:
            self.is_reading = False

    def _gather(self, plan: TablePlan) -> int:
        """Have the batches of a table in ``_pending``, as far as they are there: how many records these have."""
        self._raise_kept()
        pending, count = self._pending, plan.count()
        for each in pending:
            count.add(each)
        while not self._kept_errors and not count.is_full:
            try:
                handed_out = self._hand_out()
            except KafkaError as error:
                if not pending:
                    raise
                self._kept_errors.append(error)  # the rows before it come first
                break
            if handed_out is None:
                break
            pending.append(handed_out)
            count.add(handed_out)
        return count.rows

    def _make_table(self, plan: TablePlan) -> Any:
        """A table of what lies ready, None if nothing does, or if it is damaged and fetched once more.

        Whatever is raised on the way, the rows are still pending, or the rest.
        """
        if self._rest is None:
            pieces = plan.take(self._pending)
            try:
                table, whole, error = plan.make(pieces)
            except BaseException:
                self._pending.extendleft(reversed(pieces))
                raise
            spans = [(each.tp, each.start, each.batch.next_offset) for each in pieces[:whole]]
            if error is not None:
                damaged, left = pieces[whole], pieces[whole + 1 :]
                if error.offset is not None and error.offset > damaged.start:
                    # The rows before the damaged one come with this table, it and the others once more.
                    spans.append((damaged.tp, damaged.start, error.offset))
                    damaged = damaged._replace(start=error.offset)
                self._pending.extendleft(reversed([damaged, *left]))
                self._piece_damaged(error, is_told_now=table is None)
            if table is None:
                return None
            starts: dict[TopicPartition, int] = {}
            for tp, start, _ in spans:
                starts.setdefault(tp, start)
            ends = {tp: end for tp, _, end in spans}
            tp = spans[-1][0]
        else:
            tp, start, end, table = self._rest
            starts, ends = {tp: start}, {tp: end}
        rest: Rest | None = None
        if len(table) > plan.max_rows:
            table, left, start = plan.cut(table)
            rest = Rest(tp, start, ends[tp], left)
            ends[tp] = start
        self._rest = rest
        for tp, start in starts.items():
            self.held.setdefault(tp, start)
        self._table, self._table_ends = table, ends
        self._tables[id(table)] = table
        return table

    def _piece_damaged(self, error: CorruptRecordError, *, is_told_now: bool) -> None:
        """The first batch that is pending is no records: fetch it once more, or tell."""
        damaged = self._pending[0]
        self._forget_fetched(damaged.tp)
        try:
            self._machine.records_damaged(damaged.tp, damaged.start, error, current_time())
        except CorruptRecordError:
            if is_told_now:
                raise
            self._kept_errors.insert(0, error)

    def _hand_out(self) -> HandedOut | None:
        fetcher = self.fetcher
        try:
            handed_out = self._machine.next_batch(fetcher.now() if fetcher is not None else current_time())
        except KafkaError:
            if fetcher is not None:
                fetcher.pump()  # the other partitions go on
            raise
        if handed_out is not None and handed_out.tp not in self.began_at:
            self.began_at[handed_out.tp] = handed_out.start
        return handed_out

    async def _take_turn(self, fetcher: Fetcher, records: int) -> None:
        """Let fetches out, and other tasks run, before ``records`` are worked on."""
        if self._is_turn_due(fetcher, records):
            self._records_in_turn = 0
            await anyio.lowlevel.checkpoint()

    def _is_turn_due(self, fetcher: Fetcher, records: int) -> bool:
        is_sent = self._machine.assignment.is_dirty and not fetcher.lets_reader_first() and fetcher.pump()
        self._records_in_turn += records
        if is_sent:
            self._records_in_turn = RECORDS_PER_TURN
        return self._records_in_turn >= RECORDS_PER_TURN
