"""Fetched batches as one pyarrow RecordBatch: the extra ``arrow``, which brings pyarrow and numpy.

Decoders leave edges (where each value starts and ends), and Arrow's binary arrays are edges over bytes: the edges of
all values are an array in which every second item is a value and the others are what lies between.  Taking the values
out of it copies each of them once, so that the result keeps no fetched bytes alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeVar

from pykafka08.errors import ConfigError, CorruptRecordError, LocalProtocolError
from pykafka08.records.columns import Columns
from pykafka08.records.fetched import FetchedBatch, gather_columns
from pykafka08.records.libraries import ARROW_MISSING
from pykafka08.records.record import parse_headers

try:
    import numpy as np
    import pyarrow as pa
except ImportError as error:
    raise ConfigError(ARROW_MISSING) from error

__all__ = ["SCHEMA", "ArrowFields", "array_of", "rows_to_arrow", "to_arrow"]

_HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])

#: The columns of every RecordBatch; ``timestamp`` is null where records have none (magic 0, or -1 in later formats).
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", _HEADER, nullable=False)), nullable=False),
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
    ]
)

_Part = TypeVar("_Part", FetchedBatch, Columns)

Numbers = np.ndarray[Any, np.dtype[Any]]

_LARGEST = (1 << 31) - 1  # edges have 32 bits
_NO_TIMESTAMP = -1


def to_arrow(batches: Sequence[FetchedBatch]) -> pa.RecordBatch:
    """All records of ``batches``, one row each, in their order; see ``SCHEMA`` for the columns.

    The batches may be of several topics and partitions.  CorruptRecordError for the first that is damaged.
    LocalProtocolError for more than 2 GiB of unpacked bytes.
    """
    table, error = rows_to_arrow(batches)
    if error is not None:
        raise error
    return table


def rows_to_arrow(batches: Sequence[FetchedBatch]) -> tuple[pa.RecordBatch, CorruptRecordError | None]:
    """As :func:`to_arrow`, but where headers are no headers: the rows before them, and what is wrong with the next."""
    batches = [batch for batch in batches if len(batch)]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=SCHEMA), None
    fields = ArrowFields(batches)
    headers, rows, error = fields.headers_and_damage()
    columns = [
        fields.offsets(),
        fields.timestamps("ms", none_is_null=True),
        fields.keys(),
        fields.values(),
        headers,
        _topics([batch.topic for batch in batches], fields.counts, fields.count),
        _partitions([batch.partition for batch in batches], fields.counts, fields.count),
    ]
    table = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    return table if error is None else table.slice(0, rows), error


class ArrowFields:
    """The fields of all records of ``batches`` as arrays, each made when it is asked for.

    No batch may be empty.  ``count`` is the number of records, ``counts`` that of each batch.  Errors are those of
    :func:`to_arrow`.
    """

    def __init__(self, batches: Sequence[FetchedBatch]) -> None:
        self._batches = batches
        self._pieces = gather_columns(batches)
        self._joined_data: tuple[bytes, list[int]] | None = None
        self.counts = np.array([len(batch) for batch in batches])
        self.count = int(self.counts.sum())

    def offsets(self) -> pa.Array:
        """As ``int64``."""
        return array_of(pa.int64(), _joined_numbers([piece.offsets for piece in self._pieces]))

    def timestamps(self, unit: str, *, none_is_null: bool = False) -> pa.Array:
        """As ``timestamp`` in UTC, in ``unit`` "ms" or "us"; a record without one has -1 ms or null."""
        kind = pa.timestamp(unit, tz="UTC")
        numbers = _joined_numbers([piece.timestamps_ms for piece in self._pieces])
        nulls = numbers == _NO_TIMESTAMP if none_is_null else None
        if unit == "us":
            numbers = numbers * 1000
        if nulls is not None and nulls.any():
            return array_of(kind, numbers, nulls)
        return array_of(kind, numbers)

    def keys(self) -> pa.Array:
        """As ``binary``."""
        return self._binary([(piece.key_edges, piece.key_nulls) for piece in self._pieces])

    def values(self) -> pa.Array:
        """As ``binary``."""
        return self._binary([(piece.value_edges, piece.value_nulls) for piece in self._pieces])

    def headers(self) -> pa.Array:
        """As ``list<struct<key: string, value: binary>>``, empty where a record has none."""
        headers, _, error = self.headers_and_damage()
        if error is not None:
            raise error
        return headers

    def headers_and_damage(self) -> tuple[pa.Array, int, CorruptRecordError | None]:
        """The headers, how many rows have them, and the error that stands in the next one."""
        return _headers(self._pieces, self._batches, self.count)

    def has_headers(self) -> bool:
        """False if no record has any."""
        return any(piece.header_edges is not None for piece in self._pieces)

    def _binary(self, fields: Sequence[tuple[memoryview | None, memoryview | None]]) -> pa.Array:
        if all(edges is None for edges, _ in fields):
            return pa.nulls(self.count, pa.binary())
        if self._joined_data is None:
            self._joined_data = _joined(self._pieces)
        data, shifts = self._joined_data
        edges = _edges([edges for edges, _ in fields], self._pieces, shifts)
        return _binary(data, edges, _nulls(fields, self._pieces), self.count)


def _joined(pieces: Sequence[Columns]) -> tuple[bytes, list[int]]:
    """The bytes that all pieces lie in, and how far each is moved there."""
    if len(pieces) == 1:
        return pieces[0].data, [0]
    shifts = []
    parts = []
    size = 0
    for piece in pieces:
        # No more than its own bytes: what was between two pieces may have been other batches of the same answer.
        start, end = _span(piece)
        shifts.append(size - start)
        parts.append(memoryview(piece.data)[start:end])
        size += end - start
    if size > _LARGEST:
        raise LocalProtocolError(f"{size} bytes of records are too many for one Arrow batch: at most {_LARGEST}")
    return b"".join(parts), shifts


def _span(piece: Columns) -> tuple[int, int]:
    """Where the keys and values begin and end."""
    some = [edges for edges in (piece.key_edges, piece.value_edges) if edges is not None and len(edges)]
    return (min(edges[0] for edges in some), max(edges[-1] for edges in some)) if some else (0, 0)


def _edges(columns: Sequence[memoryview | None], pieces: Sequence[Columns], shifts: Sequence[int]) -> Numbers | None:
    """The edges of one field of all pieces; None if it is null everywhere."""
    first = columns[0]
    if len(columns) == 1:
        return None if first is None else np.frombuffer(first, dtype=np.int32)
    if columns.count(None) == len(columns):
        return None
    arrays = []
    for edges, piece, shift in zip(columns, pieces, shifts, strict=True):
        if edges is None:
            arrays.append(np.full(2 * len(piece), _span(piece)[0] + shift, dtype=np.int32))
        else:
            arrays.append(np.frombuffer(edges, dtype=np.int32) + shift)
    return np.concatenate(arrays, dtype=np.int32)


def _nulls(fields: Sequence[tuple[memoryview | None, memoryview | None]], pieces: Sequence[Columns]) -> Numbers | None:
    """True for each null; None if there is none, or nothing else."""
    if all(edges is None for edges, _ in fields) or all(edges is not None and nulls is None for edges, nulls in fields):
        return None
    arrays = []
    for (edges, nulls), piece in zip(fields, pieces, strict=True):
        if edges is None or nulls is None:
            arrays.append(np.full(len(piece), edges is None))
        else:
            arrays.append(np.frombuffer(nulls, dtype=np.bool_))
    return np.concatenate(arrays)


def _binary(data: bytes, edges: Numbers | None, nulls: Numbers | None, count: int) -> pa.Array:
    if edges is None:
        return pa.nulls(count, pa.binary())
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(data)]
    fields_and_gaps = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    rows = np.arange(0, 2 * count, 2, dtype=np.int32)
    return fields_and_gaps.take(array_of(pa.int32(), rows, nulls))


def _joined_numbers(columns: Sequence[memoryview]) -> Numbers:
    arrays = [np.frombuffer(each, np.int64) for each in columns]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def array_of(kind: pa.DataType, numbers: Numbers, nulls: Numbers | None = None) -> pa.Array:
    """``numbers``, which are as wide as ``kind``, without a copy; null where ``nulls`` is true.

    Not ``pyarrow.array``, which imports pandas where it is installed: half a second of a process that may be new.
    """
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(numbers)])


def _headers(
    pieces: Sequence[Columns], batches: Sequence[FetchedBatch], count: int
) -> tuple[pa.Array, int, CorruptRecordError | None]:
    """The headers, how many rows have them, and the error that stands in the next one."""
    ends = np.zeros(count + 1, dtype=np.int32)
    if all(piece.header_edges is None for piece in pieces):
        return _header_lists(ends, _NO_HEADERS), count, None
    names: list[str] = []
    values: list[bytes | None] = []
    rows, damage = 0, None
    try:
        for written in chain.from_iterable(piece.headers_in_bytes() or [b""] * len(piece) for piece in pieces):
            if written:
                headers = parse_headers(written)
                names += [name for name, _ in headers]
                values += [value for _, value in headers]
            rows += 1
            ends[rows] = len(names)
    except CorruptRecordError as error:
        ends[rows + 1 :] = len(names)
        damage = _placed(error, pieces, batches, rows)
    return _header_lists(ends, _header_items(names, values)), rows, damage


def _header_items(names: Sequence[str], values: Sequence[bytes | None]) -> pa.Array:
    return pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=list(_HEADER)
    )


def _header_lists(ends: Numbers, items: pa.Array) -> pa.Array:
    """A list for each row; ``ends`` are theirs among ``items``, after a zero."""
    buffers = [None, pa.py_buffer(ends)]
    return pa.Array.from_buffers(SCHEMA.field("headers").type, len(ends) - 1, buffers, children=[items])


_NO_HEADERS = pa.nulls(0, _HEADER)


def _placed(
    error: CorruptRecordError, pieces: Sequence[Columns], batches: Sequence[FetchedBatch], row: int
) -> CorruptRecordError:
    """The error about the record in one row: reading goes on behind it."""
    batch, _ = _at(batches, row)
    piece, row = _at(pieces, row)
    offset = piece.offsets[row]
    placed = CorruptRecordError(
        error.message, topic=batch.topic, partition=batch.partition, offset=offset, next_offset=offset + 1
    )
    placed.__cause__ = error
    return placed


def _at(parts: Sequence[_Part], row: int) -> tuple[_Part, int]:
    """The part that has the row, and which of its rows it is."""
    for part in parts:
        if row < len(part):
            break
        row -= len(part)
    return part, row


def _topics(topics: Sequence[str], counts: Numbers, count: int) -> pa.Array:
    names = list(dict.fromkeys(topics))
    if len(names) == 1:
        rows = np.zeros(count, dtype=np.int32)
    else:
        rows = np.repeat(np.array([names.index(topic) for topic in topics], dtype=np.int32), counts)
    # Not looked through for a row that no name belongs to: a twentieth of what a table costs.
    return pa.DictionaryArray.from_arrays(array_of(pa.int32(), rows), pa.array(names, pa.string()), safe=False)


def _partitions(partitions: Sequence[int], counts: Numbers, count: int) -> pa.Array:
    is_one = len(set(partitions)) == 1
    numbers = np.full(count, partitions[0], dtype=np.int32) if is_one else np.repeat(partitions, counts)
    return array_of(pa.int32(), numbers.astype(np.int32, copy=False))
