"""gzip as Kafka carries it: one member on writing, one or more on reading (RFC 1952).

Zero bytes may follow each member, as gzip's own tools and Python's module allow.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from pykafka08.errors import CorruptRecordError
from pykafka08.records.bounds import NO_LIMIT, PART, too_large
from pykafka08.wire import Buffer

__all__ = ["Gzip"]

_FRAME = 31  # zlib's wbits for a 32 KiB window in a gzip frame
_LARGEST_INPUT = 1 << 20
_LARGEST_OUTPUT = 8 << 20


class Gzip:
    """gzip over isal, zlib-ng (modules or None) and zlib."""

    def __init__(self, isal: Any = None, zlib_ng: Any = None) -> None:
        self._isal = isal
        self._zlib_ng = zlib_ng
        self._unpacking: Any = isal or zlib_ng or zlib

    def compress(self, data: Buffer, level: int | None, _magic: int) -> bytes:
        """One member.  ``level`` None and 1 are isal's if it is there; the others are zlib-ng's, else zlib's."""
        if self._isal is not None and (level is None or level == 1):
            library, chosen = self._isal, self._isal.ISAL_DEFAULT_COMPRESSION
        elif self._zlib_ng is not None:
            # Its level 1 packs a third worse than anybody's.
            library, chosen = self._zlib_ng, zlib.Z_DEFAULT_COMPRESSION if level is None else max(level, 2)
        else:
            library, chosen = zlib, zlib.Z_DEFAULT_COMPRESSION if level is None else level
        packer = library.compressobj(chosen, zlib.DEFLATED, _FRAME)
        packed: bytes = packer.compress(data)
        packed += packer.flush()
        return packed

    def decompress(self, data: Buffer, limit: int, _magic: int) -> bytes:
        """The content of all members; CorruptRecordError if damaged, RecordTooLargeError above ``limit``."""
        library = self._unpacking
        size = len(data)
        if size <= _LARGEST_INPUT:
            # Nearly all batches are one member that a single call unpacks.
            try:
                unpacker = library.decompressobj(_FRAME)
                part: bytes = unpacker.decompress(data, min(limit + 1, _LARGEST_OUTPUT))
            except library.error as error:
                raise _damaged(error) from error
            if len(part) > limit:
                raise too_large("gzip", limit)
            if unpacker.eof and not unpacker.unused_data:
                return part
        parts = list(self._members(memoryview(data), _LARGEST_OUTPUT, limit))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def parts(self, data: Buffer, _limit: int, _magic: int) -> Iterator[bytes]:
        """The content of all members in parts of at most PART bytes; CorruptRecordError if it is damaged."""
        return self._members(memoryview(data), PART, NO_LIMIT)

    def _members(self, data: memoryview, most: int, limit: int) -> Iterator[bytes]:
        try:
            yield from _unpack_members(self._unpacking, data, most, limit)
        except (self._unpacking.error, EOFError) as error:
            raise _damaged(error) from error


def _unpack_members(library: Any, data: memoryview, most: int, limit: int) -> Iterator[bytes]:
    """Unpack members one after another, at most ``most`` bytes at a time and ``limit`` in all.

    Both the pieces fed and those taken are bounded.  Libraries build their output twice over, so a bomb must not fill
    one piece; and they copy what they did not use, so a small member must not be handed the whole rest.
    """
    end = len(data)
    room, position, step = limit, 0, _LARGEST_INPUT
    is_first = True
    while position < end or is_first:
        is_first = False
        start = position
        unpacker = library.decompressobj(_FRAME)
        fed: Buffer = b""
        is_starved = True
        while not unpacker.eof:
            if is_starved:
                if position >= end:
                    raise CorruptRecordError("gzip data is cut off")
                fed = data[position : position + step]
                position += len(fed)
                step = min(step * 2, _LARGEST_INPUT)
            size = min(room + 1, most)
            part = unpacker.decompress(fed, size)
            room -= len(part)
            if room < 0:
                raise too_large("gzip", limit)
            if part:
                yield part
            is_starved = len(part) < size
            fed = b"" if is_starved else unpacker.unconsumed_tail
        position -= len(unpacker.unused_data)
        step = min(max(1024, 2 * (position - start)), _LARGEST_INPUT)
        position = _after_zeros(data, position)


def _after_zeros(data: memoryview, position: int) -> int:
    """The position of the first byte from ``position`` on that is not zero."""
    while position < len(data) and not data[position]:
        some = bytes(data[position : position + 4096])
        position += len(some) - len(some.lstrip(b"\0"))
    return position


def _damaged(error: Exception) -> CorruptRecordError:
    return CorruptRecordError(f"gzip data is damaged: {error}")
