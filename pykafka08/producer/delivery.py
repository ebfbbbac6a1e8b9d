"""What ``enqueue``, ``send`` and ``send_many`` give back: handles of records under way, and where they were written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import overload

from pykafka08.producer.batch import Batch, Span
from pykafka08.producer.handle import Delivery
from pykafka08.producer.waits import RecordMetadata, metadata_of, waiter_of

__all__ = ["Delivery", "RecordMetadata", "SentRecords", "add_span", "ended", "wait_until_ended"]


async def wait_until_ended(batch: Batch) -> None:
    """Return when every record of ``batch`` is acknowledged or failed, wherever it was forwarded to."""
    pending = [batch]
    while pending:
        current = pending.pop()
        while not current.is_done and not current.is_forwarded:
            await waiter_of(current)
        pending += current.forwarded_to()


def _is_over(batch: Batch) -> bool:
    return batch.is_done or (batch.is_forwarded and all(map(_is_over, batch.forwarded_to())))


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

    @property
    def is_done(self) -> bool:
        """Whether all have ended: then :meth:`raise_first_error` says how, and nothing is waited for."""
        return all(_is_over(batch) for batch, _, _ in self._spans)

    def raise_first_error(self) -> None:
        """Raise what the first record that failed ended with, if one did; KafkaError if one is under way."""
        for batch, first, count in self._spans:
            if batch.is_forwarded or batch.error is not None or not batch.is_done:
                for index in range(first, first + count):
                    metadata_of(*batch.follow(index))


async def ended(spans: Sequence[Span]) -> SentRecords:
    """Those records, when all have ended; raises what the first that failed ended with."""
    for batch in dict.fromkeys(batch for batch, _, _ in spans):
        await wait_until_ended(batch)
    sent = SentRecords(spans)
    sent.raise_first_error()
    return sent
