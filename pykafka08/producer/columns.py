"""Whole columns of records: for one partition, as who copies records from elsewhere has them, or from pyarrow.

The other half of the public class is in ``producer``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from time import time_ns
from typing import Any, cast

import anyio
import anyio.lowlevel

from pykafka08.cluster.client import Client
from pykafka08.errors import RecordTypeError
from pykafka08.producer.accumulator import NEW_PARTITION_S, Accumulator
from pykafka08.producer.arrow import Columns, columns_of, table_of
from pykafka08.producer.batch import Span
from pykafka08.producer.checks import as_headers, check_partition, check_timestamps, check_topic
from pykafka08.producer.delivery import Delivery, SentRecords, add_span, ended
from pykafka08.producer.intake import Intake
from pykafka08.producer.queues import TopicQueues
from pykafka08.producer.room import Room
from pykafka08.producer.sender import Sender
from pykafka08.producer.sizes import bounds_of, measured, record_sizes
from pykafka08.records.record import Headers, NewRecord

__all__ = ["CHUNK", "ColumnProducing", "columns_of_records"]

CHUNK = 1024
"""Records that ``send_many`` and ``send_arrow`` take at a time: as many as stay in a processor's cache meanwhile."""

PACKED = 1 << 16
"""Rows that are measured at a time where they are packed from Arrow's columns."""

FEWEST_PACKED = 64
"""Fewer rows are records like others, and share the others' batches."""


class ColumnProducing:
    """The part of a producer that takes columns."""

    _accumulator: Accumulator
    _client: Client
    _intake: Intake
    _sender: Sender
    _now: Callable[[], float]
    _largest_chunk: int
    _largest_list: int
    _max_block: float
    _room: Room
    _check: Callable[[], None]
    _wait_for_room: Callable[[int, str | None], Awaitable[None]]
    enqueue: Callable[..., Delivery]
    _enqueue_soon: Callable[..., Awaitable[Delivery]]

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
        RecordTypeError where a value or key is not bytes or None, or a header or time is not what :meth:`enqueue`
        takes, LocalProtocolError for a time out of range: nothing was taken.  Where the transaction ends while it
        waits, the records taken before count with that, and the others are refused.
        """
        try:
            lengths = {len(each) for each in (values, keys, headers, timestamps_ms) if each is not None}
            values = list(values)
            keys = None if keys is None else list(keys)
        except TypeError as error:
            raise RecordTypeError(f"topic {topic!r}: columns are lists: {error}", topic=topic) from error
        if lengths != {len(values)}:
            raise RecordTypeError(f"topic {topic!r}: the columns are not of one length", topic=topic)
        sizes = measured(values, keys) if values else (0, 0)
        if sizes is None:
            raise RecordTypeError(f"topic {topic!r}: values and keys are bytes or None here", topic=topic)
        self._intake.check_topic(topic)
        check_partition(partition, topic)
        if headers is not None:
            headers = [as_headers(each, topic) if each != () else () for each in headers]
        if timestamps_ms is not None:
            check_timestamps(timestamps_ms, topic)
        spans: list[Span] = []
        if values:
            await self._take_columns(topic, partition, values, keys, headers, timestamps_ms, sizes, spans)
        return SentRecords(spans)

    async def _take_columns(
        self,
        topic: str,
        partition: int,
        values: list[bytes | None],
        keys: list[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps_ms: Sequence[int] | None,
        sizes: tuple[int, int],
        spans: list[Span],
    ) -> None:
        """Take columns that are checked, with bounds of the encoded bytes of all records and of the largest.

        The sizes are without the headers'.
        """
        if timestamps_ms is None:
            timestamps_ms = [time_ns() // 1_000_000] * len(values)
        await self._wait_until_known(topic, partition)
        total, largest = sizes
        if headers is None and self._is_taken_whole(total, largest):
            await self._take_part(topic, partition, values, keys, headers, timestamps_ms, total, largest, spans)
            return
        bounds = bounds_of(values, keys, headers)
        start = 0
        while start < len(values):
            end = bisect_right(bounds, bounds[start] + self._largest_chunk, start + 1) - 1
            end = max(end, start + 1)
            part = slice(start, end)
            await self._take_part(
                topic,
                partition,
                values[part],
                None if keys is None else keys[part],
                None if headers is None else headers[part],
                timestamps_ms[part],
                bounds[end] - bounds[start],
                max(map(int.__sub__, bounds[start + 1 : end + 1], bounds[start:end])),
                spans,
            )
            start = end

    def _is_taken_whole(self, total: int, largest: int) -> bool:
        """A list of so many bytes is not cut; one with a record that may never fit is, for those before it."""
        return total <= (self._largest_list if largest <= self._largest_chunk else self._largest_chunk)

    async def _take_part(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps_ms: Sequence[int],
        total: int,
        largest: int,
        spans: list[Span],
    ) -> None:
        """Take as much as there may be room for at once."""
        self._intake.saw(largest, topic, partition)
        await self._wait_for_room(total, topic)
        self._intake.check_topic(topic)  # meanwhile it may have been closed, or the transaction have ended
        added = self._accumulator.columns_added(
            topic, partition, values, keys, headers, timestamps_ms, total, self._now()
        )
        self._sender.wake_if_wanted()
        for span in added:
            add_span(spans, *span)

    async def send_arrow(self, topic: str, data: Any) -> SentRecords:
        """Write the rows of a pyarrow Table or RecordBatch, and wait as :meth:`send_many` does; the extra ``arrow``.

        Columns: ``value``, and where there are such ``key`` (binary or text, null is none), ``headers`` (lists of key
        and value, as fetched tables have them, or maps), ``partition``, ``timestamp`` (or integers of milliseconds;
        null is now).  RecordTypeError for any other column, or another type, LocalProtocolError for a time and
        UnknownTopicError for a partition below 0: nothing was taken.
        """
        return await ended((await self.enqueue_arrow(topic, data))._spans)

    async def enqueue_arrow(self, topic: str, data: Any, partition: int | None = None) -> SentRecords:
        """:meth:`send_arrow` that waits for room alone, not for the outcome: that is in the answer after :meth:`flush`.

        With a ``partition`` all rows go there; the table has no such column then.
        """
        self._check()
        spans: list[Span] = []
        table = table_of(topic, data)
        if partition is not None:
            check_partition(partition, topic)
            if "partition" in table.column_names:
                raise RecordTypeError(f"topic {topic!r}: the rows have a column partition already", topic=topic)
        for batch in table.to_batches(max_chunksize=PACKED):
            if self._can_pack(topic, batch, partition):
                await self._enqueue_rows(topic, batch, partition, spans)
                continue
            for start in range(0, batch.num_rows, CHUNK):
                columns = columns_of(batch.slice(start, CHUNK))
                await self._enqueue_lists(topic, columns, partition, spans)
                await anyio.lowlevel.checkpoint()
        return SentRecords(spans)

    async def _enqueue_lists(self, topic: str, columns: Columns, partition: int | None, spans: list[Span]) -> None:
        if partition is None:
            await self._enqueue_columns(topic, columns, spans)
            return
        values, keys, headers, _, times = columns
        now = time_ns() // 1_000_000
        stamps = None if times is None else [now if each is None else each for each in times]
        sent = await self.enqueue_columns(topic, partition, values, keys, headers, stamps)
        for span in sent._spans:
            add_span(spans, *span)

    def _can_pack(self, topic: str, batch: Any, partition: int | None) -> bool:
        """The rows are many, without headers, and all go one way."""
        names = batch.schema.names
        if batch.num_rows < FEWEST_PACKED or "headers" in names or not self._accumulator.packs_rows:
            return False
        if partition is not None:
            return True
        queues = self._accumulator.topics.get(topic)
        if queues is None or not queues.partitions or "partition" in names:
            return False
        if "key" not in names or batch.column("key").null_count == batch.num_rows:
            return queues.chooser.stickiness > 0
        return _only_partition(queues, None) >= 0

    async def _enqueue_rows(self, topic: str, batch: Any, partition: int | None, spans: list[Span]) -> None:
        """Rows that :meth:`_can_pack` is true of."""
        from pykafka08.producer.rows import SizedRows, rows_added

        self._intake.check_topic(topic)
        if partition is not None:
            await self._wait_until_known(topic, partition)
        queues = self._accumulator.queues_of(topic)
        if partition is None and len(queues.partitions) == 1:
            partition = queues.partitions[0]
        rows = SizedRows(batch)
        start = 0
        while start < len(rows):
            end = rows.end_within(start, self._largest_chunk)
            self._intake.saw(rows.largest(start, end), topic, partition)
            await self._wait_for_room(rows.size(start, end), topic)
            self._intake.check_topic(topic)  # as in enqueue_columns
            try:
                stamp = time_ns() // 1_000_000
                added = rows_added(self._accumulator, queues, partition, rows, start, end, stamp, self._now())
                for span in added:
                    add_span(spans, *span)
            finally:
                self._sender.wake_if_wanted()
            start = end
            await anyio.lowlevel.checkpoint()

    async def partitions(self, topic: str) -> tuple[int, ...]:
        """A topic's partitions, in order; waits for its metadata as records do: UnknownTopicError after a while."""
        self._check()
        check_topic(topic)
        if self._client.metadata.topic_error(topic) or not self._client.metadata.partitions(topic):
            await self._client.wait_for_topics([topic], timeout=self._max_block, needed="WRITE")
        return tuple(sorted(self._client.metadata.partitions(topic)))

    async def _enqueue_columns(self, topic: str, columns: Columns, spans: list[Span]) -> None:
        """Records of any kind: as columns where they are bytes, and one partition, the batch or their keys take all."""
        self._intake.check_topic(topic)
        values, keys, headers, partitions, timestamps = columns
        sizes = measured(values, keys)
        if sizes is not None:
            is_now = timestamps is None
            if keys is None and headers is None and partitions is None and is_now:
                await self._enqueue_values(topic, values, sizes, spans)
                return
            queues = self._accumulator.topics.get(topic)
            if queues is not None and (is_now or _are_times(timestamps)):
                only = _only_partition(queues, partitions)
                if only >= 0:
                    await self._take_columns(
                        topic, only, values, keys, headers, cast("list[int] | None", timestamps), sizes, spans
                    )
                    return
                can_choose = bool(queues.partitions) and queues.chooser.keeps_keys and partitions is None and is_now
                if can_choose and keys is not None and all(keys):
                    await self._enqueue_keyed(topic, values, cast("Sequence[bytes]", keys), headers, spans)
                    return
        nothing = [None] * len(values)
        rows = zip(
            values,
            keys or nothing,
            partitions or nothing,
            headers or [()] * len(values),
            timestamps or nothing,
            strict=True,
        )
        for value, key, partition, each, timestamp in rows:
            delivery = await self._enqueue_soon(topic, value, key, partition, each, timestamp)
            add_span(spans, *delivery.place)

    async def _enqueue_keyed(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes],
        headers: Sequence[Headers] | None,
        spans: list[Span],
    ) -> None:
        """Many records at once, each of which has a key that chooses among the partitions."""
        sizes = record_sizes(values, keys, headers)
        size, largest = sum(sizes), max(sizes)
        if len(values) > 1 and not self._is_taken_whole(size, largest):
            middle = len(values) // 2
            for part in (slice(middle), slice(middle, None)):
                await self._enqueue_keyed(
                    topic, values[part], keys[part], None if headers is None else headers[part], spans
                )
            return
        self._intake.saw(largest, topic, None)
        await self._wait_for_room(size, topic)
        self._intake.check_topic(topic)  # as in enqueue_columns
        try:
            stamp = time_ns() // 1_000_000
            spans += self._accumulator.keyed_added(topic, values, keys, headers, stamp, sizes, self._now())
        finally:
            self._sender.wake()

    async def _enqueue_values(
        self, topic: str, values: list[bytes | None], sizes: tuple[int, int], spans: list[Span]
    ) -> None:
        """Many values at once, with bounds of the encoded bytes of all and of the largest."""
        size, largest = sizes
        if len(values) > 1 and not self._is_taken_whole(size, largest):
            middle = len(values) // 2
            for half in (values[:middle], values[middle:]):
                await self._enqueue_values(topic, half, measured(half, None) or sizes, spans)
            return
        self._intake.saw(largest, topic, None)
        await self._wait_for_room(size, topic)
        self._intake.check_topic(topic)
        try:
            for span in self._accumulator.values_added(topic, values, time_ns() // 1_000_000, self._now(), size):
                add_span(spans, *span)
        finally:
            self._sender.wake_if_wanted()  # also for the records before one that the partitioner refused

    async def _wait_until_known(self, topic: str, partition: int) -> None:
        if self._client.metadata.topic_error(topic) or partition not in self._client.metadata.partitions(topic):
            await self._client.wait_for_topics([topic], timeout=self._max_block, needed="WRITE")
            await self._wait_for_partition(topic, partition)

    async def _wait_for_partition(self, topic: str, partition: int) -> None:
        """It may be new: ask for metadata for a while.  Where it stays missing, that is told as of any record."""
        with anyio.move_on_after(NEW_PARTITION_S):
            while partition not in self._client.metadata.partitions(topic):
                await self._client.refresh(timeout=self._max_block)


def columns_of_records(records: list[Any]) -> Columns | None:
    """Records as columns, if that is what all of them are and nothing in them has to be looked at one by one."""
    if {*map(type, records)} != {NewRecord}:
        return None
    values, keys, headers, timestamps, partitions = map(list, zip(*records, strict=True))
    if any(headers):
        return None
    nones = [None] * len(records)
    return Columns(
        values,
        None if keys == nones else keys,
        None,
        None if partitions == nones else partitions,
        None if timestamps == nones else timestamps,
    )


def _only_partition(queues: TopicQueues, partitions: Sequence[object] | None) -> int:
    """The one partition that all these records go to, whatever their keys; -1 if there is none."""
    if partitions is None or not any(each is not None for each in partitions):
        is_only = len(queues.partitions) == 1 and queues.chooser.keeps_keys
        return queues.partitions[0] if is_only else -1
    first = partitions[0]
    is_one = type(first) is int and {*map(type, partitions)} == {int} and partitions.count(first) == len(partitions)
    return first if is_one and first in queues.partitions else -1


def _are_times(timestamps: Sequence[Any] | None) -> bool:
    """Each record has a time, and one that a record can have."""
    return (
        bool(timestamps)
        and {*map(type, timestamps or ())} == {int}
        and 0 <= min(timestamps or ()) <= max(timestamps or ()) < 1 << 63
    )
