"""A batch of magic 2 whose records are equally long, but for the digits of their deltas, read with numpy as tables.

Where the varint of an offset or timestamp grows by a byte, another table begins.  Everything that says where a field
lies is looked at in every record.  What does not fit is left to ``decode_numpy``, and at last to ``decode_loop``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pykafka08.errors import RemoteProtocolError
from pykafka08.records.columns import Columns
from pykafka08.records.packed import PackedRecords, not_negative
from pykafka08.wire import read_varint, read_varlong

__all__ = ["read_columns"]

_FEW = 16  # records that are hardly a table
_MOST_SMALL_TABLES = 4
_LONGEST_DELTA = 8  # bytes: 56 bits
_FAR = 1 << 62  # base timestamps beyond it could make a sum pass 64 bits


class _Shape:
    """Where the fields of a record lie, in bytes from its start; a size of -1 is null."""

    __slots__ = ("attributes", "delta", "key", "key_size", "length", "stamp", "value", "value_size")

    def __init__(self, data: bytes, position: int) -> None:
        size, at = read_varint(data, position)
        self.attributes = at - position
        self.length = self.attributes + size
        self.stamp = self.attributes + 1
        _, at = read_varlong(data, at + 1)
        self.delta = at - position
        _, at = read_varint(data, at)
        self.key_size, after = read_varint(data, at)
        self.key = slice(at - position, after - position)  # where its length is written
        at = after + max(self.key_size, 0)
        self.value_size, after = read_varint(data, at)
        self.value = slice(at - position, after - position)

    def is_sound(self) -> bool:
        """True if the fields fill the record and one byte is left, which counts the headers."""
        if self.key_size < -1 or self.value_size < -1 or self.key.start - self.stamp > 2 * _LONGEST_DELTA:
            return False
        return self.value.stop + max(self.value_size, 0) + 1 == self.length


def read_columns(packed: PackedRecords) -> Columns | None:
    """The records; None if they are not alike, or have headers, or the bytes may be damaged."""
    if not -_FAR < packed.base_timestamp < _FAR or not packed.count:
        return None
    if not _looks_alike(packed):
        return None
    raw = np.frombuffer(packed.data, dtype=np.uint8)
    shapes: list[tuple[_Shape, Any]] = []
    starts: list[Any] = []
    position, left, small = packed.start, packed.count, 0
    while left:
        table = _table(packed, raw, position, left)
        if table is None:
            return None
        rows = len(table[1])
        small += rows < _FEW
        if small > _MOST_SMALL_TABLES:
            return None
        shapes.append(table)
        starts.append(np.arange(position, position + rows * table[0].length, table[0].length, dtype=np.int32))
        position += rows * table[0].length
        left -= rows
    if position != packed.end:
        return None
    return _columns(packed, shapes, starts)


def _looks_alike(packed: PackedRecords) -> bool:
    """True if the second record, the third and the fourth are of one length: cheap, and mostly enough to know."""
    sizes = []
    position = packed.start
    try:
        for _ in range(min(packed.count, 4)):
            size, after = read_varint(packed.data, position)
            sizes.append(size)
            position = after + not_negative(size)
    except (IndexError, RemoteProtocolError):
        return False
    return len(set(sizes[1:])) <= 1


def _table(packed: PackedRecords, raw: Any, position: int, left: int) -> tuple[_Shape, Any] | None:
    """The records from ``position`` on that are alike, as rows of bytes."""
    try:
        shape = _Shape(packed.data, position)
    except (IndexError, RemoteProtocolError):
        return None
    if not shape.is_sound():
        return None
    count = min(left, (packed.end - position) // shape.length)
    if not count:
        return None
    table = raw[position : position + count * shape.length].reshape(count, shape.length)
    # Column by column: numpy takes its time for each row of a table that has only a few columns.
    for place in range(shape.attributes):
        is_alike = table[:, place] == table[0, place]
        if not is_alike.all():
            table = table[: int(is_alike.argmin())]
    for place in (*range(shape.key.start, shape.key.stop), *range(shape.value.start, shape.value.stop)):
        if not (table[:, place] == table[0, place]).all():
            return None
    for place in range(shape.stamp, shape.key.start):  # varints end at a byte below 128
        column = table[:, place]
        if (column.min() if table[0, place] >= 128 else 255 - column.max()) < 128:
            return None
    if table[:, -1].any():
        return None
    return shape, table


def _columns(packed: PackedRecords, tables: list[tuple[_Shape, Any]], starts: list[Any]) -> Columns | None:
    first = tables[0][0]
    null_key, null_value = first.key_size < 0, first.value_size < 0
    if any((each.key_size < 0) != null_key or (each.value_size < 0) != null_value for each, _ in tables):
        return None
    if any(max(each.delta - each.stamp, each.key.start - each.delta) > _LONGEST_DELTA for each, _ in tables):
        return None
    offsets = np.concatenate([_numbers(rows, shape.delta, shape.key.start) for shape, rows in tables])
    if offsets[0] < 0 or offsets[-1] > packed.last_offset - packed.base_offset or (offsets[1:] <= offsets[:-1]).any():
        return None
    offsets += packed.base_offset
    if packed.fixed_timestamp is None:
        stamps = np.concatenate([_numbers(rows, shape.stamp, shape.delta) for shape, rows in tables])
        stamps += packed.base_timestamp
    else:
        stamps = np.full(packed.count, packed.fixed_timestamp, dtype=np.int64)
    keys = [(each + shape.key.stop, shape.key_size) for each, (shape, _) in zip(starts, tables, strict=True)]
    values = [(each + shape.value.stop, shape.value_size) for each, (shape, _) in zip(starts, tables, strict=True)]
    return Columns(
        packed.data,
        offsets.data,
        stamps.data,
        key_edges=None if null_key else _edges(keys, packed.count),
        value_edges=None if null_value else _edges(values, packed.count),
    )


def _numbers(table: Any, start: int, stop: int) -> Any:
    """The signed varints that fill these columns."""
    raw = np.zeros(len(table), dtype=np.int64)
    for place in range(start, stop):
        raw |= (table[:, place] & 127).astype(np.int64) << 7 * (place - start)
    return (raw >> 1) ^ -(raw & 1)


def _edges(fields: list[tuple[Any, int]], count: int) -> memoryview:
    edges = np.empty(2 * count, dtype=np.int32)
    edges[0::2] = np.concatenate([starts for starts, _ in fields])
    edges[1::2] = np.concatenate([starts + size for starts, size in fields])
    return edges.data
