"""Which record is handled next, when several are handled at a time, and which are finished.  Pure.

Records of one *lane* are handled one after the other, in their order: a lane is a partition, or a key of it.  Each lane
is in the queue of ready ones, or one of its records is being handled.

With a lane for each key records are finished out of turn.  Who reads on at the first one that is not finished would
handle those behind it again.  So a partition that goes is handled up to the last record that was begun, and a schedule
that takes the place of another leaves out what was finished there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable
from enum import Enum

from pykafka08.records.record import Record, TopicPartition

__all__ = ["Order", "Schedule"]


class Order(str, Enum):
    """What is handled one after the other."""

    PARTITION = "partition"
    KEY = "key"


class _Outstanding:
    """The offsets of one partition that are not finished: in order, those that are finished out of turn marked."""

    __slots__ = ("begun_to", "finished", "offsets", "running", "waiting")

    def __init__(self) -> None:
        self.offsets: deque[int] = deque()
        self.finished: set[int] = set()
        self.running: dict[int, Record] = {}
        """Records that are being handled, by identity."""
        self.waiting = 0
        """Records that are to be handled."""
        self.begun_to = -1
        """The last record that was begun."""

    def end(self, offset: int) -> None:
        self.finished.add(offset)
        while self.offsets and self.offsets[0] in self.finished:
            self.finished.remove(self.offsets.popleft())

    def cut(self, end_offset: int) -> None:
        """Forget what lies at ``end_offset`` or behind it; nothing there waits any more."""
        self.offsets = deque(offset for offset in self.offsets if offset < end_offset)
        self.finished = {offset for offset in self.finished if offset < end_offset}
        self.running = {key: record for key, record in self.running.items() if record.offset < end_offset}
        self.begun_to = min(self.begun_to, end_offset - 1)


class Schedule:
    """``len()`` is the number of records that wait or are being handled."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._lanes: dict[Hashable, deque[Record]] = {}
        self._ready: deque[Hashable] = deque()
        self._outstanding: dict[TopicPartition, _Outstanding] = {}
        self._running: dict[int, _Outstanding] = {}
        """By the identity of the record: its partition may be forgotten, and come back, before it ends."""
        self._done: dict[TopicPartition, set[int]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def span(self) -> int:
        """How many records there are from the first unfinished one of each partition on, the finished ones too."""
        return sum(len(each.offsets) for each in self._outstanding.values())

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Those with records that are not finished."""
        return tuple(tp for tp, each in self._outstanding.items() if each.offsets)

    def leave_out(self, tp: TopicPartition, offsets: Collection[int]) -> None:
        """Records that will be added, but were handled before."""
        self._done[tp] = set(offsets)

    def add(self, record: Record) -> None:
        """Records of a partition come in the order of their offsets."""
        tp = TopicPartition(record.topic, record.partition)
        outstanding = self._outstanding.get(tp)
        if outstanding is None:
            outstanding = self._outstanding[tp] = _Outstanding()
        outstanding.offsets.append(record.offset)
        if self._done and record.offset in (done := self._done.get(tp, set())):
            done.remove(record.offset)
            outstanding.begun_to = max(outstanding.begun_to, record.offset)
            outstanding.end(record.offset)
            return
        outstanding.waiting += 1
        self._size += 1
        lane = self._lane(record)
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = deque((record,))
            self._ready.append(lane)
        else:
            waiting.append(record)

    def next(self) -> Record | None:
        """The record to be handled now; None if there is none, or each is behind one that is being handled."""
        while self._ready:
            waiting = self._lanes[lane := self._ready.popleft()]
            if not waiting:
                del self._lanes[lane]
                continue
            record = waiting.popleft()
            outstanding = self._outstanding[TopicPartition(record.topic, record.partition)]
            outstanding.waiting -= 1
            outstanding.running[id(record)] = record
            outstanding.begun_to = max(outstanding.begun_to, record.offset)
            self._running[id(record)] = outstanding
            return record
        return None

    def ended(self, record: Record) -> None:
        """``record``, which came from :meth:`next`, was handled to its end."""
        outstanding = self._left(record)
        if outstanding.running.pop(id(record), None) is not None:  # else its place in the log is lost
            outstanding.end(record.offset)

    def gave_up(self, record: Record) -> None:
        """``record``, which came from :meth:`next`, was not handled to its end: it stays unfinished."""
        self._left(record).running.pop(id(record), None)

    def first(self, tp: TopicPartition) -> int | None:
        """The lowest offset that is not finished; all before it is."""
        outstanding = self._outstanding.get(tp)
        return outstanding.offsets[0] if outstanding is not None and outstanding.offsets else None

    def left_out(self) -> dict[TopicPartition, frozenset[int]]:
        """What :meth:`leave_out` named and was not added."""
        return {tp: frozenset(offsets) for tp, offsets in self._done.items()}

    def finished_out_of_turn(self, tp: TopicPartition) -> frozenset[int]:
        """What is finished behind the first offset that is not."""
        outstanding = self._outstanding.get(tp)
        finished = frozenset() if outstanding is None else frozenset(outstanding.finished)
        return finished.union(self._done.get(tp, ()))

    def under_way(self, tp: TopicPartition) -> int:
        """How many records of the partition are being handled, or are to be."""
        outstanding = self._outstanding.get(tp)
        return 0 if outstanding is None else len(outstanding.running) + outstanding.waiting

    def drop(self, tp: TopicPartition, *, drains: bool = True) -> None:
        """Begin no more of the partition's records; they stay unfinished.

        ``drains``: but for those before the last one that was begun.
        """
        outstanding = self._outstanding.get(tp)
        if outstanding is not None:
            self._drop_from(tp, outstanding, outstanding.begun_to + 1 if drains else 0)

    def forget(self, tp: TopicPartition) -> None:
        """The partition is read elsewhere, or from another offset: what is outstanding counts for nothing."""
        self.cut(tp, 0)

    def cut(self, tp: TopicPartition, end_offset: int) -> None:
        """The log ends at ``end_offset``, where others will follow: of what was behind that nothing counts any more."""
        if tp in self._done:
            self._done[tp] = {offset for offset in self._done[tp] if offset < end_offset}
        outstanding = self._outstanding.get(tp)
        if outstanding is not None:
            self._drop_from(tp, outstanding, end_offset)
            outstanding.cut(end_offset)

    def _drop_from(self, tp: TopicPartition, outstanding: _Outstanding, offset: int) -> None:
        for waiting in self._lanes.values():
            while waiting and waiting[-1].offset >= offset and (waiting[-1].topic, waiting[-1].partition) == tp:
                waiting.pop()
                outstanding.waiting -= 1
                self._size -= 1

    def _lane(self, record: Record) -> Hashable:
        if self._order is Order.PARTITION:
            return record.topic, record.partition
        if record.key is None:
            return record.topic, record.partition, record.offset
        return record.topic, record.partition, record.key

    def _left(self, record: Record) -> _Outstanding:
        """``record`` is handled no more: its lane is ready again."""
        self._size -= 1
        lane = self._lane(record)
        if self._lanes[lane]:
            self._ready.append(lane)
        else:
            del self._lanes[lane]
        return self._running.pop(id(record))
