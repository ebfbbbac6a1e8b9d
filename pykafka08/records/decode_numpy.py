"""Magic 2 read with numpy: what an interpreter does with many records at once.  The same results as ``decode_loop``.

A record starts with its length, mostly in one or two bytes, and a zero byte of attributes.  So each zero byte makes
what is before it a candidate for the start of a record; those that no other candidate's end points to are dropped, and
what is left must be one chain from the first record of each batch to its end, as long as the batch says.  Whatever is
unusual (longer lengths, many zero bytes, damage) is left to ``decode_loop``, whose word is final.
"""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import pyarrow as pa
except ImportError:
    pa = None

from pykafka08.records import decode_stride
from pykafka08.records.columns import Columns
from pykafka08.records.packed import PackedRecords

__all__ = ["prepare", "read_columns", "slices"]

_Numbers = np.ndarray[Any, np.dtype[Any]]

_ROUNDS = 4  # of dropping candidates: random bytes need two, text one
_LARGEST_RECORD = 8191  # longer ones have lengths of three bytes
_SMALLEST_RECORD = 6 << 1  # as its length is written
_SHORT = 192  # bytes of a record that pyarrow's way is quicker for
_AT_ONCE = 1024  # bytes objects, so that they are still in the cache when they go into the list
_FAR = 1 << 62  # base timestamps beyond it could make a sum pass 64 bits


def prepare() -> None:
    """Have pyarrow import what it leaves until its first use: its functions, and pandas where that is installed."""
    if pa is not None:
        pa.array(np.zeros(1)).take(pa.array([0]))


def read_columns(batches: list[PackedRecords]) -> Columns | None:
    """The records of batches that lie in the same bytes; None if they are not as usual, which may be damage."""
    alike = decode_stride.read_columns(batches)
    if alike is not None:
        return alike
    data = batches[0].data
    raw = np.frombuffer(data, dtype=np.uint8)
    starts = np.array([packed.start for packed in batches])
    ends = np.array([packed.end for packed in batches])
    counts = np.array([packed.count for packed in batches])
    count = int(counts.sum())
    if not counts.all() or (starts[1:] < ends[:-1]).any() or int((ends - starts).sum()) > count * _LARGEST_RECORD:
        return None
    if any(not -_FAR < packed.base_timestamp < _FAR for packed in batches):
        return None
    bounds = _records(raw, starts, ends, counts, count)
    if bounds is None:
        return None
    try:
        return _fields(data, raw, batches, counts, *bounds)
    except IndexError:
        return None


def _records(
    raw: _Numbers, starts: _Numbers, ends: _Numbers, counts: _Numbers, count: int
) -> tuple[_Numbers, _Numbers] | None:
    """Where each record's attributes are, and its end; None if no chain is found."""
    first, last = int(starts[0]), int(ends[-1])
    zeros = _positions(raw[first + 1 : last] == 0)
    zeros += first + 1
    near = raw[zeros - 1]
    far = raw[zeros - 2]
    if zeros.size and zeros[0] == first + 1:
        far[0] = 0  # a length of one byte: what is before it is no part of the records
    # Half of all zero bytes, and more, go here, before anything is made as wide as a position.
    rows = np.flatnonzero((near < 128) & (np.where(far < 128, near, far) & 1 == 0))
    zeros, near, far = zeros[rows], near[rows], far[rows]
    is_long = far >= 128
    sizes = near.astype(np.int64)
    sizes = np.where(is_long, (sizes << 7) | (far & 127), sizes)
    after = zeros + (sizes >> 1)
    heads = zeros - 1 - is_long
    is_candidate = (sizes >= _SMALLEST_RECORD) & (after <= last)
    zeros, heads, after = zeros[is_candidate], heads[is_candidate], after[is_candidate]
    for _ in range(_ROUNDS):
        if len(heads) <= count:
            break
        is_pointed_to = np.zeros(last - first + 1, dtype=np.bool_)
        is_pointed_to[after - first] = True
        is_pointed_to[starts - first] = True
        kept = is_pointed_to[heads - first]
        zeros, heads, after = zeros[kept], heads[kept], after[kept]
    if len(heads) != count:
        return None
    firsts = np.cumsum(counts) - counts
    followers = np.empty(count, dtype=np.int64)
    followers[:-1] = heads[1:]
    followers[firsts[1:] - 1] = ends[:-1]
    followers[-1] = last
    if not np.array_equal(after, followers) or not np.array_equal(heads[firsts], starts):
        return None
    return zeros, after


def _positions(is_there: _Numbers) -> _Numbers:
    """As ``flatnonzero``; where most are not there, eight are passed over at a time."""
    whole = len(is_there) & ~7
    eights = is_there[:whole].view(np.uint64)
    rows = np.flatnonzero(eights != 0)
    within = np.flatnonzero(eights[rows].view(np.bool_))
    positions = rows[within >> 3]
    positions <<= 3
    positions += within & 7
    return np.concatenate([positions, np.flatnonzero(is_there[whole:]) + whole])


def _fields(
    data: bytes, raw: _Numbers, batches: list[PackedRecords], counts: _Numbers, attributes: _Numbers, ends: _Numbers
) -> Columns | None:
    stamps = _varints(raw, attributes + 1, 5)
    if stamps is None:
        return None
    deltas = _varints(raw, stamps[1], 4)
    if deltas is None:
        return None
    keys = _lengths(raw, deltas[1])
    if keys is None:
        return None
    values = _lengths(raw, keys[1])
    if values is None or not (values[1] < ends).all():
        return None
    has_headers = raw[values[1]] != 0
    if not (has_headers | (values[1] + 1 == ends)).all():
        return None
    offsets = _signed(deltas[0])
    spans = np.array([packed.last_offset - packed.base_offset for packed in batches])
    if offsets.min() < 0 or (offsets > _spread(spans, counts)).any():
        return None
    offsets += _spread(np.array([packed.base_offset for packed in batches]), counts)
    if (offsets[1:] <= offsets[:-1]).any():
        return None
    if any(packed.fixed_timestamp is not None for packed in batches):
        fixed = [packed.fixed_timestamp for packed in batches]
        if None in fixed:
            return None
        timestamps = np.repeat(np.array(fixed, dtype=np.int64), counts)
    else:
        timestamps = _signed(stamps[0])
        timestamps += _spread(np.array([packed.base_timestamp for packed in batches]), counts)
    return Columns(
        data,
        offsets.data,
        timestamps.data,
        key_edges=_edges(*keys),
        key_nulls=_nulls(keys[2]),
        value_edges=_edges(*values),
        value_nulls=_nulls(values[2]),
        header_edges=_interleaved(values[1], np.where(has_headers, ends, values[1])) if has_headers.any() else None,
    )


def _varints(raw: _Numbers, positions: _Numbers, most_bytes: int) -> tuple[_Numbers, _Numbers] | None:
    """Unsigned varints and the positions after them; None if one is longer than ``most_bytes``."""
    byte = raw[positions]
    numbers = byte.astype(np.int64)
    is_longer = byte >= 128
    positions = positions + 1
    if is_longer.any():
        byte = raw[positions]
        # The first byte's own top bit, which says that a second follows, is taken off again.
        numbers += np.where(is_longer, ((byte & 127).astype(np.int64) << 7) - 128, 0)
        positions += is_longer
        rows = np.flatnonzero(is_longer & (byte >= 128))
        shift = 14
        while rows.size:
            if shift >= 7 * most_bytes:
                return None
            byte = raw[positions[rows]]
            numbers[rows] |= (byte & 127).astype(np.int64) << shift
            positions[rows] += 1
            rows = rows[byte >= 128]
            shift += 7
    return numbers, positions


def _signed(numbers: _Numbers) -> _Numbers:
    return (numbers >> 1) ^ -(numbers & 1)


def _lengths(raw: _Numbers, positions: _Numbers) -> tuple[_Numbers, _Numbers, _Numbers] | None:
    """Start, end and whether it is null, of the fields whose lengths are at ``positions``; None for bad lengths."""
    found = _varints(raw, positions, 4)
    if found is None:
        return None
    numbers, starts = found
    is_null = numbers == 1
    if ((numbers & 1) != is_null).any():
        return None
    return starts, starts + (numbers >> 1), is_null


def _spread(numbers: _Numbers, counts: _Numbers) -> Any:
    return numbers[0] if len(numbers) == 1 else np.repeat(numbers, counts)


def _edges(starts: _Numbers, ends: _Numbers, is_null: _Numbers) -> memoryview | None:
    return None if is_null.all() else _interleaved(starts, ends)


def _interleaved(starts: _Numbers, ends: _Numbers) -> memoryview:
    edges = np.empty(2 * len(starts), dtype=np.int32)
    edges[0::2] = starts
    edges[1::2] = ends
    return edges.data


def _nulls(is_null: _Numbers) -> memoryview | None:
    return is_null.view(np.uint8).data if is_null.any() and not is_null.all() else None


def slices(columns: Columns, edges: memoryview | None, nulls: memoryview | None) -> list[bytes | None] | None:
    """The keys or the values as bytes, by pyarrow, which makes short ones faster than Python; None if it would not."""
    count = len(columns)
    # Neighbours tell how long they are, with what is around them: pyarrow copies each once more.
    if pa is None or edges is None or edges[-1] - edges[0] > count * _SHORT:
        return None
    # As in ``arrow``: fields and the gaps between them are one binary array.
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(columns.data)]
    fields_and_gaps = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    rows = np.arange(0, 2 * count, 2, dtype=np.int32)
    fields = fields_and_gaps.take(pa.array(rows, mask=None if nulls is None else np.frombuffer(nulls, np.bool_)))
    made: list[bytes | None] = []
    for start in range(0, count, _AT_ONCE):
        made += fields.slice(start, _AT_ONCE).to_numpy(zero_copy_only=False).tolist()
    return made
