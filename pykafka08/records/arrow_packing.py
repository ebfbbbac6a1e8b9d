"""Arrow columns as packed records of magic 2, with no Python object for each row: the extra ``arrow``.

A record is a row of short columns (its length, offset delta, key length, ...) between the bytes of key and value, and
Arrow's join of such columns, row by row, has all records one behind the other in its buffer.  Where all rows have one
size they are a matrix, which numpy fills for a fraction of that.  The bytes are those of ``batch_packing``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any

from pykafka08.errors import ConfigError
from pykafka08.records.libraries import ARROW_MISSING
from pykafka08.wire import Buffer, encode_varint

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise ConfigError(ARROW_MISSING) from error

__all__ = ["Rows"]

Numbers = np.ndarray[Any, np.dtype[Any]]


def _table(end: int) -> tuple[pa.Array, Numbers]:
    """The numbers from -1 up to ``end`` as varints of three bytes at most, and the bytes of each."""
    numbers = np.arange(-1, end)
    septets = ((numbers << 1) ^ (numbers >> 63))[:, np.newaxis] >> (0, 7, 14)
    is_there = septets > 0
    is_there[:, 0] = True
    written = septets & 127
    written[:, :-1] |= is_there[:, 1:] * 128
    widths = is_there.sum(axis=1)
    offsets = np.cumsum([0, *widths], dtype=np.int32)
    data = written[is_there].astype(np.uint8)
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)]), widths


_TABLED = 1 << 14  # varints below come from a table
_VARINTS, _WIDTHS = _table(_TABLED)
_NO_KEY = encode_varint(-1)
_NO_HEADERS = b"\x00"
_NO_ATTRIBUTES = b"\x00"
_WIDER_FROM = (1 << 6, 1 << 13, 1 << 20, 1 << 27)  # numbers from which on varints have a byte more
_LONG_BATCH = 256  # rows of a batch from which on a matrix is quicker than a join


def _compiled_writer() -> Callable[..., list[bytes]] | None:
    """What writes rows of different sizes faster than a join, where it is compiled."""
    if isinstance(encode_varint, FunctionType):
        return None
    from pykafka08.records.batch_writer import write_rows

    return write_rows


_write_rows = _compiled_writer()


class Rows:
    """Rows of ``binary`` or ``large_binary``: values, and keys where there are any.  At least one row."""

    def __init__(self, values: pa.Array, keys: pa.Array | None) -> None:
        self._values = _Field(values)
        self._keys = None if keys is None or keys.null_count == len(keys) else _Field(keys)

    def __len__(self) -> int:
        return len(self._values.lengths)

    def content_sizes(self) -> Numbers:
        """The bytes of each row's key and value."""
        sizes = np.maximum(self._values.lengths, 0)
        return sizes if self._keys is None else sizes + np.maximum(self._keys.lengths, 0)

    def packed(self, start: int, cuts: Sequence[int], stamps: Numbers | int, first: int = 0) -> list[list[Buffer]]:
        """The records of each batch, in pieces.

        The first begins with row ``start``, and each ends before its row of ``cuts``.  ``stamps`` are timestamp deltas,
        of each row or of all; offset deltas grow by one, in the first batch from ``first``, in others from 0.
        """
        begins = [start, *cuts[:-1]]
        firsts = [first] + [0] * (len(cuts) - 1)
        if isinstance(stamps, int) and self._is_even(start, cuts):
            stamp = encode_varint(stamps)
            return [
                [self._matrix(begin, end, delta, stamp)] for begin, end, delta in zip(begins, cuts, firsts, strict=True)
            ]
        pack = self._join if _write_rows is None else self._write
        return pack(start, begins, cuts, firsts, stamps)

    def _write(
        self, start: int, begins: Sequence[int], cuts: Sequence[int], firsts: Sequence[int], stamps: Numbers | int
    ) -> list[list[Buffer]]:
        """Rows of any size, by compiled code."""
        assert _write_rows is not None
        batches: list[list[Buffer]] = []
        for begin, end, first in zip(begins, cuts, firsts, strict=True):
            each, of_all = b"", 0
            if isinstance(stamps, int):
                of_all = stamps
            else:
                each = _as_bytes(stamps[begin - start : end - start])
            keys = (b"", None) if self._keys is None else self._keys.laid_out(begin, end)
            batches.append([*_write_rows(*self._values.laid_out(begin, end), *keys, each, of_all, first)])
        return batches

    def _join(
        self, start: int, begins: Sequence[int], cuts: Sequence[int], firsts: Sequence[int], stamps: Numbers | int
    ) -> list[list[Buffer]]:
        """The same, interpreted."""
        counts = np.subtract(cuts, begins)
        deltas = np.arange(cuts[-1] - start) - np.repeat(np.subtract(begins, start) - firsts, counts)
        data, ends = self._joined(start, cuts[-1], deltas, stamps)
        bounds = [0, *ends[np.subtract(cuts, start) - 1].tolist()]
        return [[data[bounds[index] : bounds[index + 1]]] for index in range(len(cuts))]

    def _joined(self, start: int, end: int, deltas: Numbers, stamps: Numbers | int) -> tuple[memoryview, Numbers]:
        """The records of these rows, and where each ends."""
        offsets, sizes = _varints(deltas)
        columns: list[Any] = [_NO_ATTRIBUTES, offsets]
        if isinstance(stamps, int):
            columns[0] += encode_varint(stamps)
        else:
            stamp_varints, widths = _varints(stamps)
            columns.insert(1, stamp_varints)
            sizes = sizes + widths
        if self._keys is None:
            columns.append(_NO_KEY)
        else:
            columns += self._keys.written(start, end)
            sizes = sizes + self._keys.spans(start, end)
        columns += [*self._values.written(start, end), _NO_HEADERS]
        constant = sum(len(each) for each in columns if isinstance(each, bytes))
        sizes = sizes + self._values.spans(start, end) + constant
        heads, widths = _varints(sizes)
        ends = np.cumsum(sizes + widths)
        records = pc.binary_join_element_wise(heads, *columns, b"")
        return memoryview(records.buffers()[2])[: int(ends[-1])], ends

    def _is_even(self, start: int, cuts: Sequence[int]) -> bool:
        """All rows have one size, and batches are long enough."""
        if cuts[-1] - start < _LONG_BATCH * len(cuts):
            return False
        return self._values.is_even and (self._keys is None or self._keys.is_even)

    def _matrix(self, start: int, end: int, first: int, stamp: bytes) -> memoryview:
        """The records of one batch of rows that have one size; the first has the offset delta ``first``."""
        bounds = [first, *(bound for bound in _WIDER_FROM if first < bound < first + end - start), first + end - start]
        parts = [self._block(start + low - first, start + high - first, low, stamp) for low, high in pairwise(bounds)]
        records: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return memoryview(records)

    def _block(self, start: int, end: int, first: int, stamp: bytes) -> Numbers:
        """The same where all offset deltas have one width."""
        deltas = np.arange(first, first + end - start)
        width = len(encode_varint(first))
        fields = [self._values] if self._keys is None else [self._keys, self._values]
        before = _NO_ATTRIBUTES + stamp
        size = len(before) + width + len(_NO_HEADERS) + (len(_NO_KEY) if self._keys is None else 0)
        size += sum(int(field.spans(0, 1)[0]) for field in fields)
        before = encode_varint(size) + before
        records = np.empty((end - start, len(encode_varint(size)) + size), np.uint8)
        at = len(before)
        records[:, :at] = np.frombuffer(before, np.uint8)
        for byte in range(width):
            records[:, at + byte] = (deltas << 1) >> 7 * byte & 127 | (128 if byte < width - 1 else 0)
        at += width
        if self._keys is None:
            records[:, at] = _NO_KEY[0]
            at += 1
        for field in fields:
            length = int(field.lengths[0])
            written = encode_varint(length)
            records[:, at : at + len(written)] = np.frombuffer(written, np.uint8)
            at += len(written)
            records[:, at : at + length] = field.matrix(start, end)
            at += length
        records[:, at] = _NO_HEADERS[0]
        return records.reshape(-1)


class _Field:
    """A column of bytes; ``lengths`` has -1 for null."""

    def __init__(self, column: pa.Array) -> None:
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        self._column = column if nulls is None else column.fill_null(b"")
        self._is_large = pa.types.is_large_binary(column.type)
        kind = np.dtype(np.int64 if self._is_large else np.int32)
        _, offsets, data = self._column.buffers()
        self._bounds = np.frombuffer(offsets, kind, len(column) + 1, self._column.offset * kind.itemsize)
        self._data = data if data is not None else pa.py_buffer(b"")
        self.lengths = np.diff(self._bounds).astype(np.int64)
        self.is_even = nulls is None and bool((self.lengths == self.lengths[0]).all())
        if nulls is not None:
            self.lengths[nulls] = -1

    def spans(self, start: int, end: int) -> Numbers:
        """Bytes of each with the length before it."""
        lengths = self.lengths[start:end]
        return np.maximum(lengths, 0) + _widths(lengths)

    def written(self, start: int, end: int) -> tuple[pa.Array, pa.Array]:
        """The lengths as varints, and the bytes."""
        return _varints(self.lengths[start:end])[0], self._binary(start, end)

    def laid_out(self, start: int, end: int) -> tuple[bytes, bytes]:
        """The bytes of all one behind the other, and the lengths, as ``write_rows`` takes them."""
        first, last = int(self._bounds[start]), int(self._bounds[end])
        return self._data.slice(first, last - first).to_pybytes(), _as_bytes(self.lengths[start:end])

    def matrix(self, start: int, end: int) -> Numbers:
        """The bytes, a row for each, of a column that is even."""
        first, last = int(self._bounds[start]), int(self._bounds[end])
        return np.frombuffer(self._data, np.uint8)[first:last].reshape(end - start, -1)

    def _binary(self, start: int, end: int) -> pa.Array:
        if not self._is_large:
            return self._column.slice(start, end - start)
        bounds = self._bounds[start : end + 1]
        offsets = (bounds - bounds[0]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets), self._data.slice(int(bounds[0]))]
        return pa.Array.from_buffers(pa.binary(), end - start, buffers)


def _as_bytes(numbers: Numbers) -> bytes:
    return numbers.astype("<i8", copy=False).tobytes()


def _widths(numbers: Numbers) -> Numbers:
    """Bytes of each number's varint."""
    return _WIDTHS[numbers + 1] if _are_tabled(numbers) else _rare_varints(numbers)[1]


def _varints(numbers: Numbers) -> tuple[pa.Array, Numbers]:
    """Each number as a varint, and its bytes."""
    if not _are_tabled(numbers):
        return _rare_varints(numbers)
    places = numbers + 1
    return pc.take(_VARINTS, pa.array(places), boundscheck=False), _WIDTHS[places]


def _are_tabled(numbers: Numbers) -> bool:
    return bool(numbers.min() >= -1 and numbers.max() < _TABLED)


def _rare_varints(numbers: Numbers) -> tuple[pa.Array, Numbers]:
    kinds, places = np.unique(numbers, return_inverse=True)
    varints = [encode_varint(number) for number in kinds.tolist()]
    return pa.array(varints, pa.binary()).take(pa.array(places)), np.array(list(map(len, varints)))[places]
