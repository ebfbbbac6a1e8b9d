"""Magic 0 and 1 read the slow and simple way: what the decoders of message sets are held against."""

from __future__ import annotations

import struct

from pykafka08.records.checksums import crc32

__all__ = ["Row", "read_run"]

Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key, value."""

_SMALLEST = (26, 34)


def read_run(data: bytes, start: int, end: int, fetch_offset: int, is_inner: bool) -> tuple[list[Row], int] | int:
    """The rows of a run and where it ends; the offset of the first message alone if it is damaged."""
    magic, attributes = data[start + 16], data[start + 17]
    rows: list[Row] = []
    position = start
    while position + _SMALLEST[magic] <= end:
        offset, size, crc = struct.unpack_from(">qiI", data, position)
        after = position + 12 + size
        if data[position + 16] != magic or size + 12 < _SMALLEST[magic] or after > end:
            break
        others = data[position + 17]
        if (others & 7 if is_inner else 0) or (not is_inner and others != attributes):
            break
        if offset >= fetch_offset:
            row = _message(data, position, after, magic) if crc32(data[position + 16 : after]) == crc else None
            if row is None:
                if position == start:
                    return offset
                break
            rows.append((offset, *row))
        position = after
    return rows, position


def _message(data: bytes, position: int, after: int, magic: int) -> tuple[int, bytes | None, bytes | None] | None:
    timestamp, key_at = struct.unpack_from(">q", data, position + 18)[0] if magic else -1, position + 18 + 8 * magic
    fields: list[bytes | None] = []
    place = key_at
    for _ in range(2):
        if place + 4 > after:
            return None
        size = int.from_bytes(data[place : place + 4], "big", signed=True)
        place += 4
        if size < -1 or place + max(size, 0) > after:
            return None
        fields.append(None if size < 0 else data[place : place + size])
        place += max(size, 0)
    return (timestamp, fields[0], fields[1]) if place == after else None
