"""Large batches in slices of whole records, so that a reader holds about a MiB of records at a time.

A batch of magic 2 is cut where its records end, while it is unpacked; a set of magic 0 or 1 by its number of messages.
Each slice is a FetchedBatch that ends where the next one starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pykafka08.errors import RecordTooLargeError, RemoteProtocolError
from pykafka08.records.batch_records import BatchRecords
from pykafka08.records.bounds import PART
from pykafka08.records.fetched import FetchedBatch
from pykafka08.records.message_set import MessageColumns
from pykafka08.records.packed import long_length, long_sum
from pykafka08.wire import read_varint, read_varlong

__all__ = ["LARGEST_WHOLE", "MOST_MESSAGES", "Stretch", "batch_slices", "message_slices"]

#: Batches of magic 2 of at most this many bytes are not sliced.
LARGEST_WHOLE: Final = 4 * PART
#: Messages of magic 0 or 1 in one slice.
MOST_MESSAGES: Final = 1 << 16

Stretch = tuple[bytes, int, int]
"""Bytes, and the start and end of the records in them."""

_LONGEST_LENGTH: Final = 5  # bytes of the length field
_SMALLEST_RECORD: Final = 6  # after the length field: attributes, two deltas, two lengths, header count


def batch_slices(
    batch: FetchedBatch, records: BatchRecords, parts: Iterator[Stretch], count: int, fetch_offset: int, limit: int
) -> Iterator[FetchedBatch]:
    """The ``count`` records of ``batch`` from ``fetch_offset`` on, whose unpacked bytes are ``parts``.

    ``batch`` and ``records`` have the fields of its header and no records.  CorruptRecordError if the batch is
    damaged, RecordTooLargeError for a record of more than ``limit`` bytes.
    """
    if count < 0:
        raise records.damaged(f"it claims {count} records")
    before = batch.base_offset - 1
    for data, start, end, found, last_at in _stretches(records, parts, count, limit):
        count -= found
        first, last = _offset_at(records, data, start), _offset_at(records, data, last_at)
        if not before < first <= last <= batch.last_offset:
            raise records.damaged("its offsets do not increase, or are outside the batch")
        if count and last == batch.last_offset:
            raise records.damaged(f"{count} of its records are missing or after its last offset")
        before = last
        if not count:
            last = batch.last_offset
        if last >= fetch_offset:
            piece = records.slice(data, start, end, found)
            if first < fetch_offset:
                piece.drop_below(fetch_offset)
            yield batch.slice(piece, first, last)


def message_slices(batch: FetchedBatch, columns: MessageColumns) -> Iterator[FetchedBatch]:
    """``batch``, whose messages are ``columns``, in slices."""
    count = len(columns)
    for first in range(0, count, MOST_MESSAGES):
        stop = min(first + MOST_MESSAGES, count)
        piece = columns.slice(first, stop)
        yield batch.slice(piece, piece.rows.offsets[0], batch.last_offset if stop == count else piece.rows.offsets[-1])


def _stretches(
    records: BatchRecords, parts: Iterator[Stretch], count: int, limit: int
) -> Iterator[tuple[bytes, int, int, int, int]]:
    """Stretches of whole records: bytes, start, end, number of records, position of the last one."""
    pending: list[bytes] = []
    size, needed = 0, 1
    for data, position, end in parts:
        if pending:
            pending.append(data[position:end])
            size += end - position
            if size < needed:
                continue
            data, position, end = b"".join(pending), 0, size
            pending = []
        while True:
            after, found, last_at = _whole_records(records, data, position, end, count, limit)
            if not found:
                break
            count -= found
            if not count:
                _check_end(records, after, end, parts)
            yield data, position, after, found, last_at
            position = after
        if position < end:
            if not count:
                _check_end(records, position, end, parts)
            needed = _needed(records, data, position, end)
            if needed > limit:
                text = f"a record of {needed} bytes is larger than max_unpacked_bytes={limit}; raise that to read it"
                raise RecordTooLargeError(text)
            pending, size = [data[position:end]], end - position
    if count:
        raise records.damaged(f"{count} of its records are missing")


def _check_end(records: BatchRecords, position: int, end: int, parts: Iterable[Stretch]) -> None:
    if position != end or any([stop > start for _, start, stop in parts]):
        raise records.damaged("its records end before the batch does")


def _whole_records(
    records: BatchRecords, data: bytes, position: int, end: int, most: int, limit: int
) -> tuple[int, int, int]:
    """The position after the next whole records of about PART bytes, their number, and the position of the last.

    Stops at a record of more than ``limit`` bytes.
    """
    stop = min(end, position + PART)
    found, last_at = 0, position
    while position < stop and found < most:
        byte = data[position]
        if byte < 128:
            after = position + 1
            size = (byte >> 1) ^ -(byte & 1)
        elif position + 1 < end and data[position + 1] < 128:
            after = position + 2
            size = (byte & 127 | data[position + 1] << 7) >> 1 ^ -(byte & 1)
        else:
            try:
                size, after = read_varint(data, position)
            except RemoteProtocolError as error:
                if end - position >= _LONGEST_LENGTH:
                    raise records.damaged(error) from error
                break  # the length is cut off where these bytes end
        if size < _SMALLEST_RECORD:
            raise records.damaged(f"a record claims {size} bytes")
        after += size
        if after > end or after - position > limit:
            break
        last_at, position = position, after
        found += 1
    return position, found, last_at


def _needed(records: BatchRecords, data: bytes, position: int, end: int) -> int:
    """Size of the record at ``position`` in bytes; if its length field is cut off, more than the available bytes."""
    try:
        size, after = read_varint(data, position)
    except RemoteProtocolError:
        return end - position + 1
    return after + size - position


def _offset_at(records: BatchRecords, data: bytes, position: int) -> int:
    try:
        _, position = long_length(data, position)
        _, position = read_varlong(data, position + 1)
        return long_sum(data, position, records.base_offset)[0]
    except RemoteProtocolError as error:
        raise records.damaged(error) from error
