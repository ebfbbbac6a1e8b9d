"""Record batches of magic 2: a header of 61 bytes, then records of varints (Kafka 0.11 and later).

Here are the layout and the making of records; columns become batches in ``batch_packing``, ``reader`` finds batches in
the bytes of a Fetch answer, magic 0 and 1 are in ``message_set``.  Source: Kafka's documentation, "Record Batch";
KIP-98.

The two loops are what a consumer spends its time in.  What looks unrolled is: a call, a closure or an attribute look-up
per record shows in the throughput.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from pykafka08.errors import CorruptRecordError, RemoteProtocolError
from pykafka08.records.checksums import crc32c
from pykafka08.records.record import Record
from pykafka08.wire import Buffer, read_varint, read_varlong

__all__ = [
    "CHUNK",
    "HEADER",
    "HEADER_SIZE",
    "PackedRecords",
    "is_crc_right",
    "patch_crc",
    "set_producer_state",
]

#: base offset, length after itself, leader epoch, magic, CRC-32C of what follows, attributes, last offset delta,
#: base timestamp, largest timestamp, producer id, producer epoch, base sequence, record count
HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size

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
