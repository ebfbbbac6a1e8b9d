"""Snappy as Kafka carries it: the framing of the Java library "xerial", or one bare block on reading.

Stream = 16 bytes of header, then blocks of a size (i32) and that many bytes of raw snappy.  Streams may follow one
another.  This is not the framing format of snappy's own specification, which no Kafka client speaks.
Raw blocks are packed and unpacked by cramjam, which python-snappy installs and wraps.
"""

from __future__ import annotations

from pykafka08.errors import CorruptRecordError, RemoteProtocolError
from pykafka08.wire import INT32, Buffer, read_unsigned_varint

__all__ = ["compress", "decompress"]

_MAGIC = b"\x82SNAPPY\x00"
_HEADER = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable by version 1
_BLOCK = 32 << 10
#: Raw snappy's densest element makes 64 bytes of 3; a block that claims more than this ratio lies.
_LARGEST_RATIO = 22


def compress(data: Buffer, _level: int | None = None, _magic: int = 2) -> bytes:
    """One xerial stream with blocks of 32 KiB."""
    import cramjam

    view = memoryview(data)
    parts: list[Buffer] = [_HEADER]
    for start in range(0, len(view), _BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _BLOCK]))
        parts.append(INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def decompress(data: Buffer, limit: int, _magic: int = 2) -> bytes:
    """The content of xerial streams or of one raw block; CorruptRecordError when damaged or above ``limit``."""
    import cramjam

    view = memoryview(data)
    blocks = _blocks(view, limit)
    try:
        return b"".join([cramjam.snappy.decompress_raw(view[start:end]) for start, end in blocks])
    except cramjam.DecompressionError as error:
        raise CorruptRecordError(f"snappy data is damaged: {error}") from error


def _blocks(data: memoryview, limit: int) -> list[tuple[int, int]]:
    """Start and end of each raw block, after a look at the size that it claims."""
    end = len(data)
    if data[: len(_MAGIC)] != _MAGIC:
        _claimed_size(data, 0, end, limit)
        return [(0, end)]
    blocks: list[tuple[int, int]] = []
    position, room = 0, limit
    while position < end:
        if data[position : position + len(_MAGIC)] == _MAGIC:
            position += len(_HEADER)
            continue
        if position + 4 > end:
            raise CorruptRecordError("snappy stream is cut off inside a block size")
        (size,) = INT32.unpack_from(data, position)
        position += 4
        if size <= 0 or position + size > end:
            raise CorruptRecordError(f"snappy block of {size} bytes does not fit the stream")
        room -= _claimed_size(data, position, position + size, room)
        blocks.append((position, position + size))
        position += size
    if position != end:
        raise CorruptRecordError("snappy stream is cut off inside its header")
    return blocks


def _claimed_size(data: memoryview, start: int, end: int, room: int) -> int:
    try:
        size, _ = read_unsigned_varint(data[start:end], 0)
    except RemoteProtocolError as error:
        raise CorruptRecordError(f"snappy block has no size: {error.message}") from error
    if size > (end - start) * _LARGEST_RATIO:
        raise CorruptRecordError(f"snappy block of {end - start} bytes claims to unpack to {size}")
    if size > room:
        raise CorruptRecordError(f"snappy data unpacks to more than the limit: {size - room} bytes too many")
    return size
