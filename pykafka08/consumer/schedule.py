"""Which record is handled next, when several are handled at a time, and which are finished.  Pure.

Records of one *lane* are handled one after the other, in their order: a lane is a partition, or a key of it.  Each lane
is in the queue of ready ones, or one of its records is being handled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from enum import Enum

from pykafka08.records.record import Record, TopicPartition

__all__ = ["Order", "Schedule"]


class Order(str, Enum):
    """What is handled one after the other."""

    PARTITION = "partition"
    KEY = "key"


class _Outstanding:
    """The offsets of one partition that are not finished: in order, those that are finished out of turn marked."""

    __slots__ = ("finished", "offsets", "running")

    def __init__(self) -> None:
        self.offsets: deque[int] = deque()
        self.finished: set[int] = set()
        self.running = 0
        """Records that are being handled."""

    def end(self, offset: int) -> None:
        self.finished.add(offset)
        while self.offsets and self.offsets[0] in self.finished:
            self.finished.remove(self.offsets.popleft())


class Schedule:
    """``len()`` is the number of records that wait or are being handled."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._lanes: dict[Hashable, deque[Record]] = {}
        self._ready: deque[Hashable] = deque()
        self._outstanding: dict[TopicPartition, _Outstanding] = {}
        self._running: dict[int, _Outstanding] = {}
        """By the identity of the record: its partition may be forgotten, and come back, before it ends."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def is_running(self) -> bool:
        return bool(self._running)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Those with records that are not finished."""
        return tuple(tp for tp, each in self._outstanding.items() if each.offsets)

    def add(self, record: Record) -> None:
        """Records of a partition come in the order of their offsets."""
        tp = TopicPartition(record.topic, record.partition)
        outstanding = self._outstanding.get(tp)
        if outstanding is None:
            outstanding = self._outstanding[tp] = _Outstanding()
        outstanding.offsets.append(record.offset)
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
            outstanding.running += 1
            self._running[id(record)] = outstanding
            return record
        return None

    def ended(self, record: Record) -> None:
        """``record``, which came from :meth:`next`, was handled to its end."""
        self._left(record).end(record.offset)

    def gave_up(self, record: Record) -> None:
        """``record``, which came from :meth:`next`, was not handled to its end: it stays unfinished."""
        self._left(record)

    def first(self, tp: TopicPartition) -> int | None:
        """The lowest offset that is not finished; all before it is."""
        outstanding = self._outstanding.get(tp)
        return outstanding.offsets[0] if outstanding is not None and outstanding.offsets else None

    def running(self, tp: TopicPartition) -> int:
        """How many records of the partition are being handled."""
        outstanding = self._outstanding.get(tp)
        return 0 if outstanding is None else outstanding.running

    def drop(self, tp: TopicPartition) -> None:
        """Begin none of the partition's waiting records; they stay unfinished."""
        for waiting in self._lanes.values():
            if waiting and (waiting[0].topic, waiting[0].partition) == tp:
                self._size -= len(waiting)
                waiting.clear()

    def forget(self, tp: TopicPartition) -> None:
        """The partition is read elsewhere, or from another offset: what is outstanding counts for nothing."""
        self.drop(tp)
        self._outstanding.pop(tp, None)

    def _lane(self, record: Record) -> Hashable:
        if self._order is Order.PARTITION:
            return record.topic, record.partition
        if record.key is None:
            return record.topic, record.partition, record.offset
        return record.topic, record.partition, record.key

    def _left(self, record: Record) -> _Outstanding:
        """``record`` is handled no more: its lane is ready again."""
        self._size -= 1
        outstanding = self._running.pop(id(record))
        outstanding.running -= 1
        lane = self._lane(record)
        if self._lanes[lane]:
            self._ready.append(lane)
        else:
            del self._lanes[lane]
        return outstanding
