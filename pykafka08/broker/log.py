"""One partition's log in memory: batches as they go out to consumers, found by offset and by time.

Batches arrive here checked and numbered (``append``).  Nothing here depends on the emulated release.  ``log_manager``
runs retention and compaction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from pykafka08.broker.open_transactions import AbortedRange, OpenTransactions
from pykafka08.broker.segments import FOREVER_MS, Segment
from pykafka08.broker.sequences import Sequences
from pykafka08.records.reader import FetchedBatch, read_batches
from pykafka08.records.record import Record
from pykafka08.wire import INT32, Buffer

__all__ = ["NO_OFFSET", "LogFiles", "PartitionLog", "RecordMemory", "StoredBatch", "TimedOffset"]

ENTRY_HEADER = 12  # offset and size, in all three formats
BATCH_OVERHEAD = 300  # bytes of memory of a batch, in addition to its data
SEGMENT_BYTES = 1 << 30
LEAST_REWRITTEN = 1 << 20
MAGIC_AT = 16


class TimedOffset(NamedTuple):
    """An offset and its record's timestamp; -1 and -1 for none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


NO_OFFSET = TimedOffset(-1, -1)


class StoredBatch:
    """What one partition of one produce request left: one batch of magic 2, or a whole set of magic 0 or 1."""

    __slots__ = (
        "appended_at_ms",
        "base_offset",
        "data",
        "delete_horizon_ms",
        "last_offset",
        "leader_epoch",
        "max_timestamp_ms",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        data: Buffer,
        *,
        max_timestamp_ms: int,
        appended_at_ms: int,
        leader_epoch: int,
        delete_horizon_ms: int = -1,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.data = data
        self.max_timestamp_ms = max_timestamp_ms
        self.appended_at_ms = appended_at_ms
        self.leader_epoch = leader_epoch
        self.delete_horizon_ms = delete_horizon_ms
        """Time from which compaction deletes the batch's tombstones or marker; -1 before the first compaction."""

    @property
    def memory_bytes(self) -> int:
        return len(self.data) + BATCH_OVERHEAD


class RecordMemory:
    """Memory of the records of all logs, in bytes."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0


class LogFiles(Protocol):
    """The files of one log."""

    def append(self, segment_offset: int, data: Buffer) -> None: ...

    def replace(self, kept: Sequence[int], changed: Sequence[tuple[int, Sequence[Buffer]]]) -> None:
        """Delete the segments whose base offsets are not in ``kept``, and rewrite the changed ones."""

    def started_at(self, offset: int) -> None:
        """Note the new log start offset."""

    def delete(self) -> None: ...


class PartitionLog:
    """``start_offset`` to ``end_offset``, the latter not included."""

    def __init__(self, topic: str, partition: int, memory: RecordMemory | None = None) -> None:
        self.topic = topic
        self.partition = partition
        self.start_offset = 0
        self.end_offset = 0
        self.sequences = Sequences()
        self.transactions = OpenTransactions()
        self.segments: list[Segment] = []
        self.segment_bytes = SEGMENT_BYTES
        self.segment_ms = FOREVER_MS
        self.compacted_until = 0
        """Batches below this offset have been compacted."""
        self.files: LogFiles | None = None
        self._memory = memory if memory is not None else RecordMemory()
        self._batches: list[StoredBatch] = []
        self._last_offsets: list[int] = []
        self._epochs: list[tuple[int, int]] = []

    @property
    def stable_offset(self) -> int:
        """The end of what readers of committed records may see."""
        return max(self.start_offset, self.transactions.stable_offset(self.end_offset))

    @property
    def size(self) -> int:
        """Bytes of records."""
        return sum(segment.size for segment in self.segments)

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last batch; -1 for an empty log."""
        return self._epochs[-1][0] if self._epochs else -1

    def append(self, batch: StoredBatch) -> None:
        """Add a batch whose base offset is ``end_offset`` or, where compaction left a gap, a later one."""
        segment = self.segments[-1] if self.segments else None
        is_new_segment = (
            segment is None
            or segment.size + len(batch.data) > self.segment_bytes
            or batch.max_timestamp_ms - segment.first_timestamp_ms > self.segment_ms
        )
        self.load(batch, is_new_segment=is_new_segment)
        if self.files is not None:
            try:
                self.files.append(self.segments[-1].base_offset, batch.data)
            except OSError:
                self._unload()
                raise

    def load(self, batch: StoredBatch, *, is_new_segment: bool) -> None:
        """Add a batch that is already in the log's files; each file is a segment."""
        if not self._epochs or self._epochs[-1][0] != batch.leader_epoch:
            self._epochs.append((batch.leader_epoch, batch.base_offset))
        self._batches.append(batch)
        self._last_offsets.append(batch.last_offset)
        self.end_offset = batch.last_offset + 1
        size, timestamp = len(batch.data), batch.max_timestamp_ms
        if is_new_segment:
            self.segments.append(Segment(batch.base_offset, timestamp))
        self.segments[-1].add(size, timestamp, batch.appended_at_ms)
        self._memory.used += size + BATCH_OVERHEAD

    def _unload(self) -> None:
        """Remove the last batch again."""
        batch, segment = self._batches.pop(), self.segments[-1]
        self._last_offsets.pop()
        self.end_offset = batch.base_offset
        segment.size -= len(batch.data)
        segment.count -= 1
        if not segment.count:
            self.segments.pop()
        self._memory.used -= batch.memory_bytes

    def read(
        self, offset: int, max_bytes: int, *, whole_first: bool, before_offset: int | None = None
    ) -> tuple[bytes, int]:
        """Bytes from the batch that holds ``offset`` on, and the magic of the newest format among them.

        They are cut at ``max_bytes``, inside a batch if need be, as brokers do; ``whole_first`` (Fetch v3+) lets the
        first batch come whole.  No batch from ``before_offset`` on is among them.
        """
        index, behind = self._index(offset), self._index(before_offset)
        parts: list[Buffer] = []
        size, magic = 0, 0
        while index < behind and (size < max_bytes or not parts):
            data = self._batches[index].data
            magic = max(magic, data[MAGIC_AT])
            if not parts and data[MAGIC_AT] < 2:
                data = memoryview(data)[_entry_of(data, offset) :]
            if not parts and whole_first:
                max_bytes = max(max_bytes, _first_entry_size(data))
            parts.append(data)
            size += len(data)
            index += 1
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        if size > max_bytes:
            joined = memoryview(joined)[: max(0, max_bytes)]
        return (joined if isinstance(joined, bytes) else bytes(joined)), magic

    def bytes_from(self, offset: int, enough: int, *, before_offset: int | None = None) -> int:
        """How many bytes ``read`` has at ``offset``; counting stops at ``enough``."""
        size = 0
        for index in range(self._index(offset), self._index(before_offset)):
            size += len(self._batches[index].data)
            if size >= enough:
                break
        return size

    def trim(self, before_offset: int) -> None:
        """Delete the records before ``before_offset``; batches go once all their records are deleted."""
        self.start_offset = max(self.start_offset, min(before_offset, self.end_offset))
        gone, freed = self._index(self.start_offset), 0
        for batch in self._batches[:gone]:
            size = len(batch.data)
            segment = self.segments[0]
            segment.size -= size
            segment.trimmed += size
            segment.count -= 1
            freed += size + BATCH_OVERHEAD
            if not segment.count:
                del self.segments[0]
        self._memory.used -= freed
        del self._batches[:gone], self._last_offsets[:gone]
        self.transactions.trimmed(self.start_offset)
        if self.files is not None:
            self.files.started_at(self.start_offset)
            with suppress(OSError):  # the start offset is noted; deleted records only take space
                self.files.replace([segment.base_offset for segment in self.segments], self._half_empty())

    def _half_empty(self) -> list[tuple[int, Sequence[Buffer]]]:
        """The first segment and its remaining batches, if most of its file is deleted records."""
        first = self.segments[0] if self.segments else None
        if first is None or first.trimmed <= max(first.size, LEAST_REWRITTEN):
            return []
        first.trimmed = 0
        return [(first.base_offset, [batch.data for batch in self._batches[: first.count]])]

    def truncate(self, end_offset: int) -> None:
        """Lose the batches that reach ``end_offset`` or lie behind it."""
        kept = self._index(end_offset)
        self._replace(self._batches[:kept])
        self.end_offset = self._last_offsets[-1] + 1 if kept else min(end_offset, self.start_offset)
        self.start_offset = min(self.start_offset, self.end_offset)
        self.compacted_until = min(self.compacted_until, self.end_offset)
        self._epochs = [(epoch, start) for epoch, start in self._epochs if start < self.end_offset]
        self.sequences.truncated(self.end_offset)
        self.transactions.truncated(self.end_offset)

    def compacted(self, before_offset: int, batches: Sequence[StoredBatch]) -> None:
        """Replace the batches before ``before_offset`` by these, the result of compaction."""
        self._replace([*batches, *self._batches[self._index(before_offset) :]])
        self.compacted_until = before_offset

    def _replace(self, batches: list[StoredBatch]) -> None:
        """Replace all batches; segments keep their bounds, and empty segments are removed."""
        self._memory.used += sum(batch.memory_bytes for batch in batches)
        self._memory.used -= sum(batch.memory_bytes for batch in self._batches)
        unchanged = set(map(id, self._batches))
        before = {segment.base_offset: segment.count for segment in self.segments}
        bounds, self.segments = list(before), []
        contents: dict[int, list[StoredBatch]] = {}
        for batch in batches:
            base_offset = bounds[bisect_right(bounds, batch.base_offset) - 1]
            if base_offset not in contents:
                contents[base_offset] = []
                self.segments.append(Segment(base_offset, batch.max_timestamp_ms))
            self.segments[-1].add(len(batch.data), batch.max_timestamp_ms, batch.appended_at_ms)
            contents[base_offset].append(batch)
        self._batches, self._last_offsets = batches, [batch.last_offset for batch in batches]
        if self.files is not None:
            changed = [
                (base_offset, [batch.data for batch in each])
                for base_offset, each in contents.items()
                if len(each) != before[base_offset] or not unchanged.issuperset(map(id, each))
            ]
            self.files.replace(list(contents), changed)

    def delete(self) -> None:
        """Release all records at once, because the topic is deleted."""
        self._memory.used -= sum(batch.memory_bytes for batch in self._batches)
        self._batches, self._last_offsets, self.segments = [], [], []
        if self.files is not None:
            self.files.delete()
            self.files = None

    def stored(self, offset: int, before_offset: int) -> list[StoredBatch]:
        """The batches from ``offset`` on and before ``before_offset``."""
        return self._batches[self._index(offset) : self._index(before_offset)]

    def aborted(self) -> list[AbortedRange]:
        return self.transactions.aborted(0, self.end_offset)

    def batches(self, offset: int | None = None) -> list[FetchedBatch]:
        """Everything from ``offset`` (the log's start) on, decoded."""
        first = self.start_offset if offset is None else max(offset, self.start_offset)
        data = b"".join(self._batches[i].data for i in range(self._index(first), len(self._batches)))
        return list(read_batches(data, topic=self.topic, partition=self.partition, fetch_offset=first))

    def records(self, *, is_committed: bool = False) -> list[Record]:
        """All records; ``is_committed``: without those of open and aborted transactions."""
        before = self.stable_offset if is_committed else self.end_offset
        aborted = self.transactions.aborted(0, before) if is_committed else []
        return [
            record
            for batch in self.batches()
            if not batch.is_control and batch.base_offset < before
            if not any(batch.is_transactional and each.covers(batch.producer_id, batch.base_offset) for each in aborted)
            for record in batch
        ]

    def offset_for_time(self, timestamp_ms: int) -> TimedOffset:
        """The first record whose timestamp is at or after ``timestamp_ms``."""
        for stored in self._batches[self._index(self.start_offset) :]:
            if stored.max_timestamp_ms < timestamp_ms:
                continue
            for batch in read_batches(
                stored.data, topic=self.topic, partition=self.partition, fetch_offset=self.start_offset
            ):
                for record in batch:
                    if record.timestamp_ms >= timestamp_ms:
                        return TimedOffset(record.offset, record.timestamp_ms, stored.leader_epoch)
        return NO_OFFSET

    def offset_of_max_time(self) -> TimedOffset:
        """The first record that has the log's greatest timestamp."""
        greatest = max((batch.max_timestamp_ms for batch in self._batches), default=-1)
        return NO_OFFSET if greatest < 0 else self.offset_for_time(greatest)

    def offsets_before(self, timestamp_ms: int, most: int) -> list[int]:
        """What ListOffsets v0 answers: bases of segments last changed at or before a time, newest first.

        -1 asks for the end too, -2 for the oldest segment.
        """
        points = [(max(each.base_offset, self.start_offset), each.modified_at_ms) for each in self.segments]
        points = points or [(self.start_offset, 0)]
        if timestamp_ms == -2:
            found = points[:1]
        elif timestamp_ms == -1:
            found = [*points, (self.end_offset, -1)] if self.segments else points
        else:
            found = [point for point in points if point[1] <= timestamp_ms]
        return [offset for offset, _ in reversed(found)][: max(0, most)]

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The greatest epoch at or below ``leader_epoch`` and the offset after its last record; -1, -1 for none."""
        found = -1
        for epoch, start in self._epochs:
            if epoch > leader_epoch:
                return (found, start) if found >= 0 else (-1, -1)
            found = epoch
        return (found, self.end_offset) if found >= 0 else (-1, -1)

    def _index(self, offset: int | None) -> int:
        """Of the batch that holds ``offset``, or of the next; the count of batches for None."""
        return len(self._batches) if offset is None else bisect_right(self._last_offsets, offset - 1)


def _entry_of(data: Buffer, offset: int) -> int:
    """Position of the first entry of a magic 0 or 1 set that holds ``offset`` or a later one."""
    position = 0
    while position < len(data) and int.from_bytes(data[position : position + 8], "big") < offset:
        position += ENTRY_HEADER + INT32.unpack_from(data, position + 8)[0]
    return position


def _first_entry_size(data: Buffer) -> int:
    return ENTRY_HEADER + int(INT32.unpack_from(data, 8)[0])
