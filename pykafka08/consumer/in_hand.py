"""What the application has in hand: what its last call gave it, until it calls for more, and what is finished.

That is asked of the cursor when somebody wants to know; a record costs nothing for it.  Here too is where reading goes
on, and what happens to what was taken when a partition goes, is sought in, or its log is lost.  ``reader`` waits for
records and takes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable
from operator import length_hint
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import anyio

from pykafka08.consumer.cursor import Cursor
from pykafka08.consumer.handing import HandedOut
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.driver import Waiter
from pykafka08.errors import ConfigError, KafkaError
from pykafka08.records.record import TopicPartition

__all__ = ["InHand", "Rest", "Workload", "wait_for_news"]


class Workload(Protocol):
    """Records that were taken and are being worked on."""

    @property
    def is_running(self) -> bool: ...
    def first(self, tp: TopicPartition) -> int | None: ...
    def runs(self, tp: TopicPartition) -> bool: ...
    def drop(self, tp: TopicPartition) -> None: ...
    def forget(self, tp: TopicPartition) -> None: ...
    def cut(self, tp: TopicPartition, end_offset: int) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class Rest(NamedTuple):
    """What is left of a table that was too long: the last rows of one batch, from ``start`` to ``end - 1``."""

    tp: TopicPartition
    start: int
    end: int
    table: Any


class InHand:
    """The part of the reader that waits for nothing but the application."""

    def __init__(self, machine: ConsumerMachine) -> None:
        self.cursor = Cursor()
        self.is_closed = False
        self._machine = machine
        self._pending: deque[HandedOut] = deque()
        """Batches that were taken out of the machine, and that no call has taken with it yet."""
        self._rest: Rest | None = None
        self._table: Any = None
        """The table in hand."""
        self.stamp = object()
        """Batches that were handed out have it as ``taken_from``."""
        self._tables: WeakValueDictionary[int, Any] = WeakValueDictionary()
        """Those that were handed out, by their identity, as long as somebody has them."""
        self._table_ends: dict[TopicPartition, int] = {}
        """The offset after its last row, of each of its partitions."""
        self._kept_errors: list[KafkaError] = []
        """What stands in the stream behind records that were handed out."""
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
        self._handled_ahead: dict[TopicPartition, Collection[int]] = {}
        """What such a workload that has ended left finished behind what is not."""
        self._acknowledged: dict[TopicPartition, int] = {}
        self._finishing: Waiter[None] | None = None
        """Somebody waits for what is in hand."""

    # Positions

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record; None while it is looked up."""
        if self._rest is not None and self._rest.tp == tp:
            return self._rest.start
        if self.cursor.tp == tp:
            return self.cursor.position
        for each in self._pending:
            if each.tp == tp:
                return each.start
        return self._machine.position(tp)

    def forget(self, tp: TopicPartition) -> None:
        """What was fetched of the partition must not be read, and what is in hand of it counts for nothing."""
        self.held.pop(tp, None)
        self._acknowledged.pop(tp, None)
        self.began_at.pop(tp, None)
        self._table_ends.pop(tp, None)
        self._handled_ahead.pop(tp, None)
        if self.workload is not None:
            self.workload.forget(tp)
        self._forget_fetched(tp)
        self._tell_finished()

    def cut(self, tp: TopicPartition, end_offset: int) -> None:
        """The log ended at ``end_offset``, and others come from there: what was taken before that stays as it is."""
        position = self.position(tp)
        if self.cursor.owner == tp and (last := self.cursor.in_hand) is not None:
            self.held.setdefault(tp, last)
        self._forget_fetched(tp)
        if position is not None and position < end_offset:
            # What was fetched of the old log and is still in it had not been handed out.
            self._machine.assignment.go_back(self._machine.assignment.state(tp), position)
        if self.held.get(tp, -1) >= end_offset:
            del self.held[tp]
        for offsets in (self._acknowledged, self.began_at, self._table_ends):
            if tp in offsets:
                offsets[tp] = min(offsets[tp], end_offset)
        if tp in self._handled_ahead:
            self._handled_ahead[tp] = {each for each in self._handled_ahead[tp] if each < end_offset}
        if self.workload is not None:
            self.workload.cut(tp, end_offset)
        self._tell_finished()

    def _forget_fetched(self, tp: TopicPartition) -> None:
        if self.cursor.owner == tp:
            self.cursor.drop()
        if self._rest is not None and self._rest.tp == tp:
            self._rest = None
        if self._pending:
            self._pending = deque(each for each in self._pending if each.tp != tp)
        if self._kept_errors:
            of_others = [each for each in self._kept_errors if (each.topic, each.partition) != tuple(tp)]
            self._kept_errors = of_others

    def withhold(self, tp: TopicPartition) -> None:
        """What was fetched of the partition must not be read for now; where it is read, and what is in hand, stay."""
        position = self.position(tp)
        if self.cursor.owner == tp and (last := self.cursor.in_hand) is not None:
            self.held.setdefault(tp, last)
        self._forget_fetched(tp)
        if position is not None:
            self._machine.assignment.go_back(self._machine.assignment.state(tp), position)

    def read_again(self, tp: TopicPartition, offset: int, handled: Collection[int]) -> None:
        """Go back to a record that was handed out and is not acknowledged.

        Those that were ``handled`` are known to the next workload.
        """
        if tp in self._machine.assignment.states:
            began_at = self.began_at.get(tp)
            offset = max(offset, self._acknowledged.get(tp, 0))
            self.forget(tp)
            if began_at is not None:
                self.began_at[tp] = began_at  # what comes before the record was handed out all the same
            self._machine.assignment.seek(tp, offset)
            self._handled_ahead[tp] = handled

    def keep_handled(self, tp: TopicPartition, handled: Collection[int]) -> None:
        """These are known to the next workload; none of them has been read again yet."""
        if handled and tp in self._machine.assignment.states:
            self._handled_ahead[tp] = handled

    def take_handled(self) -> dict[TopicPartition, Collection[int]]:
        """What the last workload finished behind records that it did not."""
        handled, self._handled_ahead = self._handled_ahead, {}
        return handled

    # What is finished

    def finish(self) -> None:
        """The application asks for more: what it has in hand is finished."""
        self.calls += 1
        self.cursor.finish()
        self._table = None
        if self.held or self._acknowledged:
            self.held.clear()
            if self.workload is None:  # else it is only reading ahead that asks for more
                self._acknowledged.clear()
            if self._finishing is not None:
                self._tell_finished()

    def acknowledge(self, tp: TopicPartition, offset: int) -> None:
        """All before ``offset`` is finished, though it is in hand; what was not handed out never is."""
        position = self.position(tp)
        offset = 0 if position is None else min(offset, position)
        if offset > self._acknowledged.get(tp, 0):
            self._acknowledged[tp] = offset
            self._tell_finished()

    def acknowledge_table(self, table: object) -> None:
        """All rows of it are finished; an earlier one is so by itself.  ConfigError for any that was not handed out."""
        if self._tables.get(id(table)) is not table:
            raise ConfigError(
                "this consumer did not hand out this table: acknowledge the very object that arrow() gave, no slice or "
                "copy of it, or commit({TopicPartition(topic, partition): offset + 1}) up to a row"
            )
        if table is self._table:
            for tp, offset in list(self._table_ends.items()):
                self.acknowledge(tp, offset)

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
            finishing = self._finishing
            if finishing is None:
                finishing = self._finishing = Waiter()
            if not await wait_for_news(finishing, deadline):
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
        finishing, self._finishing = self._finishing, None
        if finishing is not None:
            finishing.set_result(None)

    def tell(self, error: KafkaError) -> None:
        """Raise it in the next call that reads, before further records."""
        self._kept_errors.append(error)

    def _raise_kept(self) -> None:
        if self._kept_errors and not self._pending:
            raise self._kept_errors.pop(0)


async def wait_for_news(news: Waiter[None], deadline: float | None) -> bool:
    """True when there are news, False at the deadline."""
    if deadline is None:
        await news
        return True
    with anyio.CancelScope(deadline=deadline):
        await news
        return True
    return False
