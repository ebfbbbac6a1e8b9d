"""One partition's log in memory: batches as they go out to consumers, found by offset and by time.

Batches arrive here checked and numbered (``append``).  Which release is played does not matter here.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from pykafka08.broker.open_transactions import OpenTransactions
from pykafka08.broker.sequences import Sequences
from pykafka08.records.reader import FetchedBatch, read_batches
from pykafka08.records.record import Record
from pykafka08.wire import INT32, Buffer

__all__ = ["NO_OFFSET", "PartitionLog", "StoredBatch", "TimedOffset"]

ENTRY_HEADER = 12  # offset and size, in all three formats
MAGIC_AT = 16


class TimedOffset(NamedTuple):
    """An offset and its record's timestamp; -1 and -1 for none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int = -1


NO_OFFSET = TimedOffset(-1, -1)


class StoredBatch:
    """What one partition of one produce request left: one batch of magic 2, or a whole set of magic 0 or 1."""

    __slots__ = ("appended_at_ms", "base_offset", "data", "last_offset", "leader_epoch", "max_timestamp_ms")

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        data: Buffer,
        *,
        max_timestamp_ms: int,
        appended_at_ms: int,
        leader_epoch: int,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.data = data
        self.max_timestamp_ms = max_timestamp_ms
        self.appended_at_ms = appended_at_ms
        self.leader_epoch = leader_epoch


class PartitionLog:
    """``start_offset`` to ``end_offset``, the latter not included."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.start_offset = 0
        self.end_offset = 0
        self.sequences = Sequences()
        self.transactions = OpenTransactions()
        self._batches: list[StoredBatch] = []
        self._last_offsets: list[int] = []
        self._epochs: list[tuple[int, int]] = []

    @property
    def stable_offset(self) -> int:
        """The end of what readers of committed records may see."""
        return self.transactions.stable_offset(self.end_offset)

    def append(self, batch: StoredBatch) -> None:
        """Add a batch whose base offset is ``end_offset``."""
        if not self._epochs or self._epochs[-1][0] != batch.leader_epoch:
            self._epochs.append((batch.leader_epoch, batch.base_offset))
        self._batches.append(batch)
        self._last_offsets.append(batch.last_offset)
        self.end_offset = batch.last_offset + 1

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
        gone = self._index(self.start_offset)
        del self._batches[:gone], self._last_offsets[:gone]
        self.transactions.trimmed(self.start_offset)

    def truncate(self, end_offset: int) -> None:
        """Lose the batches that reach ``end_offset`` or lie behind it."""
        kept = self._index(end_offset)
        del self._batches[kept:], self._last_offsets[kept:]
        self.end_offset = self._last_offsets[-1] + 1 if kept else min(end_offset, self.start_offset)
        self.start_offset = min(self.start_offset, self.end_offset)
        self._epochs = [(epoch, start) for epoch, start in self._epochs if start < self.end_offset]
        self.sequences.truncated(self.end_offset)
        self.transactions.truncated(self.end_offset)

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

        The whole log is one segment; -1 asks for the end, -2 for the start.
        """
        points = [(self.start_offset, self._batches[-1].appended_at_ms if self._batches else 0)]
        if self._batches:
            points.append((self.end_offset, -1))
        if timestamp_ms == -2:
            found = points[:1]
        elif timestamp_ms == -1:
            found = points
        else:
            found = [point for point in points[:1] if point[1] <= timestamp_ms]
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
