"""LZ4 frames as Kafka carries them, with the header checksum that Kafka got wrong in its first two formats.

Written: independent blocks of 64 KiB, no checksums but the header's, no content size; brokers 0.8.2 and 0.9 refuse
anything else.  In magic 0 the header checksum covers the four magic bytes too (KAFKA-3160, KIP-57); old brokers insist
on that wrong byte, so it is written in magic 0 and ignored on reading it.  Blocks are packed by the package lz4 when
there is one (it has levels), else by cramjam.  Source: the LZ4 frame format, version 1.6.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, NamedTuple

from pykafka08.errors import CorruptRecordError
from pykafka08.wire import Buffer

__all__ = ["compress", "decompress", "has_levels", "xxh32_short"]

_MAGIC = b"\x04\x22\x4d\x18"
_UINT32 = struct.Struct("<I")
_BLOCK = 64 << 10
_DESCRIPTOR = b"\x60\x40"  # version 1, independent blocks; blocks of at most 64 KiB
_STORED = 1 << 31  # this bit of a block's size: the block is not packed
_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LARGEST_RATIO = 255


def compress(data: Buffer, level: int | None = None, magic: int = 2) -> bytes:
    """One frame; ``level`` 1 to 17 needs the package lz4, whose own scale ends at 12."""
    checksum = xxh32_short(_MAGIC + _DESCRIPTOR if magic == 0 else _DESCRIPTOR) >> 8 & 0xFF
    parts: list[Buffer] = [_MAGIC, _DESCRIPTOR, bytes((checksum,))]
    view = memoryview(data)
    for start in range(0, len(view), _BLOCK):
        plain = view[start : start + _BLOCK]
        packed = _pack_block(plain, level)
        if len(packed) < len(plain):
            parts.append(_UINT32.pack(len(packed)))
            parts.append(packed)
        else:
            parts.append(_UINT32.pack(len(plain) | _STORED))
            parts.append(plain)
    parts.append(_UINT32.pack(0))
    return b"".join(parts)


def has_levels() -> bool:
    """True if the package lz4 is there."""
    return _library() is not None


@cache
def _library() -> Any:
    try:
        import lz4.block
    except ImportError:
        return None
    return lz4.block


def _pack_block(plain: memoryview, level: int | None) -> bytes:
    library = _library()
    if library is None:
        import cramjam

        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    packed: bytes
    if level is None:
        packed = library.compress(plain, store_size=False)
    else:
        packed = library.compress(plain, mode="high_compression", compression=min(level, 12), store_size=False)
    return packed


def decompress(data: Buffer, limit: int, magic: int = 2) -> bytes:
    """The content of one or more frames; CorruptRecordError when damaged or above ``limit``."""
    import cramjam

    frames = _frames(data)
    if magic == 0:
        patched = bytearray(data)
        for frame in frames:
            patched[frame.checksum_at] = frame.checksum
        data = patched
    bound = sum(frame.bound for frame in frames)
    room = bytearray(min(bound, limit))
    view, space = memoryview(data), memoryview(room)
    size = 0
    try:
        # Frame by frame: older releases of cramjam stop after the first and say nothing.
        for frame in frames:
            size += cramjam.lz4.decompress_into(view[frame.start : frame.end], space[size:])
    except cramjam.DecompressionError as error:
        if bound > limit:
            raise CorruptRecordError(f"lz4 data unpacks to more than the limit of {limit} bytes") from error
        raise CorruptRecordError(f"lz4 data is damaged: {error}") from error
    return bytes(space[:size])


class _Frame(NamedTuple):
    start: int
    end: int
    checksum_at: int
    checksum: int  # of the header, as it should be
    bound: int  # most bytes that the frame can unpack to


def _frames(data: Buffer) -> list[_Frame]:
    """All frames, as far as they can be known without unpacking; CorruptRecordError unless they fill the data."""
    end = len(data)
    position = 0
    frames: list[_Frame] = []
    while position < end or not end:
        start = position
        if data[start : start + 4] != _MAGIC or start + 7 > end:
            raise CorruptRecordError(f"no lz4 frame at byte {start}")
        flags, block_descriptor = data[start + 4], data[start + 5]
        largest_block = _BLOCK_SIZES.get(block_descriptor >> 4 & 7)
        if flags >> 6 != 1 or flags & 1 or largest_block is None:
            raise CorruptRecordError(f"lz4 frame has unknown flags {flags:#04x} {block_descriptor:#04x}")
        checksum_at = start + (14 if flags & 8 else 6)  # bit 3: the content size follows
        checksum = xxh32_short(data[start + 4 : checksum_at]) >> 8 & 0xFF
        position, bound = _walk_blocks(data, checksum_at + 1, largest_block, bool(flags & 16))
        position += 4 if flags & 4 else 0  # bit 2: a checksum of the content follows
        frames.append(_Frame(start, position, checksum_at, checksum, bound))
    if position > end:
        raise CorruptRecordError("lz4 frame is cut off")
    return frames


def _walk_blocks(data: Buffer, position: int, largest_block: int, has_checksums: bool) -> tuple[int, int]:
    """Position after the end mark, and the most bytes that the blocks can unpack to."""
    end = len(data)
    bound = 0
    while True:
        if position + 4 > end:
            raise CorruptRecordError("lz4 frame is cut off")
        (size,) = _UINT32.unpack_from(data, position)
        position += 4
        if not size:
            return position, bound
        if size & _STORED:
            size &= ~_STORED
            bound += size
        else:
            bound += min(largest_block, size * _LARGEST_RATIO)
        if size > largest_block:
            raise CorruptRecordError(f"lz4 block of {size} bytes is larger than the frame allows")
        position += size + (4 if has_checksums else 0)


def xxh32_short(data: Buffer) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes, which is all that a header checksum needs."""
    mask = 0xFFFFFFFF
    value = 374761393 + len(data)
    position = 0
    while position + 4 <= len(data):
        (lane,) = _UINT32.unpack_from(data, position)
        value = value + lane * 3266489917 & mask
        value = (value << 17 | value >> 15) * 668265263 & mask
        position += 4
    for byte in data[position:]:
        value = value + byte * 374761393 & mask
        value = (value << 11 | value >> 21) * 2654435761 & mask
    value = (value ^ value >> 15) * 2246822519 & mask
    value = (value ^ value >> 13) * 3266489917 & mask
    return value ^ value >> 16
