"""Plain messages of magic 0 and 1 with machine integers: what the compiled form does, as ``messages_loop`` does it.

Interpreted, it is right but slow, and needs the package librt; the tests hold it against the others there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from librt.strings import (
    BytesWriter,
    read_i32_be,
    read_i32_le,
    read_i64_be,
    read_i64_le,
    write_i32_be,
    write_i32_le,
    write_i64_be,
    write_i64_le,
)
from mypy_extensions import i32, i64, u8

from pykafka08.errors import CorruptRecordError
from pykafka08.records.checksums import crc32
from pykafka08.records.columns import Columns
from pykafka08.records.record import Record, TimestampType

__all__ = ["pack_messages", "read_fields", "read_records", "read_run"]

_MUCH: Final = 2048  # bytes that are rather looked at in place than copied


def read_run(  # noqa: C901 - a call for each message would show
    data: bytes, start: int, end: int, fetch_offset: int, check_crcs: bool, is_inner: bool
) -> tuple[Columns, int]:
    """As ``messages_loop.read_run``."""
    checksum: Any = crc32
    view = memoryview(data)
    offsets, timestamps = BytesWriter(), BytesWriter()
    key_edges, key_nulls, value_edges, value_nulls = BytesWriter(), BytesWriter(), BytesWriter(), BytesWriter()
    first: i64 = start
    limit: i64 = end
    lowest: i64 = fetch_offset
    magic: i64 = data[first + 16]
    attributes: i64 = data[first + 17]
    head: i64 = 30 if magic else 22
    count: i64 = 0
    null_keys: i64 = 0
    null_values: i64 = 0
    timestamp: i64 = -1
    position: i64 = first
    while position + head + 4 <= limit:
        size: i64 = i64(read_i32_be(data, position + 8))
        after: i64 = position + 12 + size
        its_magic: i64 = data[position + 16]
        its_attributes: i64 = data[position + 17]
        if its_magic != magic or size < head - 8 or after > limit:
            break
        if its_attributes != attributes and (not is_inner or its_attributes & 7 != 0):
            break
        offset: i64 = read_i64_be(data, position)
        if offset >= lowest:
            crc: i64 = i64(read_i32_be(data, position + 12)) & 0xFFFFFFFF
            key_size: i64 = i64(read_i32_be(data, position + head - 4))
            key_from: i64 = position + head
            key_to: i64 = key_from
            value_size: i64 = 0
            if key_size > 0:
                key_to += key_size
            damage = ""
            if check_crcs:
                body: Any = data[position + 16 : after] if size < _MUCH else view[position + 16 : after]
                found: i64 = checksum(body)
                if found != crc:
                    damage = "checksum of a message is wrong"
            if not damage and (key_size < -1 or key_to + 4 > after):
                damage = f"message key of {key_size} bytes does not fit the message"
            if not damage:
                value_size = i64(read_i32_be(data, key_to))
                if key_to + 4 + value_size != after and (value_size != -1 or key_to + 4 != after):
                    damage = f"message value of {value_size} bytes does not fit the message"
            if damage:
                if position == first:
                    raise CorruptRecordError(damage, offset=offset, next_offset=int(offset) + 1)
                break
            count += 1
            if magic:
                timestamp = read_i64_be(data, position + 18)
            write_i64_le(offsets, offset)
            write_i64_le(timestamps, timestamp)
            write_i32_le(key_edges, i32(key_from))
            write_i32_le(key_edges, i32(key_to))
            write_i32_le(value_edges, i32(key_to + 4))
            write_i32_le(value_edges, i32(after))
            if key_size < 0:
                null_keys += 1
                key_nulls.append(1)
            else:
                key_nulls.append(0)
            if value_size < 0:
                null_values += 1
                value_nulls.append(1)
            else:
                value_nulls.append(0)
        position = after
    some_keys, some_values = null_keys < count, null_values < count
    columns = Columns(
        data,
        memoryview(offsets.getvalue()).cast("q"),
        memoryview(timestamps.getvalue()).cast("q"),
        key_edges=memoryview(key_edges.getvalue()).cast("i") if some_keys else None,
        key_nulls=memoryview(key_nulls.getvalue()) if some_keys and null_keys else None,
        value_edges=memoryview(value_edges.getvalue()).cast("i") if some_values else None,
        value_nulls=memoryview(value_nulls.getvalue()) if some_values and null_values else None,
    )
    return columns, position


def read_fields(data: bytes, edges: memoryview | None, nulls: memoryview | None, count: int) -> list[bytes | None]:
    """``count`` keys or values as bytes."""
    fields: list[bytes | None] = []
    if edges is None:
        fields.append(None)
        return fields * count
    bounds = edges.tobytes()
    is_null = b"" if nulls is None else nulls.tobytes()
    some_null = nulls is not None
    rows: i64 = count
    row: i64 = 0
    while row < rows:
        if some_null and is_null[row]:
            fields.append(None)
        else:
            start: i64 = i64(read_i32_le(bounds, row * 8))
            end: i64 = i64(read_i32_le(bounds, row * 8 + 4))
            fields.append(data[start:end])
        row += 1
    return fields


def read_records(
    columns: Columns, first: int, stop: int, topic: str, partition: int, timestamp_type: TimestampType | int
) -> list[Record]:
    """The records of some rows, which have no headers and no leader epoch."""
    offsets = columns.offsets[first:stop].tobytes()
    timestamps = columns.timestamps_ms[first:stop].tobytes()
    key_edges, key_nulls = columns.key_edges, columns.key_nulls
    value_edges, value_nulls = columns.value_edges, columns.value_nulls
    count = len(offsets) // 8
    keys = read_fields(
        columns.data,
        None if key_edges is None else key_edges[2 * first : 2 * stop],
        None if key_nulls is None else key_nulls[first:stop],
        count,
    )
    values = read_fields(
        columns.data,
        None if value_edges is None else value_edges[2 * first : 2 * stop],
        None if value_nulls is None else value_nulls[first:stop],
        count,
    )
    records: list[Record] = []
    rows: i64 = count
    row: i64 = 0
    while row < rows:
        offset: i64 = read_i64_le(offsets, row * 8)
        timestamp: i64 = read_i64_le(timestamps, row * 8)
        records.append(
            Record(topic, partition, int(offset), int(timestamp), timestamp_type, keys[row], values[row], (), -1)
        )
        row += 1
    return records


def pack_messages(
    magic: int,
    attributes: int,
    offsets: Sequence[int],
    timestamps: Sequence[int],
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
) -> bytes:
    """Messages one behind the other; columns of one length.

    TypeError for what is not bytes, ValueError for a number beyond 64 bits.
    """
    checksum: Any = crc32
    written = BytesWriter()
    message = BytesWriter()
    kind: u8 = u8(magic)
    bits: u8 = u8(attributes)
    row: i64 = 0
    count: i64 = len(values)
    while row < count:
        key, value = keys[row], values[row]
        message.truncate(0)
        message.append(kind)
        message.append(bits)
        if kind:
            write_i64_be(message, timestamps[row])
        if key is None:
            write_i32_be(message, -1)
        else:
            write_i32_be(message, i32(len(key)))
            message.write(key)
        if value is None:
            write_i32_be(message, -1)
        else:
            write_i32_be(message, i32(len(value)))
            message.write(value)
        body = message.getvalue()
        crc: i64 = checksum(body)
        write_i64_be(written, offsets[row])
        write_i32_be(written, i32(len(body) + 4))
        write_i32_be(written, i32(crc if crc < 1 << 31 else crc - (1 << 32)))
        written.write(body)
        row += 1
    return written.getvalue()
