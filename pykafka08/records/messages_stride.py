"""A run of plain messages of magic 0 or 1 that all have one length, read with numpy as a table of equal rows.

Nothing is taken for granted: every size, magic, attribute and checksum is looked at; all messages must agree with the
first.  What does not is left to ``messages_loop``, whose word is final.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any

import numpy as np

from pykafka08.records.checksums import crc32
from pykafka08.records.columns import Columns

__all__ = ["read_run"]

_HEADS = (22, 30)  # bytes before the key, by magic
_CODEC_MASK = 7


def read_run(
    data: bytes, start: int, end: int, fetch_offset: int, check_crcs: bool, is_inner: bool
) -> tuple[Columns, int] | None:
    """As ``messages_loop.read_run``; None unless all messages up to ``end`` are whole, alike and right."""
    magic = data[start + 16]
    head = _HEADS[magic]
    length = 12 + int.from_bytes(data[start + 8 : start + 12], "big", signed=True)
    key_size = int.from_bytes(data[start + head - 4 : start + head], "big", signed=True)
    key_to = head + max(key_size, 0)
    count = (end - start) // max(length, head + 4)
    if key_size < -1 or key_to + 4 > length or not count:
        return None
    value_size = int.from_bytes(data[start + key_to : start + key_to + 4], "big", signed=True)
    after = start + count * length
    if value_size < -1 or key_to + 4 + max(value_size, 0) != length or not _is_cut_off(data, after, end, head):
        return None
    fields = {
        "offset": (">i8", 0), "size": (">i4", 8), "crc": (">u4", 12), "kind": (">u2", 16),
        "key_size": (">i4", head - 4), "value_size": (">i4", key_to),
    }  # fmt: skip
    if magic:
        fields["timestamp"] = (">i8", 18)
    layout: Any = {
        "names": list(fields),
        "formats": [kind for kind, _ in fields.values()],
        "offsets": [place for _, place in fields.values()],
        "itemsize": length,
    }
    rows: Any = np.frombuffer(data, dtype=np.dtype(layout), count=count, offset=start)
    kind = int(rows["kind"][0])
    if is_inner and kind & _CODEC_MASK:
        return None
    for name, expected in (("size", length - 12), ("kind", kind), ("key_size", key_size), ("value_size", value_size)):
        if not (rows[name] == expected).all():
            return None
    offsets = rows["offset"].astype(np.int64)
    if offsets.min() < fetch_offset:
        return None
    if check_crcs:
        bodies = struct.Struct(f"16x{length - 16}s").iter_unpack(memoryview(data)[start:after])
        if list(map(crc32, chain.from_iterable(bodies))) != rows["crc"].tolist():
            return None
    starts = np.arange(start, after, length, dtype=np.int32)
    return Columns(
        data,
        offsets.data,
        (rows["timestamp"].astype(np.int64) if magic else np.full(count, -1, dtype=np.int64)).data,
        key_edges=_edges(starts + head, key_size),
        value_edges=_edges(starts + (key_to + 4), value_size),
    ), after


def _is_cut_off(data: bytes, position: int, end: int, head: int) -> bool:
    """True if what is left holds no whole message, as at the end of a Fetch answer."""
    if end - position < head + 4:
        return True
    size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
    return size >= head + 4 - 12 and position + 12 + size > end


def _edges(starts: Any, size: int) -> memoryview | None:
    if size < 0:
        return None
    edges = np.empty(2 * len(starts), dtype=np.int32)
    edges[0::2] = starts
    edges[1::2] = starts + size
    return edges.data
