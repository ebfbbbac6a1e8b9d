"""Record batches of magic 2: a header of 61 bytes, then records of varints (Kafka 0.11 and later).

Here are the layout, the packing of columns into a batch and the unpacking of records out of one.  Finding batches in
the bytes of a Fetch answer is the work of ``reader``; magic 0 and 1 are in ``message_set``.
Source: Kafka's documentation, "Record Batch"; KIP-98.

These loops are what a consumer and a producer spend their time in.  What looks unrolled is: a call, a closure or an
attribute look-up per record shows in the throughput.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import repeat

from pykafka08.errors import CorruptRecordError, LocalProtocolError, RemoteProtocolError
from pykafka08.records.checksums import crc32c
from pykafka08.records.compression import Codec, compress
from pykafka08.records.record import Headers, Record
from pykafka08.wire import Buffer, encode_varint, read_varint, read_varlong, varint_size

__all__ = [
    "CHUNK",
    "HEADER",
    "HEADER_SIZE",
    "LAST_OFFSET_DELTA",
    "PackedRecords",
    "encode_batch",
    "largest_record_size",
    "patch_crc",
    "set_producer_state",
]

#: base offset, length after itself, leader epoch, magic, CRC-32C of what follows, attributes, last offset delta,
#: base timestamp, largest timestamp, producer id, producer epoch, base sequence, record count
HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LAST_OFFSET_DELTA = struct.Struct(">i")

_BLANK_HEADER = bytes(HEADER_SIZE)
_CRC = struct.Struct(">I")
_CRC_AT = 17
_CRC_FROM = 21  # the checksum covers everything from here to the end
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43

#: Records are made so many at a time: small enough for the cache, large enough to hide the call.
CHUNK = 256

# Varints of one and two bytes by a look-up.  A first byte below 128 is the index; otherwise it is the first byte plus
# the second shifted by 7, which is at least 128 and, with a second byte that ends the varint, below _THREE_BYTES.
_THREE_BYTES = 128 << 7 | 128
_PAST_ANY_END = 1 << 40  # stands for negative lengths: the next look at the buffer fails
_SIGNED = [
    (raw >> 1) ^ -(raw & 1)
    for raw in (index if index < 128 else (index & 127) | (index - 128 >> 7) << 7 for index in range(_THREE_BYTES))
]
_LENGTH = [value if value >= 0 else _PAST_ANY_END for value in _SIGNED]
_NULL = 1  # the varint -1


class PackedRecords:
    """The records of one batch, unpacked from the codec and still to be made into objects.

    ``data[start:end]`` holds ``count`` records, those from the asked offset on.  ``fixed_timestamp`` replaces the
    records' own where the log's append time rules.
    """

    __slots__ = (
        "base_offset",
        "base_timestamp",
        "count",
        "data",
        "end",
        "fixed_timestamp",
        "last_offset",
        "leader_epoch",
        "partition",
        "start",
        "timestamp_type",
        "topic",
    )

    def __init__(
        self,
        data: bytes,
        start: int,
        end: int,
        count: int,
        *,
        topic: str,
        partition: int,
        base_offset: int,
        last_offset: int,
        base_timestamp: int,
        fixed_timestamp: int | None,
        timestamp_type: int,
        leader_epoch: int,
    ) -> None:
        # The smallest record takes 7 bytes: no count makes us loop further than the bytes allow.
        if count < 0 or count * 7 > end - start:
            raise CorruptRecordError(f"batch claims {count} records in {end - start} bytes")
        self.data = data
        self.start = start
        self.end = end
        self.count = count
        self.topic = topic
        self.partition = partition
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.base_timestamp = base_timestamp
        self.fixed_timestamp = fixed_timestamp
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch

    def __len__(self) -> int:
        return self.count

    def chunks(self) -> Iterator[list[Record]]:
        """All records, at most CHUNK in a list; CorruptRecordError where the bytes are no records."""
        position, left = self.start, self.count
        while left:
            size = min(left, CHUNK)
            try:
                records, position = self._records(position, size)
            except (IndexError, RemoteProtocolError) as error:
                raise self._damaged(error) from error
            left -= size
            if records[0].offset < self.base_offset or records[-1].offset > self.last_offset:
                raise self._damaged("an offset is outside the batch")
            if not left:
                self._check_end(position)
            yield records

    def values(self) -> list[bytes | None]:
        """The values alone, at about half the price of records."""
        try:
            values, position = self._values()
        except (IndexError, RemoteProtocolError) as error:
            raise self._damaged(error) from error
        self._check_end(position)
        return values

    def keys(self) -> list[bytes | None]:
        """The keys alone."""
        return [record.key for chunk in self.chunks() for record in chunk]

    def drop_below(self, offset: int) -> None:
        """Pass over the records below ``offset``; ``count`` shrinks."""
        data, position = self.data, self.start
        try:
            while self.count:
                size, after = read_varint(data, position)
                _, delta_at = read_varlong(data, after + 1)
                delta, _ = read_varint(data, delta_at)
                if self.base_offset + delta >= offset:
                    break
                position = after + _not_negative(size)
                self.count -= 1
        except (IndexError, RemoteProtocolError) as error:
            raise self._damaged(error) from error
        if position > self.end:
            raise self._damaged("a record runs past the end of its batch")
        self.start = position

    def _records(self, position: int, count: int) -> tuple[list[Record], int]:  # noqa: C901 - unrolled on purpose
        """``count`` records from ``position`` and the position after them."""
        data = self.data
        signed, length, new = _SIGNED, _LENGTH, object.__new__
        topic, partition, leader_epoch = self.topic, self.partition, self.leader_epoch
        base_offset, base_timestamp, timestamp_type = self.base_offset, self.base_timestamp, self.timestamp_type
        records: list[Record] = []
        append = records.append
        for _ in range(count):
            record = new(Record)
            record.topic = topic
            record.partition = partition
            record.timestamp_type = timestamp_type
            record.leader_epoch = leader_epoch

            byte = data[position]
            if byte < 128:
                position += 1
                record_end = position + length[byte]
            elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                position += 2
                record_end = position + length[byte]
            else:
                size, position = _long_length(data, position)
                record_end = position + size

            byte = data[position + 1]  # after the attributes, of which none is in use
            if byte < 128:
                record.timestamp_ms = base_timestamp + signed[byte]
                position += 2
            elif (byte := byte + (data[position + 2] << 7)) < _THREE_BYTES:
                record.timestamp_ms = base_timestamp + signed[byte]
                position += 3
            else:
                record.timestamp_ms, position = _long_sum(data, position + 1, base_timestamp)

            byte = data[position]
            if byte < 128:
                record.offset = base_offset + signed[byte]
                position += 1
            elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                record.offset = base_offset + signed[byte]
                position += 2
            else:
                record.offset, position = _long_sum(data, position, base_offset)

            byte = data[position]
            if byte == _NULL:
                record.key = None
                position += 1
            else:
                if byte < 128:
                    position += 1
                    after = position + length[byte]
                elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                    position += 2
                    after = position + length[byte]
                else:
                    size, position = _long_length(data, position)
                    after = position + size
                record.key = data[position:after]
                position = after

            byte = data[position]
            if byte == _NULL:
                record.value = None
                position += 1
            else:
                if byte < 128:
                    position += 1
                    after = position + length[byte]
                elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                    position += 2
                    after = position + length[byte]
                else:
                    size, position = _long_length(data, position)
                    after = position + size
                record.value = data[position:after]
                position = after

            if data[position] == 0:
                record._headers = ()
                position += 1
            else:
                record._headers = data[position:record_end]
                position = max(position + 1, record_end)
            if position != record_end:
                raise RemoteProtocolError("a record's length does not agree with its fields")
            append(record)
        if position > self.end:
            raise RemoteProtocolError("a record runs past the end of its batch")
        if self.fixed_timestamp is not None:
            for record in records:
                record.timestamp_ms = self.fixed_timestamp
        return records, position

    def _values(self) -> tuple[list[bytes | None], int]:  # noqa: C901 - unrolled on purpose
        data, position = self.data, self.start
        length = _LENGTH
        values: list[bytes | None] = []
        append = values.append
        for _ in range(self.count):
            byte = data[position]
            if byte < 128:
                position += 1
                record_end = position + length[byte]
            elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                position += 2
                record_end = position + length[byte]
            else:
                size, position = _long_length(data, position)
                record_end = position + size

            position += 1  # attributes
            if data[position] < 128:
                position += 1
            elif data[position + 1] < 128:
                position += 2
            else:
                _, position = read_varlong(data, position)
            if data[position] < 128:
                position += 1
            elif data[position + 1] < 128:
                position += 2
            else:
                _, position = read_varint(data, position)

            byte = data[position]
            if byte == _NULL:
                position += 1
            elif byte < 128:
                position += 1 + length[byte]
            elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                position += 2 + length[byte]
            else:
                size, position = _long_length(data, position)
                position += size

            byte = data[position]
            if byte == _NULL:
                append(None)
                position += 1
            else:
                if byte < 128:
                    position += 1
                    after = position + length[byte]
                elif (byte := byte + (data[position + 1] << 7)) < _THREE_BYTES:
                    position += 2
                    after = position + length[byte]
                else:
                    size, position = _long_length(data, position)
                    after = position + size
                append(data[position:after])
                position = after
            if position >= record_end or (data[position] == 0 and position + 1 != record_end):
                raise RemoteProtocolError("a record's length does not agree with its fields")
            position = record_end
        return values, position

    def _check_end(self, position: int) -> None:
        if position != self.end:
            raise self._damaged(f"its records end {self.end - position} bytes before the batch does")

    def _damaged(self, reason: Exception | str) -> CorruptRecordError:
        if isinstance(reason, IndexError):
            reason = "a length runs past the end"
        elif isinstance(reason, RemoteProtocolError):
            reason = reason.message
        return CorruptRecordError(
            f"record batch is damaged: {reason}",
            topic=self.topic,
            partition=self.partition,
            offset=self.base_offset,
            next_offset=self.last_offset + 1,
        )


def _not_negative(size: int) -> int:
    if size < 0:
        raise RemoteProtocolError(f"negative length {size}")
    return size


def _long_length(data: bytes, position: int) -> tuple[int, int]:
    size, position = read_varint(data, position)
    return _not_negative(size), position


def _long_sum(data: bytes, position: int, base: int) -> tuple[int, int]:
    delta, position = read_varlong(data, position)
    total = base + delta
    if not -(1 << 63) <= total < 1 << 63:
        raise RemoteProtocolError("an offset or timestamp does not fit 64 bits")
    return total, position


# Encoding: tables of varints, few parts per record, one join for all.


class _Varints(dict[int, bytes]):
    """Varints by value behind a fixed prefix: small ones are kept, others are made when asked for."""

    def __init__(self, prefix: bytes) -> None:
        super().__init__((value, prefix + encode_varint(value)) for value in range(-1, _SMALL))
        self.prefix = prefix

    def __missing__(self, value: int) -> bytes:
        return self.prefix + encode_varint(value)


_SMALL = 8192  # varints below take two bytes
_VARINTS = _Varints(b"")
_STAMPS = _Varints(b"\x00")  # the attributes of a record, of which none is in use, and its timestamp delta
_varint = _VARINTS.__getitem__
_stamp = _STAMPS.__getitem__
_SMALL_VARINTS = [_varint(value) for value in range(_SMALL)]
_SPANS = [value + len(_varint(value)) for value in range(_SMALL)]  # of so many bytes with their length before them
_NULL_LENGTH = _varint(-1)
_NO_HEADERS = b"\x00"


def encode_batch(
    codec: Codec,
    *,
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None = None,
    offset_deltas: Sequence[int] | None = None,
    base_offset: int = 0,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    log_append_time_ms: int | None = None,
    leader_epoch: int = -1,
) -> bytearray:
    """One batch of magic 2; columns of one length, at least one record.  ``offset_deltas`` default to 0, 1, 2, ..."""
    count = len(values)
    deltas = range(count) if offset_deltas is None else offset_deltas
    if (
        not count
        or len({count, len(keys), len(timestamps), len(deltas), len(values if headers is None else headers)}) > 1
    ):
        raise LocalProtocolError("a batch needs columns of one length with at least one record")
    attributes = codec | is_transactional << 4 | is_control << 5
    largest_timestamp = max(timestamps)
    if log_append_time_ms is not None:
        attributes |= 8
        largest_timestamp = log_append_time_ms
    try:
        parts = _pack_records(timestamps, keys, values, headers, deltas)
        if codec:
            parts = [compress(codec, b"".join(parts), level=level)]
        batch = bytearray().join((_BLANK_HEADER, *parts))
        HEADER.pack_into(
            batch, 0, base_offset, len(batch) - 12, leader_epoch, 2, 0, attributes, deltas[-1],
            timestamps[0], largest_timestamp, producer_id, producer_epoch, base_sequence, count,
        )  # fmt: skip
    except (TypeError, struct.error) as error:
        raise LocalProtocolError(f"a record cannot be encoded: {error}") from error
    patch_crc(batch)
    return batch


def _pack_records(
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    headers: Sequence[Headers] | None,
    deltas: Sequence[int],
) -> list[bytes]:
    """The records in pieces, to be joined."""
    base = timestamps[0]
    stamps = map(_stamp, [timestamp - base for timestamp in timestamps])
    offsets = map(_varint, deltas)
    if headers is None and all(values) and keys.count(None) == len(keys):
        return _pack_keyless(stamps, offsets, values)  # type: ignore[arg-type]
    tails = repeat(_NO_HEADERS, len(values)) if headers is None else map(_pack_headers, headers)
    small, spans = _SMALL_VARINTS, _SPANS
    parts: list[bytes] = []
    for stamp, offset, key, value, tail in zip(stamps, offsets, keys, values, tails, strict=True):
        size = len(stamp) + len(offset) + len(tail)
        if key is None:
            key_length = _NULL_LENGTH
            size += 1
        elif (key_size := len(key)) < _SMALL:
            key_length = small[key_size]
            size += spans[key_size]
        else:
            key_length = _varint(key_size)
            size += len(key_length) + key_size
        if value is None:
            value_length = _NULL_LENGTH
            size += 1
        elif (value_size := len(value)) < _SMALL:
            value_length = small[value_size]
            size += spans[value_size]
        else:
            value_length = _varint(value_size)
            size += len(value_length) + value_size
        parts += (
            small[size] if size < _SMALL else _varint(size),
            stamp, offset, key_length, key or b"", value_length, value or b"", tail,
        )  # fmt: skip
    return parts


def _pack_keyless(stamps: Iterator[bytes], offsets: Iterator[bytes], values: Sequence[bytes]) -> list[bytes]:
    """The same for the commonest case, at two thirds of the price: no key, no header, no null value."""
    small, spans = _SMALL_VARINTS, _SPANS
    parts: list[bytes] = []
    for stamp, offset, value in zip(stamps, offsets, values, strict=True):
        value_size = len(value)
        if value_size < _SMALL - 32:
            size = len(stamp) + len(offset) + spans[value_size] + 2
            parts += (small[size], stamp, offset, _NULL_LENGTH, small[value_size], value, _NO_HEADERS)
        else:
            value_length = _varint(value_size)
            size = len(stamp) + len(offset) + len(value_length) + value_size + 2
            parts += (_varint(size), stamp, offset, _NULL_LENGTH, value_length, value, _NO_HEADERS)
    return parts


def _pack_headers(headers: Headers) -> bytes:
    if not headers:
        return _NO_HEADERS
    parts = [_varint(len(headers))]
    for name, value in headers:
        encoded = name.encode()
        parts += (_varint(len(encoded)), encoded)
        parts += (_varint(-1),) if value is None else (_varint(len(value)), value)
    return b"".join(parts)


def largest_record_size(key: bytes | None, value: bytes | None, headers: Headers = ()) -> int:
    """Most bytes that one record adds to a batch that is not compressed."""
    # length 5, attributes 1, timestamp 10, offset 5, key length 5, value length 5, header count 5
    size = 36 + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        name_size = len(name.encode())
        size += varint_size(name_size) + name_size
        size += 1 if content is None else varint_size(len(content)) + len(content)
    return size


def patch_crc(batch: bytearray) -> None:
    """Write the checksum that belongs to the batch as it is."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_FROM:]))


def is_crc_right(data: Buffer, start: int, end: int) -> bool:
    """True if the batch at ``data[start:end]`` has the checksum that its header says."""
    (stated,) = _CRC.unpack_from(data, start + _CRC_AT)
    return int(stated) == crc32c(memoryview(data)[start + _CRC_FROM : end])


def set_producer_state(batch: Buffer, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
    """The batch with another producer id, epoch and first sequence; a bytearray is changed in place."""
    patched = batch if isinstance(batch, bytearray) else bytearray(batch)
    _PRODUCER.pack_into(patched, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    patch_crc(patched)
    return patched
