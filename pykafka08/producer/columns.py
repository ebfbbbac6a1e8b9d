"""Whole columns for one partition: what copies records from elsewhere, thousands at a time.

The other half of the public class is in ``producer``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from time import time_ns

import anyio

from pykafka08.cluster.client import Client
from pykafka08.errors import RecordTypeError
from pykafka08.producer.accumulator import NEW_PARTITION_S, Accumulator
from pykafka08.producer.batch import RECORD_OVERHEAD, Span, headers_size
from pykafka08.producer.checks import check_partition
from pykafka08.producer.delivery import SentRecords, add_span
from pykafka08.producer.intake import Intake
from pykafka08.producer.sender import Sender
from pykafka08.records.record import Headers

__all__ = ["ColumnProducing"]

_BYTES = {bytes, type(None)}


class ColumnProducing:
    """The part of a producer that takes columns."""

    _accumulator: Accumulator
    _client: Client
    _intake: Intake
    _sender: Sender
    _now: Callable[[], float]
    _largest_chunk: int
    _max_block: float
    _wait_for_room: Callable[[int, str | None], Awaitable[None]]

    async def enqueue_columns(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[Headers] | None = None,
        timestamps_ms: Sequence[int] | None = None,
    ) -> SentRecords:
        """Put records into batches of one partition, in order; columns of one length, a timestamp of -1 is none.

        Waits for room as :meth:`send` does, not for the outcome, which is in the answer after :meth:`flush`.
        RecordTypeError where a value or key is not bytes or None: nothing was taken.  Where the transaction ends while
        it waits, the records taken before count with that, and the others are refused.
        """
        count = len(values)
        columns = [each for each in (keys, headers, timestamps_ms) if each is not None]
        if any(len(each) != count for each in columns):
            raise RecordTypeError(f"topic {topic!r}: the columns are not of one length", topic=topic)
        if not {*map(type, values), *map(type, keys or ())} <= _BYTES:
            raise RecordTypeError(f"topic {topic!r}: values and keys are bytes or None here", topic=topic)
        self._intake.check_topic(topic)
        check_partition(partition, topic)
        if timestamps_ms is None:
            timestamps_ms = [time_ns() // 1_000_000] * count
        if self._client.metadata.topic_error(topic) or partition not in self._client.metadata.partitions(topic):
            await self._client.wait_for_topics([topic], timeout=self._max_block)
            await self._wait_for_partition(topic, partition)
        bounds = list(accumulate(_sizes(values, keys, headers), initial=0))
        spans: list[Span] = []
        start = 0
        while start < count:
            end = bisect_right(bounds, bounds[start] + self._largest_chunk, start + 1) - 1
            end = max(end, start + 1)
            largest = max(map(int.__sub__, bounds[start + 1 : end + 1], bounds[start:end]))
            self._intake.saw(largest, topic, partition)
            await self._wait_for_room(bounds[end] - bounds[start], topic)
            self._intake.check_topic(topic)  # meanwhile it may have been closed, or the transaction have ended
            part = slice(start, end)
            added = self._accumulator.columns_added(
                topic,
                partition,
                values[part],
                None if keys is None else keys[part],
                None if headers is None else headers[part],
                timestamps_ms[part],
                bounds[start : end + 1],
                self._now(),
            )
            self._sender.wake()
            for span in added:
                add_span(spans, *span)
            start = end
        return SentRecords(spans)

    async def _wait_for_partition(self, topic: str, partition: int) -> None:
        """It may be new: ask for metadata for a while.  Where it stays missing, that is told as of any record."""
        with anyio.move_on_after(NEW_PARTITION_S):
            while partition not in self._client.metadata.partitions(topic):
                await self._client.refresh(timeout=self._max_block)


def _sizes(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, headers: Sequence[Headers] | None
) -> list[int]:
    """Bounds of the encoded bytes of each record."""
    sizes = [RECORD_OVERHEAD if value is None else RECORD_OVERHEAD + len(value) for value in values]
    if keys is not None:
        sizes = [size if key is None else size + len(key) for size, key in zip(sizes, keys, strict=True)]
    if headers is not None:
        sizes = [size + headers_size(each) for size, each in zip(sizes, headers, strict=True)]
    return sizes
