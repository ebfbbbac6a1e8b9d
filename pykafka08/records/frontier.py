"""How far fetched record bytes reach, from the entries' heads alone: what a consumer needs to ask for more before it
decodes what it has.

Nothing is checked here but sizes: a head that lies is found when ``reader`` comes to it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from pykafka08.records.batch import HEADER_SIZE
from pykafka08.records.message_set import SMALLEST_MESSAGE
from pykafka08.wire import Buffer

__all__ = ["Entries", "read_entries", "read_frontier"]

_ENTRY = struct.Struct(">qi")
_LEADER_EPOCH_AT = 12  # of magic 2
_MAGIC_AT = 16
_LAST_DELTA_AT = 23  # of magic 2
_SMALLEST_BATCH = HEADER_SIZE - _ENTRY.size
_INT32 = struct.Struct(">i")


class Entries(NamedTuple):
    """The whole entries at the beginning of fetched bytes whose offsets increase."""

    frontier: int | None
    """The offset after the last of them; None if the first entry is cut off or its head makes no sense."""
    leader_epoch: int
    """The leader epoch of the last of them; -1 before magic 2."""
    backward_at: int | None
    """Position of the first entry whose offsets do not increase; None if there is none."""


def read_frontier(buffer: Buffer) -> int | None:
    """The offset after the last whole entry; None if the first entry is cut off or its head makes no sense."""
    return read_entries(buffer).frontier


def read_entries(buffer: Buffer) -> Entries:
    """The entries, as their headers describe them."""
    frontier: int | None = None
    backward_at: int | None = None
    last = -1
    position, end = 0, len(buffer)
    unpack_entry = _ENTRY.unpack_from
    smallest = SMALLEST_MESSAGE[0]
    while position + _ENTRY.size + smallest <= end:
        offset, size = unpack_entry(buffer, position)
        after = position + _ENTRY.size + size
        magic = buffer[position + _MAGIC_AT]
        if size < smallest or after > end or magic > 2:
            break
        if frontier is not None and offset < frontier:
            backward_at = position
            break
        if magic == 2:
            if size < _SMALLEST_BATCH:
                break
            (delta,) = _INT32.unpack_from(buffer, position + _LAST_DELTA_AT)
            if delta < 0:
                break
            frontier = offset + delta + 1
        else:
            frontier = offset + 1
        last = position if magic == 2 else -1
        position = after
    leader_epoch = -1 if last < 0 else _INT32.unpack_from(buffer, last + _LEADER_EPOCH_AT)[0]
    return Entries(frontier, leader_epoch, backward_at)
