"""What ``enqueue``, ``send`` and ``send_many`` give back: handles of records under way, and where they were written.

A handle is a batch and an index: no future, no task and no event per record.  One waiter per batch is made, by the
first one who awaits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast, overload

from pykafka08.driver import Waiter
from pykafka08.errors import KafkaError
from pykafka08.producer.batch import Batch, Span

__all__ = ["Delivery", "RecordMetadata", "SentRecords", "add_span", "wait_until_ended"]


class RecordMetadata(NamedTuple):
    """Where a record was written.

    ``offset`` is -1 with acks=0, where the broker answers nothing.  ``timestamp_ms`` is the one in the log: the
    record's own, the broker's where the topic says so, -1 on brokers before 0.10.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Delivery:
    """A record under way: ``await`` it for its :class:`RecordMetadata`, or for the error it ended with.

    Any number of tasks may await it, or none; a cancelled one stops only its own wait, never the record.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def is_done(self) -> bool:
        """Acknowledged or failed: awaiting it will not wait."""
        return self._batch.follow(self._index)[0].is_done

    @property
    def place(self) -> Span:
        """As a run of one record."""
        return self._batch, self._index, 1

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._batch.follow(self._index)
        while not batch.is_done:
            yield from _waiter(batch).__await__()
            batch, index = batch.follow(index)
        return metadata_of(batch, index)

    def __repr__(self) -> str:
        batch, index = self._batch.follow(self._index)
        where = f"{batch.topic}[{batch.partition if batch.partition >= 0 else '?'}]"
        if not batch.is_done:
            return f"<Delivery to {where}, under way>"
        error = batch.error_of(index)
        return f"<Delivery to {where}, {f'offset {batch.offset_of(index)}' if error is None else repr(error)}>"


def metadata_of(batch: Batch, index: int) -> RecordMetadata:
    """The outcome of one record; raises its error, and KafkaError where the batch has not ended."""
    if not batch.is_done:
        raise KafkaError(
            "the record is under way: await flush() before asking where it was written",
            topic=batch.topic,
            partition=batch.partition if batch.partition >= 0 else None,
        )
    error = batch.error_of(index)
    if error is not None:
        # One error object serves all records of the batch: a fresh traceback keeps it from growing with each await.
        raise error.with_traceback(None)
    return RecordMetadata(batch.topic, batch.partition, batch.offset_of(index), batch.timestamp_of(index))


def _waiter(batch: Batch) -> Waiter[None]:
    if batch.listener is None:
        batch.listener = Waiter[None]()
    return cast("Waiter[None]", batch.listener)


async def wait_until_ended(batch: Batch) -> None:
    """Return when every record of ``batch`` is acknowledged or failed, wherever it was forwarded to."""
    pending = [batch]
    while pending:
        current = pending.pop()
        while not current.is_done and not current.is_forwarded:
            await _waiter(current)
        pending += current.forwarded_to()


def add_span(spans: list[Span], batch: Batch, first: int, count: int) -> None:
    """Append a run of records, joined with the run before where it goes on from there."""
    if spans:
        last_batch, last_first, last_count = spans[-1]
        if last_batch is batch and last_first + last_count == first:
            spans[-1] = (batch, last_first, last_count + count)
            return
    spans.append((batch, first, count))


class SentRecords(Sequence[RecordMetadata]):
    """Where the records of one ``send_many`` were written, in the order in which they were given.

    The :class:`RecordMetadata` are made when asked for; ``len()`` costs nothing.
    """

    __slots__ = ("_ends", "_spans")

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self._ends = list(accumulate(count for _, _, count in spans))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[RecordMetadata]:
        for batch, first, count in self._spans:
            for index in range(first, first + count):
                yield metadata_of(*batch.follow(index))

    @overload
    def __getitem__(self, index: int) -> RecordMetadata: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RecordMetadata]: ...

    def __getitem__(self, index: int | slice) -> RecordMetadata | Sequence[RecordMetadata]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"record {index} of {len(self)}")
        place = bisect_right(self._ends, position)
        batch, first, count = self._spans[place]
        return metadata_of(*batch.follow(first + position - self._ends[place] + count))

    def __repr__(self) -> str:
        return f"<SentRecords: {len(self)}>"

    def raise_first_error(self) -> None:
        """Raise what the first record that failed ended with, if one did; KafkaError if one is under way."""
        for batch, first, count in self._spans:
            if batch.is_forwarded or batch.error is not None or not batch.is_done:
                for index in range(first, first + count):
                    metadata_of(*batch.follow(index))
