"""Where one record after the other is taken from: the batch that is being read, 256 records at a time.

Reading costs nothing per record but the step of a list iterator: how far it has come is asked of the iterator itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from operator import length_hint

from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

__all__ = ["Cursor", "Records"]


class Cursor:
    """``records`` is an iterator over some records of one batch; :meth:`load` replaces it with one over the next."""

    __slots__ = ("_batch", "_chunk", "_chunks", "_finished", "_left", "_start", "records")

    def __init__(self) -> None:
        self._batch: FetchedBatch | None = None
        self._chunks: Iterator[list[Record]] = iter(())
        self._chunk: list[Record] = []
        self._left = 0
        self._finished = 0
        self._start = 0
        self.records: Iterator[Record] = iter(self._chunk)

    @property
    def tp(self) -> TopicPartition | None:
        """The partition whose records are not all taken yet; None when all are."""
        if self._batch is None or self.position is None:
            return None
        return TopicPartition(self._batch.topic, self._batch.partition)

    @property
    def position(self) -> int | None:
        """The offset of the next record in the batch; None when all are taken."""
        left_of_chunk = length_hint(self.records)
        if left_of_chunk:
            return self._chunk[-left_of_chunk].offset
        if not self._left or self._batch is None:
            return None
        return self._chunk[-1].offset + 1 if self._chunk else self._start

    @property
    def owner(self) -> TopicPartition | None:
        """The partition of the batch opened last."""
        return None if self._batch is None else TopicPartition(self._batch.topic, self._batch.partition)

    @property
    def in_hand(self) -> int | None:
        """The offset of the record taken last, unless :meth:`finish` was called since."""
        taken = len(self._chunk) - length_hint(self.records)
        return self._chunk[taken - 1].offset if taken > self._finished else None

    def finish(self) -> None:
        """What was taken is done with."""
        self._finished = len(self._chunk) - length_hint(self.records)

    def open(self, batch: FetchedBatch, start: int) -> None:
        """Read ``batch`` next, which begins at offset ``start`` or later; the one before is forgotten."""
        self._batch = batch
        self._start = start
        self._chunks = batch.chunks()
        self._left = len(batch)
        self._chunk = []
        self._finished = 0

    def load(self) -> int:
        """Go on to the next records of the batch: how many there are, 0 at its end; CorruptRecordError if damaged."""
        if not self._left:
            return 0
        chunk = next(self._chunks)
        self._chunk = chunk
        self._finished = 0
        self._left -= len(chunk)
        self.records = iter(chunk)
        return len(chunk)

    def drop(self) -> None:
        """Forget what was not taken; whoever iterates over :attr:`records` comes to an end."""
        deque(self.records, maxlen=0)
        self._batch = None
        self._chunks = iter(())
        self._chunk = []
        self._finished = 0
        self._left = 0


class Records:
    """What ``async for record in consumer`` goes over: the cursor's records, without end, until the consumer is closed.

    ``wait`` gives the next one when none lies ready; it raises StopAsyncIteration at the end.
    """

    __slots__ = ("_cursor", "_wait")

    def __init__(self, cursor: Cursor, wait: Callable[[], Awaitable[Record]]) -> None:
        self._cursor = cursor
        self._wait = wait

    def __aiter__(self) -> Records:
        return self

    def __anext__(self) -> Awaitable[Record]:
        for record in self._cursor.records:
            return _ready(record)
        return self._wait()  # never compiled: who is cancelled there hears of it as in any other coroutine


async def _ready(record: Record) -> Record:
    return record
