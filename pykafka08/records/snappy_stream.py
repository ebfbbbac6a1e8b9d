"""Snappy as Kafka carries it: the framing of the Java library "xerial", or one bare block on reading.

Stream = 16 bytes of header, then blocks of a size (i32) and that many bytes of raw snappy.  Streams may follow one
another.  This is not the framing format of snappy's own specification, which no Kafka client speaks.
Raw blocks are packed and unpacked by cramjam, which python-snappy installs and wraps; both straight into one buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pykafka08.errors import CorruptRecordError, RemoteProtocolError
from pykafka08.records import scratch
from pykafka08.records.bounds import PART, too_large
from pykafka08.wire import INT32, Buffer, read_unsigned_varint

__all__ = ["Snappy"]

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable by version 1
_HEADER_SIZE = len(_HEADER)
_FIRST_BLOCK = _HEADER_SIZE + 4  # after its size
_BLOCK = 32 << 10
_LARGEST_PACKED_BLOCK = 32 + _BLOCK + _BLOCK // 6  # what snappy wants as room, whatever becomes of it
#: Raw snappy's densest element makes 64 bytes of 3; a block that claims more than this ratio lies.
_LARGEST_RATIO = 22


class Snappy:
    """Snappy over cramjam."""

    def __init__(self) -> None:
        import cramjam

        # Looked up once: small batches feel every step.
        self._pack_into: Callable[..., int] = cramjam.snappy.compress_raw_into
        self._unpack: Callable[..., Any] = cramjam.snappy.decompress_raw
        self._unpack_into: Callable[..., int] = cramjam.snappy.decompress_raw_into
        self._error: type[Exception] = cramjam.DecompressionError

    def compress(self, data: Buffer, _level: int | None, _magic: int) -> bytes:
        """One xerial stream with blocks of 32 KiB."""
        pack = self._pack_into
        view = memoryview(data)
        size = len(view)
        room = scratch.take(_HEADER_SIZE + (size // _BLOCK + 1) * (4 + _LARGEST_PACKED_BLOCK))
        space = memoryview(room)
        space[:_HEADER_SIZE] = _HEADER
        position = _HEADER_SIZE
        for start in range(0, size, _BLOCK):
            written = pack(view[start : start + _BLOCK], space[position + 4 :])
            INT32.pack_into(room, position, written)
            position += 4 + written
        packed = bytes(space[:position])
        scratch.give_back(room)
        return packed

    def decompress(self, data: Buffer, limit: int, _magic: int) -> bytes:
        """The content of xerial streams or of one raw block.

        CorruptRecordError if damaged, RecordTooLargeError above ``limit``.
        """
        view = memoryview(data)
        end = len(view)
        try:
            if (
                end > _FIRST_BLOCK
                and INT32.unpack_from(data, _HEADER_SIZE)[0] == end - _FIRST_BLOCK
                and view[: len(_MAGIC)] == _MAGIC
            ):
                # A stream of one block: a buffer to join blocks in would be the dearest part of it.
                if _claimed_size(view, _FIRST_BLOCK, end) > limit:
                    raise too_large("snappy", limit)
                return bytes(self._unpack(view[_FIRST_BLOCK:]))
            blocks = _blocks(view)
            if sum([claimed for _, _, claimed in blocks]) > limit:
                raise too_large("snappy", limit)
            return self._unpack_blocks(view, blocks)
        except self._error as error:
            raise CorruptRecordError(f"snappy data is damaged: {error}") from error

    def parts(self, data: Buffer, limit: int, _magic: int) -> Iterator[bytes]:
        """The content in parts of about PART bytes, each of whole blocks.

        CorruptRecordError if it is damaged, RecordTooLargeError for a block above ``limit``.
        """
        view = memoryview(data)
        some: list[tuple[int, int, int]] = []
        size = 0
        try:
            for block in _blocks(view):
                if block[2] > limit:
                    raise too_large("snappy", limit)
                if size + block[2] > PART and some:
                    yield self._unpack_blocks(view, some)
                    some, size = [], 0
                some.append(block)
                size += block[2]
            if some:
                yield self._unpack_blocks(view, some)
        except self._error as error:
            raise CorruptRecordError(f"snappy data is damaged: {error}") from error

    def _unpack_blocks(self, data: memoryview, blocks: list[tuple[int, int, int]]) -> bytes:
        unpack = self._unpack_into
        total = sum([claimed for _, _, claimed in blocks])
        room = scratch.take(total)
        space = memoryview(room)
        position = 0
        for start, end, claimed in blocks:
            # The library refuses a block that does not make exactly what it claims.
            unpack(data[start:end], space[position : position + claimed])
            position += claimed
        unpacked = bytes(space[:total])
        scratch.give_back(room)
        return unpacked


def _blocks(data: memoryview) -> list[tuple[int, int, int]]:
    """Start, end and claimed size of each raw block."""
    end = len(data)
    if data[: len(_MAGIC)] != _MAGIC:
        return [(0, end, _claimed_size(data, 0, end))]
    blocks: list[tuple[int, int, int]] = []
    position = 0
    while position < end:
        if data[position] == 0x82 and data[position : position + len(_MAGIC)] == _MAGIC:
            position += _HEADER_SIZE
            continue
        if position + 4 > end:
            raise CorruptRecordError("snappy stream is cut off inside a block size")
        (size,) = INT32.unpack_from(data, position)
        position += 4
        if size <= 0 or position + size > end:
            raise CorruptRecordError(f"snappy block of {size} bytes does not fit the stream")
        blocks.append((position, position + size, _claimed_size(data, position, position + size)))
        position += size
    if position != end:
        raise CorruptRecordError("snappy stream is cut off inside its header")
    return blocks


def _claimed_size(data: memoryview, start: int, end: int) -> int:
    # A varint: one byte to 127, two to 16 KiB, three to 2 MiB.
    if start < end and data[start] < 128:
        size = data[start]
    elif start + 1 < end and data[start + 1] < 128:
        size = data[start] & 127 | data[start + 1] << 7
    elif start + 2 < end and data[start + 2] < 128:
        size = data[start] & 127 | (data[start + 1] & 127) << 7 | data[start + 2] << 14
    else:
        try:
            size, _ = read_unsigned_varint(data[start:end], 0)
        except RemoteProtocolError as error:
            raise CorruptRecordError(f"snappy block has no size: {error.message}") from error
    if size > (end - start) * _LARGEST_RATIO:
        raise CorruptRecordError(f"snappy block of {end - start} bytes claims to unpack to {size}")
    return size
