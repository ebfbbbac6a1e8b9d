"""Buffers to unpack into, kept from batch to batch: fresh memory costs as much as filling it.

What is unpacked must end as ``bytes``, since slices of those are what records are made of, and no library of these
formats writes into ``bytes``.  So the result is copied once, out of memory that is warm.
"""

from __future__ import annotations

from functools import cache

__all__ = ["LARGEST_KEPT", "give_back", "keep_freed_pages", "take"]

#: Larger buffers are not kept.
LARGEST_KEPT = 2 << 20
_SMALLEST = 128 << 10
_MOST_KEPT = 4  # one for each thread that unpacks at the same time; a list's pop and append are safe among threads

_FREED_PAGES_KEPT = 4 << 20

_kept: list[bytearray] = []


@cache
def keep_freed_pages() -> None:
    """Have the allocator keep the pages of the last few answers that were read, or batches that were packed, once in
    each process.

    glibc takes the largest block that was mapped and freed as the size below which blocks come out of its heap, and
    keeps twice as much free there.  That is an answer's or a batch's size else, and the pages of each go back to the
    system and are asked for, cleared and mapped anew for the next.  A limit that the environment sets stays; other
    allocators have none of this.
    """
    bytes(_FREED_PAGES_KEPT)  # mapped, not touched, and freed at once


def take(size: int) -> bytearray:
    """A buffer of at least ``size`` bytes with anything in it; nobody else has it until it is given back."""
    try:
        room = _kept.pop()
    except IndexError:
        room = bytearray()
    if len(room) >= size:
        return room
    if size > LARGEST_KEPT:
        give_back(room)
        return bytearray(size)
    return bytearray(max(_SMALLEST, 1 << (size - 1).bit_length()))


def give_back(room: bytearray) -> None:
    """Keep ``room`` for the next batch.  Not doing so, as when an error was raised, is no harm."""
    if len(room) <= LARGEST_KEPT and len(_kept) < _MOST_KEPT:
        _kept.append(room)
