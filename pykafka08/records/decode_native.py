"""Magic 2 read with machine integers: what the compiled form does.  The same results as ``decode_loop``.

Interpreted, it is right but slow, and needs the package librt; the tests hold it against the other decoders there.
What looks unrolled is: a call per field shows in the throughput.  Positions are machine integers, and no length that
was read can make them overflow, since lengths have 32 bits; deltas are compared before they are added.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from pykafka08.errors import RemoteProtocolError
from pykafka08.records import decode_loop
from pykafka08.records.columns import Columns
from pykafka08.records.packed import OFFSET_DISAGREES, PackedRecords, long_length, long_sum
from pykafka08.records.record import Record
from pykafka08.wire import read_varint, read_varlong

__all__ = ["read_columns", "read_records", "read_values"]

_DISAGREES: Final = "a record's length does not agree with its fields"


def read_records(  # noqa: C901 - unrolled on purpose
    packed: PackedRecords, start: int, count: int
) -> tuple[list[Record], int]:
    """``count`` records from ``start`` and the position after them; errors as in ``decode_loop``."""
    data = packed.data
    end: i64 = packed.end
    topic, partition, leader_epoch = packed.topic, packed.partition, packed.leader_epoch
    base_offset, base_timestamp, timestamp_type = packed.base_offset, packed.base_timestamp, packed.timestamp_type
    last_offset, fixed = packed.last_offset, packed.fixed_timestamp
    lowest = base_offset
    records: list[Record] = []
    position: i64 = start
    left: i64 = count
    while left > 0:
        left -= 1
        byte: i64 = data[position]
        following: i64 = 0
        size: i64 = 0
        if byte < 128:
            position += 1
        else:
            following = data[position + 1]
            if following < 128:
                byte += (following << 7) - 128
                position += 2
            else:
                long, at = long_length(data, position)
                byte = long * 2
                position = at
        if byte & 1:
            raise RemoteProtocolError(_DISAGREES)
        record_end: i64 = position + (byte >> 1)

        position += 1  # attributes, of which none is in use
        timestamp: int = base_timestamp
        byte = data[position]
        if byte < 128:
            position += 1
            timestamp += (byte >> 1) ^ -(byte & 1)
        else:
            following = data[position + 1]
            if following < 128:
                position += 2
                byte += (following << 7) - 128
                timestamp += (byte >> 1) ^ -(byte & 1)
            else:
                timestamp, at = long_sum(data, position, base_timestamp)
                position = at

        offset: int = base_offset
        byte = data[position]
        if byte < 128:
            position += 1
            offset += (byte >> 1) ^ -(byte & 1)
        else:
            following = data[position + 1]
            if following < 128:
                position += 2
                byte += (following << 7) - 128
                offset += (byte >> 1) ^ -(byte & 1)
            else:
                offset, at = long_sum(data, position, base_offset)
                position = at
        if offset < lowest or offset > last_offset:
            raise RemoteProtocolError(OFFSET_DISAGREES)
        lowest = offset + 1

        key: bytes | None = None
        byte = data[position]
        if byte == 1:
            position += 1
        else:
            if byte < 128:
                position += 1
            else:
                following = data[position + 1]
                if following < 128:
                    byte += (following << 7) - 128
                    position += 2
                else:
                    long, at = long_length(data, position)
                    byte = long * 2
                    position = at
            size = byte >> 1
            if byte & 1 or position + size >= record_end:
                raise RemoteProtocolError(_DISAGREES)
            key = data[position : position + size]
            position += size

        value: bytes | None = None
        byte = data[position]
        if byte == 1:
            position += 1
        else:
            if byte < 128:
                position += 1
            else:
                following = data[position + 1]
                if following < 128:
                    byte += (following << 7) - 128
                    position += 2
                else:
                    long, at = long_length(data, position)
                    byte = long * 2
                    position = at
            size = byte >> 1
            if byte & 1 or position + size >= record_end:
                raise RemoteProtocolError(_DISAGREES)
            value = data[position : position + size]
            position += size

        if position >= record_end or record_end > end:
            raise RemoteProtocolError(_DISAGREES)
        if fixed is not None:
            timestamp = fixed
        if data[position] == 0:
            if position + 1 != record_end:
                raise RemoteProtocolError(_DISAGREES)
            records.append(Record(topic, partition, offset, timestamp, timestamp_type, key, value, (), leader_epoch))
        else:
            record = Record(topic, partition, offset, timestamp, timestamp_type, key, value, (), leader_epoch)
            record._headers = data[position:record_end]
            records.append(record)
        position = record_end
    return records, position


def read_values(packed: PackedRecords) -> tuple[list[bytes | None], int]:  # noqa: C901 - unrolled on purpose
    """The values of all records and the position after them; errors as in ``decode_loop``."""
    data = packed.data
    end: i64 = packed.end
    largest_delta: i64 = packed.last_offset - packed.base_offset
    previous: i64 = -1
    values: list[bytes | None] = []
    position: i64 = packed.start
    left: i64 = packed.count
    while left > 0:
        left -= 1
        byte: i64 = data[position]
        following: i64 = 0
        if byte < 128:
            position += 1
        else:
            following = data[position + 1]
            if following < 128:
                byte += (following << 7) - 128
                position += 2
            else:
                long, at = long_length(data, position)
                byte = long * 2
                position = at
        record_end: i64 = position + (byte >> 1)
        if byte & 1 or record_end > end:
            raise RemoteProtocolError(_DISAGREES)
        position += 1  # attributes
        if data[position] < 128:
            position += 1
        elif data[position + 1] < 128:
            position += 2
        else:
            _, at = read_varlong(data, position)
            position = at
        byte = data[position]
        if byte < 128:
            position += 1
        else:
            following = data[position + 1]
            if following < 128:
                byte += (following << 7) - 128
                position += 2
            else:
                delta, at = read_varint(data, position)
                byte = delta << 1 if delta >= 0 else 1
                position = at
        if byte & 1 or byte >> 1 > largest_delta or byte >> 1 <= previous:
            raise RemoteProtocolError(OFFSET_DISAGREES)
        previous = byte >> 1
        byte = data[position]
        if byte == 1:
            position += 1
        else:
            if byte < 128:
                position += 1
            else:
                following = data[position + 1]
                if following < 128:
                    byte += (following << 7) - 128
                    position += 2
                else:
                    long, at = long_length(data, position)
                    byte = long * 2
                    position = at
            position += byte >> 1
            if byte & 1 or position >= record_end:
                raise RemoteProtocolError(_DISAGREES)
        byte = data[position]
        if byte == 1:
            values.append(None)
            position += 1
        else:
            if byte < 128:
                position += 1
            else:
                following = data[position + 1]
                if following < 128:
                    byte += (following << 7) - 128
                    position += 2
                else:
                    long, at = long_length(data, position)
                    byte = long * 2
                    position = at
            size: i64 = byte >> 1
            if byte & 1 or position + size >= record_end:
                raise RemoteProtocolError(_DISAGREES)
            values.append(data[position : position + size])
            position += size
        if position >= record_end or (data[position] == 0 and position + 1 != record_end):
            raise RemoteProtocolError(_DISAGREES)
        position = record_end
    return values, position


def read_columns(batches: list[PackedRecords]) -> Columns:
    """As ``decode_loop.read_columns``."""
    writer = _ColumnWriter(batches[0].data)
    for packed in batches:
        try:
            position = writer.append(packed)
        except (IndexError, RemoteProtocolError):
            return decode_loop.read_columns(batches)  # its word is final: a null may be written in more than one byte
        packed.check_end(position)
    return writer.columns()


class _ColumnWriter:
    """Columns that grow batch by batch."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.count: i64 = 0
        self.null_keys: i64 = 0
        self.null_values: i64 = 0
        self.has_headers = False
        self.offsets = BytesWriter()
        self.timestamps = BytesWriter()
        self.key_edges = BytesWriter()
        self.key_nulls = BytesWriter()
        self.value_edges = BytesWriter()
        self.value_nulls = BytesWriter()
        self.header_edges = BytesWriter()

    def append(self, packed: PackedRecords) -> int:  # noqa: C901 - unrolled on purpose
        """Add the records of one batch; the position after them."""
        data = packed.data
        end: i64 = packed.end
        base_offset: i64 = packed.base_offset
        base_timestamp: i64 = packed.base_timestamp
        largest_delta: i64 = packed.last_offset - packed.base_offset
        # A sum that passes 64 bits is found where deltas are added to Python's integers.
        is_far = not -(1 << 62) <= packed.base_timestamp < 1 << 62
        fixed = packed.fixed_timestamp
        fixed_timestamp: i64 = 0 if fixed is None else fixed
        has_own_timestamps = fixed is None
        offsets, timestamps = self.offsets, self.timestamps
        key_edges, key_nulls, value_edges, value_nulls = (
            self.key_edges, self.key_nulls, self.value_edges, self.value_nulls,
        )  # fmt: skip
        null_keys: i64 = 0
        null_values: i64 = 0
        position: i64 = packed.start
        rows: i64 = packed.count
        row: i64 = 0
        previous: i64 = -1
        while row < rows:
            row += 1
            byte: i64 = data[position]
            following: i64 = 0
            size: i64 = 0
            if byte < 128:
                position += 1
            else:
                following = data[position + 1]
                if following < 128:
                    byte += (following << 7) - 128
                    position += 2
                else:
                    long, at = long_length(data, position)
                    byte = long * 2
                    position = at
            record_end: i64 = position + (byte >> 1)
            if byte & 1 or record_end > end:
                raise RemoteProtocolError(_DISAGREES)

            position += 1  # attributes
            byte = data[position]
            following = data[position + 1]
            timestamp: i64 = base_timestamp
            if byte < 128 and not is_far:
                position += 1
                timestamp += (byte >> 1) ^ -(byte & 1)
            elif following < 128 and not is_far:
                position += 2
                byte += (following << 7) - 128
                timestamp += (byte >> 1) ^ -(byte & 1)
            else:
                far, at = long_sum(data, position, packed.base_timestamp)
                timestamp = far
                position = at

            byte = data[position]
            if byte < 128:
                position += 1
            else:
                following = data[position + 1]
                if following < 128:
                    position += 2
                    byte += (following << 7) - 128
                else:
                    delta, at = read_varint(data, position)
                    byte = delta << 1 if delta >= 0 else 1
                    position = at
            if byte & 1 or byte >> 1 > largest_delta or byte >> 1 <= previous:
                raise RemoteProtocolError(OFFSET_DISAGREES)
            previous = byte >> 1
            write_i64_le(offsets, base_offset + (byte >> 1))
            write_i64_le(timestamps, timestamp if has_own_timestamps else fixed_timestamp)

            byte = data[position]
            if byte == 1:
                position += 1
                size = 0
                null_keys += 1
                key_nulls.append(1)
            else:
                if byte < 128:
                    position += 1
                else:
                    following = data[position + 1]
                    if following < 128:
                        byte += (following << 7) - 128
                        position += 2
                    else:
                        long, at = long_length(data, position)
                        byte = long * 2
                        position = at
                size = byte >> 1
                if byte & 1 or position + size >= record_end:
                    raise RemoteProtocolError(_DISAGREES)
                key_nulls.append(0)
            write_i32_le(key_edges, i32(position))
            position += size
            write_i32_le(key_edges, i32(position))

            byte = data[position]
            if byte == 1:
                position += 1
                size = 0
                null_values += 1
                value_nulls.append(1)
            else:
                if byte < 128:
                    position += 1
                else:
                    following = data[position + 1]
                    if following < 128:
                        byte += (following << 7) - 128
                        position += 2
                    else:
                        long, at = long_length(data, position)
                        byte = long * 2
                        position = at
                size = byte >> 1
                if byte & 1 or position + size >= record_end:
                    raise RemoteProtocolError(_DISAGREES)
                value_nulls.append(0)
            write_i32_le(value_edges, i32(position))
            position += size
            write_i32_le(value_edges, i32(position))

            if position >= record_end:
                raise RemoteProtocolError(_DISAGREES)
            if data[position]:
                self._add_headers(self.count + row - 1, position, record_end)
            else:
                if position + 1 != record_end:
                    raise RemoteProtocolError(_DISAGREES)
                if self.has_headers:
                    self._add_headers(self.count + row - 1, position, position)
            position = record_end
        self.count += rows
        self.null_keys += null_keys
        self.null_values += null_values
        return position

    def _add_headers(self, row: i64, start: i64, end: i64) -> None:
        edges = self.header_edges
        if not self.has_headers:
            # The first that has some: those before it had none.
            self.has_headers = True
            while row > 0:
                row -= 1
                write_i64_le(edges, 0)
        write_i32_le(edges, i32(start))
        write_i32_le(edges, i32(end))

    def columns(self) -> Columns:
        """What was added."""
        some_keys, some_values = self.null_keys < self.count, self.null_values < self.count
        return Columns(
            self.data,
            memoryview(self.offsets.getvalue()).cast("q"),
            memoryview(self.timestamps.getvalue()).cast("q"),
            key_edges=memoryview(self.key_edges.getvalue()).cast("i") if some_keys else None,
            key_nulls=memoryview(self.key_nulls.getvalue()) if some_keys and self.null_keys else None,
            value_edges=memoryview(self.value_edges.getvalue()).cast("i") if some_values else None,
            value_nulls=memoryview(self.value_nulls.getvalue()) if some_values and self.null_values else None,
            header_edges=memoryview(self.header_edges.getvalue()).cast("i") if self.has_headers else None,
        )
