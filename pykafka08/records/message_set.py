"""Message sets of magic 0 and 1 (Kafka 0.8 to 0.10): a run of messages, each with its own offset and checksum.

A compressed set travels as the value of one wrapper message; there is one level of wrapping and no more.  Offsets
inside a wrapper are absolute in magic 0 and relative to its end in magic 1 (KIP-31, KIP-32).
Here are the layout, the unpacking and the packing; ``reader`` finds the sets, magic 2 is in ``batch``.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from pykafka08.errors import CorruptRecordError, LocalProtocolError, UnsupportedVersionError
from pykafka08.records import messages_loop
from pykafka08.records.batch_packing import NOT_ENCODED
from pykafka08.records.batch_records import field_slices
from pykafka08.records.checksums import crc32
from pykafka08.records.columns import Columns
from pykafka08.records.compression import Codec, compress, decompress
from pykafka08.records.packed import CHUNK
from pykafka08.records.record import Record, TimestampType, records_of_rows

__all__ = [
    "CODEC_MASK",
    "EVERY_OFFSET",
    "SMALLEST_MESSAGE",
    "TIMESTAMP_TYPE_BIT",
    "MessageColumns",
    "encode_message_set",
    "largest_message_size",
    "read_messages",
    "unwrap",
]

CODEC_MASK = 7
TIMESTAMP_TYPE_BIT = 8

_ENTRY = struct.Struct(">qiI")
_STAMP = struct.Struct(">BBq")
_SIZE = struct.Struct(">i")
_NULL = _SIZE.pack(-1)
_MANY = 50  # messages that are worth a look with numpy, or packing together

#: A fetch offset that no offset is below, not even those that produced sets have.
EVERY_OFFSET = -1 << 63

#: The size field of a message with no key and no value, by magic.
SMALLEST_MESSAGE = (14, 22)


class MessageColumns:
    """Messages of one magic and one timestamp type: ``rows`` says where they lie, records are made when asked for."""

    __slots__ = ("magic", "partition", "rows", "timestamp_type", "topic")

    def __init__(self, rows: Columns, magic: int, timestamp_type: TimestampType) -> None:
        self.rows = rows
        self.magic = magic
        self.timestamp_type = timestamp_type
        self.topic = ""
        self.partition = -1

    def __len__(self) -> int:
        return self.rows.count

    def chunks(self) -> Iterator[list[Record]]:
        """All records, at most CHUNK in a list."""
        rows = self.rows
        if not _IS_INTERPRETED:
            for start in range(0, rows.count, CHUNK):
                yield _decoder.read_records(rows, start, start + CHUNK, self.topic, self.partition, self.timestamp_type)
            return
        keys, values = self.keys(), self.values()
        for start in range(0, rows.count, CHUNK):
            stop = start + CHUNK
            fields = zip(
                rows.offsets[start:stop].tolist(),
                rows.timestamps_ms[start:stop].tolist(),
                keys[start:stop],
                values[start:stop],
                itertools.repeat(()),
                strict=False,
            )
            yield records_of_rows(self.topic, self.partition, self.timestamp_type, -1, fields)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of keys and values."""
        edges = [each.tolist() for each in (self.rows.key_edges, self.rows.value_edges) if each is not None]
        return sum([sum(each[1::2]) - sum(each[0::2]) for each in edges])

    def columns(self) -> Columns:
        """All fields as columns."""
        return self.rows

    def values(self) -> list[bytes | None]:
        """The values alone."""
        return _fields(self.rows, self.rows.value_edges, self.rows.value_nulls)

    def keys(self) -> list[bytes | None]:
        """The keys alone."""
        return _fields(self.rows, self.rows.key_edges, self.rows.key_nulls)

    def drop_below(self, offset: int) -> None:
        """Forget the messages below ``offset``."""
        first = bisect_left(self.rows.offsets, offset)
        if first:
            self.rows = self.slice(first, len(self)).rows

    def slice(self, first: int, stop: int) -> MessageColumns:
        """The messages of these row numbers."""
        rows = self.rows
        some = Columns(
            rows.data,
            rows.offsets[first:stop],
            rows.timestamps_ms[first:stop],
            key_edges=None if rows.key_edges is None else rows.key_edges[2 * first : 2 * stop],
            key_nulls=None if rows.key_nulls is None else rows.key_nulls[first:stop],
            value_edges=None if rows.value_edges is None else rows.value_edges[2 * first : 2 * stop],
            value_nulls=None if rows.value_nulls is None else rows.value_nulls[first:stop],
        )
        piece = MessageColumns(some, self.magic, self.timestamp_type)
        piece.topic = self.topic
        piece.partition = self.partition
        return piece


def read_messages(
    data: bytes, position: int, end: int, *, fetch_offset: int = EVERY_OFFSET, check_crcs: bool = True
) -> tuple[MessageColumns, int]:
    """The run of plain messages at ``position`` that share magic and attributes, and the position after the run.

    The run ends before a wrapper, another magic, a damaged or a cut-off message; CorruptRecordError only when it is the
    first message that is damaged.  The first message must be whole.  Messages below ``fetch_offset`` are passed over.
    """
    magic, attributes = data[position + 16], data[position + 17]
    rows, after = _read_run(data, position, end, fetch_offset, check_crcs, False)
    return MessageColumns(rows, magic, _timestamp_type(magic, attributes)), after


def _timestamp_type(magic: int, attributes: int) -> TimestampType:
    if magic == 0:
        return TimestampType.NONE
    return TimestampType.LOG_APPEND_TIME if attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME


def unwrap(data: bytes, position: int, end: int, *, check_crcs: bool, limit: int) -> MessageColumns:
    """The messages inside the wrapper at ``data[position:end]``, with absolute offsets.

    CorruptRecordError for damage outside or inside, a wrapper in the wrapper, or more than ``limit`` bytes unpacked.
    """
    magic, attributes = data[position + 16], data[position + 17]
    codec = attributes & CODEC_MASK
    if codec > Codec.LZ4:
        raise CorruptRecordError(f"codec {codec} does not exist in magic {magic}")
    # The wrapper itself is an ordinary message.
    outer, after = _decoder.read_run(data, position, end, EVERY_OFFSET, check_crcs, False)
    if after != end or len(outer) != 1 or outer.value_edges is None:
        raise CorruptRecordError("wrapper message holds no set")
    value_from, value_to = outer.value_edges
    last_offset = outer.offsets[0]
    inner = decompress(Codec(codec), memoryview(data)[value_from:value_to], limit=limit, magic=magic)
    try:
        rows = _read_inner(inner, magic, check_crcs)
        if magic:
            # Relative offsets count from the first message that the producer sent, and compaction may have removed any
            # but the last, which has the wrapper's offset.
            shift = last_offset - rows.offsets[-1]
            if shift:
                rows.offsets = _moved(rows.offsets, shift)
    except CorruptRecordError as error:
        error.next_offset = last_offset + 1  # the whole wrapper is lost, whatever the offset inside
        raise
    timestamp_type = _timestamp_type(magic, attributes)
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        rows.timestamps_ms = memoryview(array("q", [outer.timestamps_ms[0]]) * len(rows))
    return MessageColumns(rows, magic, timestamp_type)


def _moved(offsets: memoryview, shift: int) -> memoryview:
    try:
        return memoryview(array("q", [offset + shift for offset in offsets.tolist()]))
    except OverflowError as error:
        raise CorruptRecordError("an offset inside a wrapper does not fit 64 bits") from error


def _read_inner(inner: bytes, magic: int, check_crcs: bool) -> Columns:
    end = len(inner)
    position = 0
    found: Columns | None = None
    while position < end or found is None:
        if not end:
            raise CorruptRecordError("wrapper message holds an empty set")
        if position + 12 + SMALLEST_MESSAGE[magic] > end:
            raise CorruptRecordError("set inside a wrapper is cut off")
        if inner[position + 16] != magic:
            raise CorruptRecordError(f"message inside a wrapper of magic {magic} has magic {inner[position + 16]}")
        if inner[position + 17] & CODEC_MASK:
            raise CorruptRecordError("wrapper message inside a wrapper message")
        # One run holds them all; if it does not, what follows it is found to be damaged.
        rows, after = _read_run(inner, position, end, EVERY_OFFSET, check_crcs, True)
        if after == position:
            raise CorruptRecordError("set inside a wrapper is cut off, or a size in it lies")
        found, position = rows, after
    return found


def _read_run(
    data: bytes, start: int, end: int, fetch_offset: int, check_crcs: bool, is_inner: bool
) -> tuple[Columns, int]:
    """The run at ``start``, by the decoder that suits: see ``messages_loop.read_run``."""
    found: tuple[Columns, int] | None = None
    if _IS_INTERPRETED and _has_stride(data, start, end):
        decoder = _stride_decoder()
        if decoder is not None:
            found = decoder.read_run(data, start, end, fetch_offset, check_crcs, is_inner)
    if found is None:
        found = _decoder.read_run(data, start, end, fetch_offset, check_crcs, is_inner)
    return found


def _has_stride(data: bytes, start: int, end: int) -> bool:
    """True if there are many messages and some of the first are of one size, as far as a look can tell."""
    size = data[start + 8 : start + 12]
    length = 12 + int.from_bytes(size, "big")
    if start + _MANY * length > end:
        return False
    return all([data[start + row * length + 8 : start + row * length + 12] == size for row in (1, 2, _MANY - 1)])


@cache
def _stride_decoder() -> Any:
    """The module ``messages_stride``, imported when there is work for it; None without numpy."""
    try:
        return import_module("pykafka08.records.messages_stride")
    except ImportError:
        return None


def _fields(rows: Columns, edges: memoryview | None, nulls: memoryview | None) -> list[bytes | None]:
    if not _IS_INTERPRETED:
        fields: list[bytes | None] = _decoder.read_fields(rows.data, edges, nulls, rows.count)
        return fields
    return field_slices(rows, edges, nulls)


_IS_INTERPRETED = isinstance(_moved, FunctionType)


def _chosen_decoder() -> ModuleType:
    # Decided once: which is faster depends on what this module runs as.  The compiled one needs the package librt.
    return messages_loop if _IS_INTERPRETED else import_module("pykafka08.records.messages_native")


_decoder: Any = _chosen_decoder()


# Encoding


def encode_message_set(
    magic: int,
    codec: Codec,
    *,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    offsets: Sequence[int] | None = None,
    level: int | None = None,
    log_append_time_ms: int | None = None,
) -> bytes:
    """A set of plain messages, or the one wrapper that holds it; ``offsets`` default to 0, 1, 2, ...

    Timestamps are left out in magic 0.  Offsets are absolute; a wrapper of magic 1 gets relative ones inside.
    """
    count = len(values)
    numbers: Sequence[int] = range(count) if offsets is None else offsets
    if not count or len({count, len(keys), len(timestamps), len(numbers)}) > 1:
        raise LocalProtocolError("a message set needs columns of one length with at least one message")
    if codec > Codec.LZ4:
        raise UnsupportedVersionError(f"compression {codec.label} needs magic 2, which came with Kafka 0.11")
    try:
        if not codec:
            stamp_bit = TIMESTAMP_TYPE_BIT if magic and log_append_time_ms is not None else 0
            if log_append_time_ms is not None:
                timestamps = [log_append_time_ms] * count
            return _pack_messages(magic, stamp_bit, numbers, timestamps, keys, values)
        inner_numbers = numbers if magic == 0 or not numbers[0] else [number - numbers[0] for number in numbers]
        packed = compress(
            codec, _pack_messages(magic, 0, inner_numbers, timestamps, keys, values), level=level, magic=magic
        )
        return encode_wrapper(magic, codec, packed, numbers[-1], max(timestamps), log_append_time_ms)
    except NOT_ENCODED as error:
        raise LocalProtocolError(f"a message cannot be encoded: {error}") from error


def encode_wrapper(
    magic: int, codec: Codec, packed: bytes, offset: int, timestamp: int, log_append_time_ms: int | None = None
) -> bytes:
    """The message that carries a packed set; ``offset`` is that of the last message inside."""
    attributes = int(codec)
    if magic and log_append_time_ms is not None:
        attributes |= TIMESTAMP_TYPE_BIT
        timestamp = log_append_time_ms
    return _pack_messages(magic, attributes, (offset,), (timestamp,), (None,), (packed,))


def _pack_messages(
    magic: int,
    attributes: int,
    offsets: Sequence[int],
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
) -> bytes:
    """Messages one behind the other."""
    if not _IS_INTERPRETED:
        packed: bytes = _decoder.pack_messages(magic, attributes, offsets, timestamps, keys, values)
        return packed
    pack: Any = _pack_run if _is_run(magic, timestamps, keys, values) else _pack_each
    return b"".join(pack(magic, attributes, offsets, timestamps, keys, values))


def _is_run(
    magic: int, timestamps: Sequence[int], keys: Sequence[bytes | None], values: Sequence[bytes | None]
) -> bool:
    """Many messages without keys and null values, of one timestamp and few sizes."""
    count = len(values)
    if count < _MANY or (magic and timestamps.count(timestamps[0]) < count) or None in values:
        return False
    return keys.count(None) == count and len(set(map(len, values))) * 2 <= count  # type: ignore[arg-type]


def _pack_run(
    magic: int,
    attributes: int,
    offsets: Sequence[int],
    timestamps: Sequence[int],
    _keys: Sequence[None],
    values: Sequence[bytes],
) -> list[bytes]:
    """Messages that :func:`_is_run` is true of, in parts.

    Up to the value they differ in their sizes alone, so that a checksum is that of the first part, which is known for
    each size, carried on over the value: nothing is interpreted for each message.
    """
    head = _STAMP.pack(magic, attributes, timestamps[0]) if magic else bytes((magic, attributes))
    sizes = list(map(len, values))
    fields = {size: b"".join((head, _NULL, _SIZE.pack(size))) for size in set(sizes)}
    sums = {size: crc32(field) for size, field in fields.items()}
    totals = {size: 4 + len(field) + size for size, field in fields.items()}
    crcs = map(crc32, values, map(sums.__getitem__, sizes))
    parts = [b""] * (3 * len(values))
    parts[::3] = map(_ENTRY.pack, offsets, map(totals.__getitem__, sizes), crcs)
    parts[1::3] = map(fields.__getitem__, sizes)
    parts[2::3] = values
    return parts


def _pack_each(
    magic: int,
    attributes: int,
    offsets: Sequence[int],
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
) -> list[bytes]:
    """Messages of any kind, in parts."""
    parts: list[bytes] = []
    entry, stamp, size_of, null = _ENTRY.pack, _STAMP.pack, _SIZE.pack, _NULL
    head = bytes((magic, attributes))
    for offset, timestamp, key, value in zip(offsets, timestamps, keys, values, strict=True):
        if magic:
            head = stamp(magic, attributes, timestamp)
        message = head + null if key is None else b"".join((head, size_of(len(key)), key))
        message = message + null if value is None else b"".join((message, size_of(len(value)), value))
        parts.append(entry(offset, len(message) + 4, crc32(message)))
        parts.append(message)
    return parts


def largest_message_size(magic: int, key: bytes | None, value: bytes | None) -> int:
    """Bytes that one message adds to a set that is not compressed."""
    return 12 + SMALLEST_MESSAGE[magic] + (len(key) if key else 0) + (len(value) if value else 0)
