"""Message sets of magic 0 and 1 (Kafka 0.8 to 0.10): a run of messages, each with its own offset and checksum.

A compressed set travels as the value of one wrapper message; there is one level of wrapping and no more.  Offsets
inside a wrapper are absolute in magic 0 and relative to its end in magic 1 (KIP-31, KIP-32).
Here are the layout, the unpacking and the packing; ``reader`` finds the sets, magic 2 is in ``batch``.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import repeat

from pykafka08.errors import CorruptRecordError, LocalProtocolError, UnsupportedVersionError
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

#: offset, size after itself, CRC-32 of what follows it, magic, attributes, [timestamp,] key size
_HEAD_0 = struct.Struct(">qiIBBi")
_HEAD_1 = struct.Struct(">qiIBBqi")
_SIZE = struct.Struct(">i")
_CRC_FROM = 16

#: A fetch offset that no offset is below, not even those that produced sets have.
EVERY_OFFSET = -1 << 63

#: The size field of a message with no key and no value, by magic.
SMALLEST_MESSAGE = (14, 22)


class MessageColumns:
    """Messages of one magic and one timestamp type, as columns."""

    __slots__ = ("key_column", "magic", "offsets", "partition", "timestamp_type", "timestamps", "topic", "value_column")

    def __init__(self, magic: int, timestamp_type: TimestampType, topic: str = "", partition: int = -1) -> None:
        self.magic = magic
        self.timestamp_type = timestamp_type
        self.topic = topic
        self.partition = partition
        self.offsets: list[int] = []
        self.timestamps: list[int] = []
        self.key_column: list[bytes | None] = []
        self.value_column: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self.offsets)

    def chunks(self) -> Iterator[list[Record]]:
        """All records, at most CHUNK in a list."""
        for start in range(0, len(self.offsets), CHUNK):
            stop = start + CHUNK
            columns = (self.offsets, self.timestamps, self.key_column, self.value_column)
            rows = zip(*(column[start:stop] for column in columns), repeat(()), strict=False)
            yield records_of_rows(self.topic, self.partition, self.timestamp_type, -1, rows)

    @property
    def unpacked_bytes(self) -> int:
        """Bytes of keys and values."""
        return sum(len(each) for column in (self.key_column, self.value_column) for each in column if each)

    def columns(self) -> Columns:
        """All fields as columns."""
        parts: list[bytes] = []
        key_edges, key_nulls = array("i"), array("B")
        value_edges, value_nulls = array("i"), array("B")
        position = 0
        for key, value in zip(self.key_column, self.value_column, strict=True):
            for field, edges, nulls in ((key, key_edges, key_nulls), (value, value_edges, value_nulls)):
                edges.append(position)
                nulls.append(field is None)
                if field:
                    parts.append(field)
                    position += len(field)
                edges.append(position)
        return Columns(
            b"".join(parts),
            memoryview(array("q", self.offsets)),
            memoryview(array("q", self.timestamps)),
            key_edges=memoryview(key_edges),
            key_nulls=memoryview(key_nulls),
            value_edges=memoryview(value_edges),
            value_nulls=memoryview(value_nulls),
        )

    def values(self) -> list[bytes | None]:
        """The values alone."""
        return self.value_column.copy()

    def keys(self) -> list[bytes | None]:
        """The keys alone."""
        return self.key_column.copy()

    def drop_below(self, offset: int) -> None:
        """Forget the messages below ``offset``."""
        first = bisect_left(self.offsets, offset)
        if first:
            for column in (self.offsets, self.timestamps, self.key_column, self.value_column):
                del column[:first]


def read_messages(
    data: bytes, position: int, end: int, *, fetch_offset: int = EVERY_OFFSET, check_crcs: bool = True
) -> tuple[MessageColumns, int]:
    """The run of plain messages at ``position`` that share magic and attributes, and the position after the run.

    The run ends before a wrapper, another magic, a damaged or a cut-off message; CorruptRecordError only when it is the
    first message that is damaged.  The first message must be whole.  Messages below ``fetch_offset`` are passed over.
    """
    magic, attributes = data[position + 16], data[position + 17]
    columns = MessageColumns(magic, _timestamp_type(magic, attributes))
    head, timestamp = (_HEAD_0, -1) if magic == 0 else (_HEAD_1, 0)
    view = memoryview(data)
    add_offset, add_timestamp = columns.offsets.append, columns.timestamps.append
    add_key, add_value = columns.key_column.append, columns.value_column.append
    start = position
    # 12 bytes of offset and size, then the smallest message; less than that is a cut-off tail.
    while position + 12 + SMALLEST_MESSAGE[magic] <= end:
        if magic:
            offset, size, crc, this_magic, these_attributes, timestamp, key_size = head.unpack_from(data, position)
        else:
            offset, size, crc, this_magic, these_attributes, key_size = head.unpack_from(data, position)
        after = position + 12 + size
        if this_magic != magic or these_attributes != attributes or size < SMALLEST_MESSAGE[magic] or after > end:
            break
        if offset >= fetch_offset:
            key_from = position + head.size
            key_to = key_from + max(key_size, 0)
            damage = None
            if check_crcs and crc32(view[position + _CRC_FROM : after]) != crc:
                damage = "checksum of a message is wrong"
            elif key_size < -1 or key_to + 4 > after:
                damage = f"message key of {key_size} bytes does not fit the message"
            else:
                (value_size,) = _SIZE.unpack_from(data, key_to)
                if value_size < -1 or key_to + 4 + max(value_size, 0) != after:
                    damage = f"message value of {value_size} bytes does not fit the message"
            if damage is not None:
                if position == start:
                    raise CorruptRecordError(damage, offset=offset, next_offset=offset + 1)
                break
            add_offset(offset)
            add_timestamp(timestamp)
            add_key(None if key_size < 0 else data[key_from:key_to])
            add_value(None if value_size < 0 else data[key_to + 4 : after])
        position = after
    return columns, position


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
    outer, after = read_messages(data, position, end, check_crcs=check_crcs)
    if after != end or len(outer) != 1 or outer.value_column[0] is None:
        raise CorruptRecordError("wrapper message holds no set")
    packed = outer.value_column[0]
    inner = decompress(Codec(codec), packed, limit=limit, magic=magic)
    try:
        columns = _read_inner(inner, magic, check_crcs)
    except CorruptRecordError as error:
        error.next_offset = outer.offsets[0] + 1  # the whole wrapper is lost, whatever the offset inside
        raise
    if magic:
        # Relative offsets count from the first message that the producer sent, and compaction may have removed any but
        # the last, which has the wrapper's offset.
        shift = outer.offsets[0] - columns.offsets[-1]
        if shift:
            columns.offsets = [offset + shift for offset in columns.offsets]
        columns.timestamp_type = outer.timestamp_type
        if outer.timestamp_type == TimestampType.LOG_APPEND_TIME:
            columns.timestamps = outer.timestamps * len(columns)
    return columns


def _read_inner(inner: bytes, magic: int, check_crcs: bool) -> MessageColumns:
    end = len(inner)
    all_columns: MessageColumns | None = None
    position = 0
    while position < end:
        if position + 12 + SMALLEST_MESSAGE[magic] > end:
            raise CorruptRecordError("set inside a wrapper is cut off")
        if inner[position + 16] != magic:
            raise CorruptRecordError(f"message inside a wrapper of magic {magic} has magic {inner[position + 16]}")
        if inner[position + 17] & CODEC_MASK:
            raise CorruptRecordError("wrapper message inside a wrapper message")
        columns, after = read_messages(inner, position, end, check_crcs=check_crcs)
        if after == position:
            raise CorruptRecordError("set inside a wrapper is cut off, or a size in it lies")
        position = after
        if all_columns is None:
            all_columns = columns
        else:
            all_columns.offsets += columns.offsets
            all_columns.timestamps += columns.timestamps
            all_columns.key_column += columns.key_column
            all_columns.value_column += columns.value_column
    if all_columns is None:
        raise CorruptRecordError("wrapper message holds an empty set")
    return all_columns


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
    except (TypeError, struct.error) as error:
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
    parts: list[bytes] = []
    entry = struct.Struct(">qiI").pack
    size_of = _SIZE.pack
    start = bytes((magic, attributes))
    stamp = struct.Struct(">BBq").pack
    null = size_of(-1)
    for offset, timestamp, key, value in zip(offsets, timestamps, keys, values, strict=True):
        if magic:
            start = stamp(1, attributes, timestamp)
        message = start + null if key is None else b"".join((start, size_of(len(key)), key))
        message = message + null if value is None else b"".join((message, size_of(len(value)), value))
        parts.append(entry(offset, len(message) + 4, crc32(message)))
        parts.append(message)
    return b"".join(parts)


def largest_message_size(magic: int, key: bytes | None, value: bytes | None) -> int:
    """Bytes that one message adds to a set that is not compressed."""
    return 12 + SMALLEST_MESSAGE[magic] + (len(key) if key else 0) + (len(value) if value else 0)
