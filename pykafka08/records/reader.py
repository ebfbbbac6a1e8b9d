"""From the record bytes of a Fetch answer to batches of records, whatever mix of magic 0, 1 and 2 they are.

``read_batches`` checks each entry (sizes, checksum, codec, unpacked size) when it comes to it and hands out a
FetchedBatch, whose records are created on access; a large entry can become several (see ``slices``).
A CorruptRecordError has the offset at which reading can continue.  Layouts are in ``batch`` and ``message_set``; which
records an application may see (aborted transactions, control batches) is decided in ``consumer.chunk``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from operator import itemgetter, lt
from typing import Any

from pykafka08.errors import CorruptRecordError, RecordTooLargeError
from pykafka08.records.batch import HEADER, HEADER_SIZE, is_crc_right
from pykafka08.records.batch_records import BatchRecords, ahead_of
from pykafka08.records.bounds import NO_LIMIT
from pykafka08.records.compression import DEFAULT_UNPACK_LIMIT, Codec, decompress, unpacked_parts
from pykafka08.records.fetched import ControlType, FetchedBatch
from pykafka08.records.message_set import (
    CODEC_MASK,
    EVERY_OFFSET,
    SMALLEST_MESSAGE,
    MessageColumns,
    read_messages,
    unwrap,
)
from pykafka08.records.record import TimestampType
from pykafka08.records.slices import LARGEST_WHOLE, MOST_MESSAGES, Stretch, batch_slices, message_slices
from pykafka08.wire import Buffer

__all__ = [
    "EVERY_OFFSET",
    "ControlType",
    "FetchedBatch",
    "first_entry_size",
    "only_partial",
    "read_batches",
    "read_produced",
]

_ENTRY = struct.Struct(">qi")  # every entry starts with an offset and the size of what follows
_SMALLEST_HEAD = 17  # up to the magic byte, which is in the same place in all formats
_SMALLEST_SIZES = (*SMALLEST_MESSAGE, HEADER_SIZE - _ENTRY.size)
_LARGEST_OFFSET = (1 << 63) - 1

_BATCH = itemgetter(2)
_SMALL = 500  # records
_CODECS = tuple(Codec)  # by number; an index costs a tenth of an enum's call
_LOG_APPEND_BIT = 1 << 3
_TRANSACTIONAL_BIT = 1 << 4
_CONTROL_BIT = 1 << 5


def first_entry_size(buffer: Buffer) -> int | None:
    """Bytes that the first entry takes as a whole, present or not; None when not even its size is there."""
    if len(buffer) < _ENTRY.size:
        return None
    _, size = _ENTRY.unpack_from(buffer)
    return _ENTRY.size + int(size)


def only_partial(buffer: Buffer) -> bool:
    """True if there are bytes but the first entry is cut off: the fetch was smaller than the batch."""
    size = first_entry_size(buffer)
    return len(buffer) > 0 and (size is None or size > len(buffer))


def read_batches(
    buffer: Buffer,
    *,
    topic: str,
    partition: int,
    fetch_offset: int,
    check_crcs: bool = True,
    max_unpacked_bytes: int = DEFAULT_UNPACK_LIMIT,
    in_slices: bool = False,
) -> Iterator[FetchedBatch]:
    """The batches of ``buffer`` that reach ``fetch_offset`` or beyond, each checked when the iterator comes to it.

    A cut-off entry at the end is dropped.  CorruptRecordError ends the iteration; call again with its ``next_offset``
    to read on behind the damage.  A batch is unpacked when it is handed out, so take the next one when done with it.

    ``in_slices``: a large batch becomes several, each of about a MiB; ``max_unpacked_bytes`` then bounds a record,
    else a batch.  RecordTooLargeError ends the iteration above that bound.
    """
    source = _Source(buffer, topic, partition, fetch_offset, check_crcs, max_unpacked_bytes, in_slices)
    return map(_BATCH, _read_entries(source))  # a generator expression would be a list in the compiled form


def read_produced(
    buffer: Buffer, *, max_unpacked_bytes: int = DEFAULT_UNPACK_LIMIT
) -> Iterator[tuple[int, int, FetchedBatch]]:
    """Start, end and batch for each entry (or run of plain messages) of a set that has no offsets of its own yet.

    Some clients write -1, or 0 in every message, before the broker numbers them.
    """
    return _read_entries(_Source(buffer, "", -1, EVERY_OFFSET, True, max_unpacked_bytes, False))


def _read_entries(source: _Source) -> Iterator[tuple[int, int, FetchedBatch]]:
    # One copy for all: slices of bytes are bytes, which is what records are made of.
    data = source.data = bytes(source.data)
    end = len(data)
    position = 0
    while end - position >= _SMALLEST_HEAD:
        offset, size = _ENTRY.unpack_from(data, position)
        entry_end = position + _ENTRY.size + size
        if size >= 0 and entry_end > end:
            return
        try:
            batch, after = _read_entry(source, data, position, entry_end, offset)
            if batch is not None:
                yield position, after, batch
            elif source.slices is not None:
                slices, source.slices = source.slices, None
                for each in slices:
                    yield position, after, each
        except (CorruptRecordError, RecordTooLargeError) as error:
            error.topic, error.partition, error.offset = source.topic, source.partition, offset
            if error.next_offset is None:
                error.next_offset = _offset_after(data, position, entry_end, offset)
            raise
        position = after


class _Source:
    """What stays the same while one buffer is read."""

    __slots__ = (
        "_ahead",
        "_is_ahead_known",
        "check_crcs",
        "data",
        "fetch_offset",
        "in_slices",
        "limit",
        "partition",
        "slices",
        "topic",
        "whole",
        "whole_plain",
    )

    def __init__(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        fetch_offset: int,
        check_crcs: bool,
        limit: int,
        in_slices: bool,
    ) -> None:
        self.data = buffer
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.check_crcs = check_crcs
        self.limit = limit
        self.in_slices = in_slices
        self.whole = min(limit, LARGEST_WHOLE) if in_slices else limit
        """Unpacked bytes of a compressed batch of magic 2 above which it is sliced."""
        self.whole_plain = LARGEST_WHOLE if in_slices else NO_LIMIT
        """Bytes of an uncompressed batch above which it is sliced."""
        self.slices: Iterator[FetchedBatch] | None = None
        """The slices of the last entry, if it is large."""
        self._ahead: Any = None
        self._is_ahead_known = False

    def ahead_in(self, data: bytes) -> Any:
        """What reads small batches together: made for the first of them."""
        if not self._is_ahead_known:
            self._is_ahead_known = True
            self._ahead = ahead_of(data)
        return self._ahead


def _read_entry(
    source: _Source, data: bytes, position: int, entry_end: int, offset: int
) -> tuple[FetchedBatch | None, int]:
    """The batch at ``position`` and where the next entry starts.

    None for a batch below the fetched offset, and for a large one, which is then in ``source.slices``.
    """
    magic = data[position + 16]
    if magic > 2:
        raise CorruptRecordError(f"magic {magic if magic < 128 else magic - 256} is unknown")
    if entry_end - position - _ENTRY.size < _SMALLEST_SIZES[magic]:
        raise CorruptRecordError(f"batch of magic {magic} claims a size of {entry_end - position - _ENTRY.size} bytes")
    if not min(0, source.fetch_offset) <= offset < _LARGEST_OFFSET:
        raise CorruptRecordError(f"offset {offset} does not exist")
    if magic == 2:
        return _read_batch(source, data, position, entry_end), entry_end
    codec = data[position + 17] & CODEC_MASK
    if not codec:
        columns, after = read_messages(
            data, position, len(data), fetch_offset=source.fetch_offset, check_crcs=source.check_crcs
        )
        if not len(columns):
            return None, after
        return _batch_of_messages(source, columns, codec, columns.rows.offsets[-1]), after
    if offset < source.fetch_offset:
        return None, entry_end
    columns = unwrap(data, position, entry_end, check_crcs=source.check_crcs, limit=source.limit)
    return _batch_of_messages(source, columns, codec, offset), entry_end


def _batch_of_messages(source: _Source, columns: MessageColumns, codec: int, last_offset: int) -> FetchedBatch | None:
    columns.topic = source.topic
    columns.partition = source.partition
    offsets = columns.rows.offsets.tolist()
    if source.fetch_offset > EVERY_OFFSET and not all(map(lt, offsets, offsets[1:])):
        raise CorruptRecordError("offsets of messages do not increase", next_offset=last_offset + 1)
    base_offset = offsets[0]
    columns.drop_below(source.fetch_offset)
    batch = FetchedBatch(
        columns,
        topic=source.topic,
        partition=source.partition,
        magic=columns.magic,
        codec=_CODECS[codec],
        base_offset=base_offset,
        last_offset=last_offset,
        timestamp_type=columns.timestamp_type,
        max_timestamp_ms=max(columns.rows.timestamps_ms.tolist(), default=-1),
    )
    if source.in_slices and len(columns) > MOST_MESSAGES:
        source.slices = message_slices(batch, columns)
        return None
    return batch


def _read_batch(source: _Source, data: bytes, position: int, entry_end: int) -> FetchedBatch | None:
    (
        base_offset, _, leader_epoch, _, _, attributes, last_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, count,
    ) = HEADER.unpack_from(data, position)  # fmt: skip
    last_offset = base_offset + last_delta
    if last_delta >= 0 and last_offset < source.fetch_offset:
        return None
    if source.check_crcs and not is_crc_right(data, position, entry_end):
        raise CorruptRecordError("checksum of a record batch is wrong")
    if last_delta < 0 or last_offset >= _LARGEST_OFFSET:
        raise CorruptRecordError(f"last offset delta {last_delta} does not exist")
    codec = attributes & CODEC_MASK
    if codec > Codec.ZSTD:
        raise CorruptRecordError(f"codec {codec} is unknown")
    body, start, end = data, position + HEADER_SIZE, entry_end
    parts: Iterator[Stretch] | None = None
    if codec:
        try:
            body = decompress(_CODECS[codec], memoryview(data)[start:end], limit=source.whole)
            start, end = 0, len(body)
        except RecordTooLargeError as error:
            parts = _parts(source, codec, data, start, end, error)
    elif end - start > source.whole_plain:
        parts = iter(((data, start, end),))
    claimed = count
    if parts is not None:
        body, start, end, count = b"", 0, 0, 0
    uses_append_time = bool(attributes & _LOG_APPEND_BIT)
    timestamp_type = TimestampType.LOG_APPEND_TIME if uses_append_time else TimestampType.CREATE_TIME
    records = BatchRecords(
        body,
        start,
        end,
        count,
        topic=source.topic,
        partition=source.partition,
        base_offset=base_offset,
        last_offset=last_offset,
        base_timestamp=base_timestamp,
        fixed_timestamp=max_timestamp if uses_append_time else None,
        timestamp_type=timestamp_type,
        leader_epoch=leader_epoch,
    )
    if base_offset < source.fetch_offset:
        records.drop_below(source.fetch_offset)
    if not codec and count < _SMALL:
        records.ahead = source.ahead_in(data)
    batch = FetchedBatch(
        records,
        topic=source.topic,
        partition=source.partition,
        magic=2,
        codec=_CODECS[codec],
        base_offset=base_offset,
        last_offset=last_offset,
        timestamp_type=timestamp_type,
        max_timestamp_ms=max_timestamp,
        is_control=bool(attributes & _CONTROL_BIT),
        is_transactional=bool(attributes & _TRANSACTIONAL_BIT),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
    )
    if parts is None:
        return batch
    limit = source.limit if codec else NO_LIMIT
    source.slices = batch_slices(batch, records, parts, claimed, source.fetch_offset, limit)
    return None


def _parts(
    source: _Source, codec: int, data: bytes, start: int, end: int, error: RecordTooLargeError
) -> Iterator[Stretch]:
    """The unpacked parts of ``data[start:end]``; raises ``error``, which says that they are large, without slices."""
    if not source.in_slices:
        raise error
    return _unpacked(unpacked_parts(_CODECS[codec], memoryview(data)[start:end], limit=source.limit))


def _unpacked(parts: Iterator[bytes]) -> Iterator[Stretch]:
    for part in parts:
        yield part, 0, len(part)


def _offset_after(data: bytes, position: int, entry_end: int, offset: int) -> int | None:
    """Where reading can go on behind a damaged entry: what follows in the buffer knows best, else its own header."""
    if entry_end > position and len(data) - entry_end >= _SMALLEST_HEAD:
        following, size = _ENTRY.unpack_from(data, entry_end)
        magic = data[entry_end + 16]
        # The offset of a wrapper is that of its last message: it does not tell where the set starts.
        if magic == 2 and size > 0 and following > offset:
            return int(following)
    if not 0 <= offset < _LARGEST_OFFSET:
        return None
    if data[position + 16] < 2:
        return offset + 1
    if data[position + 16] == 2 and len(data) - position >= HEADER_SIZE:
        last_delta = HEADER.unpack_from(data, position)[6]
        if last_delta >= 0:
            return int(offset + last_delta + 1)
    return None
