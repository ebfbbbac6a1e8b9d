"""Batches of magic 2 whose records are equally long, but for the digits of their deltas, read with numpy as tables.

Where the varint of an offset or timestamp grows by a byte, another table begins.  Everything that says where a field
lies is looked at in every record.  What does not fit is left to ``decode_numpy``, and at last to ``decode_loop``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pykafka08.errors import RemoteProtocolError
from pykafka08.records.columns import Columns
from pykafka08.records.packed import PackedRecords, not_negative
from pykafka08.wire import read_varint, read_varlong

__all__ = ["read_columns"]

_FEW = 16  # records that are hardly a table
_MANY = 256  # average records per batch from which several batches are read faster as tables
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


class _Table(NamedTuple):
    """Records of one shape."""

    shape: _Shape
    start: int
    """The position of its first record in the bytes."""
    rows: Any
    """A row of bytes for each record."""


def read_columns(batches: Sequence[PackedRecords]) -> Columns | None:
    """The records of batches that lie in the same bytes.

    None if the records of a batch are not alike, if they have headers, or if the bytes may be damaged.  Also None for
    several small batches, which ``decode_numpy`` reads faster.
    """
    if len(batches) > 1 and sum(packed.count for packed in batches) < _MANY * len(batches):
        return None
    if not all(-_FAR < packed.base_timestamp < _FAR and packed.count and _looks_alike(packed) for packed in batches):
        return None
    raw = np.frombuffer(batches[0].data, dtype=np.uint8)
    tables: list[list[_Table]] = []
    for packed in batches:
        found = _tables(packed, raw)
        if found is None:
            return None
        tables.append(found)
    return _columns(batches, tables)


def _tables(packed: PackedRecords, raw: Any) -> list[_Table] | None:
    """The records of one batch; None if they are not alike."""
    tables: list[_Table] = []
    position, left, small = packed.start, packed.count, 0
    while left:
        table = _table(packed, raw, position, left)
        if table is None:
            return None
        rows = len(table.rows)
        small += rows < _FEW
        if small > _MOST_SMALL_TABLES:
            return None
        tables.append(table)
        position += rows * table.shape.length
        left -= rows
    return tables if position == packed.end else None


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


def _table(packed: PackedRecords, raw: Any, position: int, left: int) -> _Table | None:
    """The records from ``position`` on that are alike."""
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
    return _Table(shape, position, table)


def _columns(batches: Sequence[PackedRecords], tables_of: list[list[_Table]]) -> Columns | None:
    tables = [table for tables in tables_of for table in tables]
    first = tables[0].shape
    null_key, null_value = first.key_size < 0, first.value_size < 0
    shapes = [table.shape for table in tables]
    if any((each.key_size < 0) != null_key or (each.value_size < 0) != null_value for each in shapes):
        return None
    if any(max(each.delta - each.stamp, each.key.start - each.delta) > _LONGEST_DELTA for each in shapes):
        return None
    offsets, stamps = [], []
    for packed, own in zip(batches, tables_of, strict=True):
        numbers = np.concatenate([_numbers(each.rows, each.shape.delta, each.shape.key.start) for each in own])
        if numbers[0] < 0 or numbers[-1] > packed.last_offset - packed.base_offset:
            return None
        offsets.append(numbers + packed.base_offset)
        stamps.append(_timestamps(packed, own))
    all_offsets = np.concatenate(offsets)
    if (all_offsets[1:] <= all_offsets[:-1]).any():
        return None
    keys = [(each, each.shape.key.stop, each.shape.key_size) for each in tables]
    values = [(each, each.shape.value.stop, each.shape.value_size) for each in tables]
    return Columns(
        batches[0].data,
        all_offsets.data,
        np.concatenate(stamps).data,
        key_edges=None if null_key else _edges(keys),
        value_edges=None if null_value else _edges(values),
    )


def _timestamps(packed: PackedRecords, tables: list[_Table]) -> Any:
    if packed.fixed_timestamp is not None:
        return np.full(packed.count, packed.fixed_timestamp, dtype=np.int64)
    stamps = np.concatenate([_numbers(each.rows, each.shape.stamp, each.shape.delta) for each in tables])
    return stamps + packed.base_timestamp


def _numbers(table: Any, start: int, stop: int) -> Any:
    """The signed varints that fill these columns."""
    raw = np.zeros(len(table), dtype=np.int64)
    for place in range(start, stop):
        raw |= (table[:, place] & 127).astype(np.int64) << 7 * (place - start)
    return (raw >> 1) ^ -(raw & 1)


def _edges(fields: list[tuple[_Table, int, int]]) -> memoryview:
    """Starts and ends of a field in all records.  ``fields``: table, and the field's place and size in a record."""
    edges = np.empty(2 * sum(len(table.rows) for table, _, _ in fields), dtype=np.int32)
    done = 0
    for table, place, size in fields:
        starts = edges[done : done + 2 * len(table.rows) : 2]
        first, step = table.start + place, table.shape.length
        starts[:] = np.arange(first, first + len(starts) * step, step, dtype=np.int32)
        np.add(starts, size, out=edges[done + 1 : done + 2 * len(table.rows) : 2])
        done += 2 * len(table.rows)
    return edges.data
