"""Rows of Arrow columns into batches: packed together, and cut where batches end.  Pure; needs pyarrow and numpy.

Batches of packed rows take no other records, nor do other batches take rows; they stand in the same queues, so that
the order is the same.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from pykafka08.producer.accumulator import Accumulator
from pykafka08.producer.batch import RECORD_OVERHEAD, Batch, Span
from pykafka08.producer.failures import no_such_partition
from pykafka08.producer.queues import PartitionQueue, TopicQueues
from pykafka08.records.arrow_packing import Rows
from pykafka08.wire import Buffer

__all__ = ["SizedRows", "rows_added"]


class SizedRows:
    """The rows of a table with the columns ``value`` and, where there are such, ``key`` and ``timestamp``."""

    def __init__(self, table: pa.RecordBatch) -> None:
        names = table.schema.names
        self._rows = Rows(table.column("value"), table.column("key") if "key" in names else None)
        self._times = table.column("timestamp") if "timestamp" in names else None
        self._sizes = self._rows.content_sizes() + RECORD_OVERHEAD
        self._bounds = np.concatenate(([0], np.cumsum(self._sizes)))

    def __len__(self) -> int:
        return len(self._rows)

    def end_within(self, start: int, room: int) -> int:
        """Behind the rows from ``start`` on, one at least, whose encoded bytes are no more than ``room``."""
        return max(start + 1, int(np.searchsorted(self._bounds, self._bounds[start] + room, "right")) - 1)

    def size(self, start: int, end: int) -> int:
        """Bound of the encoded bytes of these rows."""
        return int(self._bounds[end] - self._bounds[start])

    def largest(self, start: int, end: int) -> int:
        """Bound of the encoded bytes of the largest of these rows."""
        return int(self._sizes[start:end].max())

    def times(self, start: int, end: int, now_ms: int) -> list[int]:
        """The timestamps of these rows; ``now_ms`` where there is none."""
        if self._times is None:
            return [now_ms] * (end - start)
        times: list[int] = self._times.slice(start, end - start).fill_null(now_ms).to_pylist()
        return times

    def pack(self, start: int, spans: list[Span], times: list[int]) -> None:
        """Have the rows from ``start`` on, with these timestamps, packed for the batches that they count in."""
        if self._times is None:  # batches that were open before have a part of the rows, with another delta
            for stamp, part in groupby(spans, lambda span: times[0] - span[0].timestamps[0]):
                start = self._pack_part(start, list(part), stamp)
            return
        counts = [count for _, _, count in spans]
        stamps = np.subtract(times, np.repeat([batch.timestamps[0] for batch, _, _ in spans], counts))
        is_one = bool((stamps == stamps[0]).all())
        self._pack_part(start, spans, int(stamps[0]) if is_one else stamps)

    def _pack_part(self, start: int, spans: list[Span], stamps: Any) -> int:
        """The row behind those packed."""
        cuts = (start + np.cumsum([count for _, _, count in spans])).tolist()
        packing = _Packing(self._rows, start, cuts, stamps, spans[0][1])
        for index, (batch, _, _) in enumerate(spans):
            assert batch.packed is not None
            batch.packed.append(partial(packing.records, index))
        return int(cuts[-1])


class _Packing:
    """Rows that are packed when the first of their batches is encoded: until then they are the table's bytes alone."""

    def __init__(self, rows: Rows, start: int, cuts: list[int], stamps: Any, first: int) -> None:
        self._packed = partial(rows.packed, start, cuts, stamps, first)
        self._pieces: list[list[Buffer]] | None = None

    def records(self, index: int) -> list[Buffer]:
        """Those of one of the batches, in pieces."""
        if self._pieces is None:
            self._pieces = self._packed()
        return self._pieces[index]


def rows_added(
    accumulator: Accumulator,
    queues: TopicQueues,
    partition: int | None,
    rows: SizedRows,
    start: int,
    end: int,
    now_ms: int,
    now: float,
) -> list[Span]:
    """Take these rows; without a ``partition`` those that have no key go where the sticky partitioner sends them."""
    if partition is not None and partition not in queues.partitions:
        raise no_such_partition(queues, partition)
    times = rows.times(start, end, now_ms)
    spans: list[Span] = []
    first = start
    try:
        while start < end:
            queue, batch = _batch_for(accumulator, queues, partition, rows.size(start, start + 1), now)
            stop = start + 1
            if batch is queue.open_rows:
                stop = min(end, rows.end_within(start, queue.limit - batch.size))
            size = rows.size(start, stop)
            spans.append((batch, len(batch), stop - start))
            batch.timestamps += times[start - first : stop - first]
            batch.size += size
            accumulator.buffered_bytes += size
            accumulator.enqueued += stop - start
            start = stop
    finally:  # also those before one that the partitioner refused
        if spans:
            rows.pack(first, spans, times[: start - first])
    return spans


def _batch_for(
    accumulator: Accumulator, queues: TopicQueues, partition: int | None, size: int, now: float
) -> tuple[PartitionQueue, Batch]:
    """Where the next row goes; the batch is made if need be."""
    queue = queues.sticky if partition is None else accumulator.queue(queues, partition)
    if queue is not None:
        batch = queue.open_rows
        if batch is not None and queue.has_room(batch, size, now):
            return queue, batch
    if queue is None or partition is None:
        queue = accumulator.queue_without_key(queues, size, now)
    batch = accumulator.open_batch(queue, size, now, now)
    batch.packed = []
    if queue.open is batch:
        queue.open, queue.open_rows = None, batch
    return queue, batch
