"""LZ4 frames as Kafka carries them, with the header checksum that Kafka got wrong in its first two formats.

Written: independent blocks of 64 KiB, no checksums but the header's, no content size; brokers 0.8.2 and 0.9 refuse
anything else.  In magic 0 the header checksum covers the four magic bytes too (KAFKA-3160, KIP-57); old brokers insist
on that wrong byte, so it is written in magic 0 and ignored on reading it.  Frames are packed by the package lz4 when
there is one (it has levels), else by cramjam.  Independent blocks are unpacked one by one, straight to their place;
that is quicker than any library's way with whole frames.  Source: the LZ4 frame format, version 1.6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pykafka08.errors import CorruptRecordError
from pykafka08.records import scratch
from pykafka08.records.bounds import PART, too_large
from pykafka08.wire import Buffer

__all__ = ["Lz4", "xxh32_short"]

_MAGIC = b"\x04\x22\x4d\x18"
_SKIPPABLE = 0x184D2A50  # the low four bits are free
_UINT32 = struct.Struct("<I")
_BLOCK = 64 << 10
_LARGEST_PACKED_BLOCK = _BLOCK + _BLOCK // 255 + 16
_DESCRIPTOR = b"\x60\x40"  # version 1, independent blocks; blocks of at most 64 KiB
_HEADER_SIZE = 7
_FIRST_BLOCK = _HEADER_SIZE + 4  # after its size
_END_MARK = bytes(4)
_PLAIN_FLAGS = 0x60  # version 1, independent blocks, no checksums, no content size, no dictionary
_BLOCK_CHECKSUMS = 1 << 4  # flag: a checksum after each block
_CONTENT_CHECKSUM = 1 << 2  # flag: a checksum after the end mark
_INDEPENDENT = 1 << 5  # flag: no block refers to those before it
_CONTENT_SIZE = 1 << 3  # flag: the header has the size of the content
_DICTIONARY_ID = 1  # flag: the header has the id of a dictionary, which the blocks need not use
_RESERVED = 1 << 1
_CHECKSUM_AT = 6
_STORED = 1 << 31  # this bit of a block's size: the block is not packed
_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LARGEST_RATIO = 255
_LARGEST_LEVEL = 12


class Lz4:
    """lz4 over the package's module of frames (or None) and cramjam."""

    def __init__(self, library: Any = None) -> None:
        import cramjam

        self._library = library
        # Looked up once: small batches feel every step.
        self._unpack_block: Callable[..., int] = cramjam.lz4.decompress_block_into
        self._error: type[Exception] = cramjam.DecompressionError

    def compress(self, data: Buffer, level: int | None, magic: int) -> bytes:
        """One frame.  ``level`` 1 to 17 needs the package lz4: 1 and 2 are its quick mode, all above 12 its best."""
        frame: bytes
        if self._library is None:
            frame = _pack_with_cramjam(data)
        else:
            frame = self._library.compress(
                data,
                compression_level=0 if level is None else min(level, _LARGEST_LEVEL),
                block_size=self._library.BLOCKSIZE_MAX64KB,
                block_linked=False,
                store_size=False,
            )
        if magic == 0:
            return frame[:_CHECKSUM_AT] + _WRONG_CHECKSUM + frame[_CHECKSUM_AT + 1 :]
        return frame

    def decompress(self, data: Buffer, limit: int, magic: int) -> bytes:
        """The content of one or more frames; CorruptRecordError if damaged, RecordTooLargeError above ``limit``."""
        # Frames of independent blocks without sizes or a dictionary: all that Kafka's clients write.
        checksum = _CHECKSUMS.get(bytes(data[4:6])) if data[:4] == _MAGIC and len(data) > _HEADER_SIZE else None
        if checksum is not None and (magic == 0 or data[_CHECKSUM_AT] == checksum):
            try:
                unpacked = _unpack_block(self._unpack_block, data, limit)
                if unpacked is None:
                    unpacked = _unpack_blocks(self._unpack_block, data, limit)
            except self._error as error:
                raise CorruptRecordError(f"lz4 data is damaged: {error}") from error
            if unpacked is not None:
                return unpacked
        return _unpack_frames(data, _frames(data), limit, magic)

    def parts(self, data: Buffer, limit: int, magic: int) -> Iterator[bytes]:
        """The content of one or more frames in parts of about PART bytes; CorruptRecordError if it is damaged.

        A frame whose blocks refer to others is one part: RecordTooLargeError if that is larger than ``limit``.
        """
        for frame in _frames(data):
            flags = data[frame.start + 4]
            if not flags & _INDEPENDENT:
                yield _unpack_frames(data, [frame], limit, magic)
                continue
            covered = bytes(data[frame.start + 4 : frame.checksum_at])
            if magic and data[frame.checksum_at] != _header_checksum(covered):
                raise CorruptRecordError("lz4 data is damaged: the checksum of its header is wrong")
            size = 0
            try:
                for part in _block_parts(self._unpack_block, data, frame):
                    size += len(part)
                    yield part
            except self._error as error:
                raise CorruptRecordError(f"lz4 data is damaged: {error}") from error
            if flags & _CONTENT_SIZE and size != int.from_bytes(covered[2:10], "little"):
                raise CorruptRecordError(f"lz4 data is damaged: a frame of {size} bytes claims another size")


def _pack_with_cramjam(data: Buffer) -> bytes:
    import cramjam

    pack = cramjam.lz4.compress_block_into
    view = memoryview(data)
    size = len(view)
    room = scratch.take(_HEADER_SIZE + (size // _BLOCK + 1) * (4 + _LARGEST_PACKED_BLOCK) + 4)
    space = memoryview(room)
    space[:_HEADER_SIZE] = _HEADER
    position = _HEADER_SIZE
    for start in range(0, size, _BLOCK):
        plain = view[start : start + _BLOCK]
        written = pack(plain, space[position + 4 :], store_size=False)
        if written < len(plain):
            _UINT32.pack_into(room, position, written)
        else:
            written = len(plain)
            _UINT32.pack_into(room, position, written | _STORED)
            space[position + 4 : position + 4 + written] = plain
        position += 4 + written
    _UINT32.pack_into(room, position, 0)
    frame = bytes(space[: position + 4])
    scratch.give_back(room)
    return frame


def _unpack_block(unpack: Callable[..., int], data: Buffer, limit: int) -> bytes | None:
    """The content of one frame of one packed block, as small batches are; None if it is anything else."""
    end = len(data) - (8 if data[4] & _BLOCK_CHECKSUMS else 4)
    if end < _FIRST_BLOCK or _UINT32.unpack_from(data, _HEADER_SIZE)[0] != end - _FIRST_BLOCK or data[-4:] != _END_MARK:
        return None
    most = min(_BLOCK_SIZES[data[5] >> 4], (end - _FIRST_BLOCK) * _LARGEST_RATIO)
    if most > limit or data[4] & _CONTENT_CHECKSUM or end - _FIRST_BLOCK > _BLOCK_SIZES[data[5] >> 4]:
        return None
    room = scratch.take(most)
    space = memoryview(room)
    unpacked = bytes(space[: unpack(memoryview(data)[_FIRST_BLOCK:end], space[:most], most)])
    scratch.give_back(room)
    return unpacked


def _unpack_blocks(unpack: Callable[..., int], data: Buffer, limit: int) -> bytes | None:
    """The content of one frame of independent blocks and nothing more; None if it must be looked at more closely.

    Checksums of blocks and of the content are passed over, as the checksum of the batch covers all of them.
    """
    flags = data[4]
    after_block = 4 if flags & _BLOCK_CHECKSUMS else 0
    largest_block = _BLOCK_SIZES[data[5] >> 4]
    end, bound = _walk_blocks(data, _HEADER_SIZE, largest_block, after_block)
    if end + (4 if flags & _CONTENT_CHECKSUM else 0) != len(data) or bound > limit:
        return None
    view = memoryview(data)
    room = scratch.take(bound)
    space = memoryview(room)
    position, filled = _HEADER_SIZE, 0
    end -= 4
    while position < end:
        (size,) = _UINT32.unpack_from(data, position)
        position += 4
        if size & _STORED:
            size &= ~_STORED
            space[filled : filled + size] = view[position : position + size]
            filled += size
        else:
            most = min(largest_block, size * _LARGEST_RATIO)
            filled += unpack(view[position : position + size], space[filled : filled + most], most)
        position += size + after_block
    unpacked = bytes(space[:filled])
    scratch.give_back(room)
    return unpacked


def _block_parts(unpack: Callable[..., int], data: Buffer, frame: _Frame) -> Iterator[bytes]:
    """The content of a frame of independent blocks, PART bytes and up to one block more at a time."""
    flags = data[frame.start + 4]
    after_block = 4 if flags & _BLOCK_CHECKSUMS else 0
    largest_block = _BLOCK_SIZES[data[frame.start + 5] >> 4 & 7]
    view = memoryview(data)
    space = memoryview(bytearray(PART + largest_block))
    position, filled = frame.checksum_at + 1, 0
    while size := _UINT32.unpack_from(data, position)[0]:
        position += 4
        if size & _STORED:
            size &= ~_STORED
            space[filled : filled + size] = view[position : position + size]
            filled += size
        else:
            filled += unpack(view[position : position + size], space[filled : filled + largest_block], largest_block)
        position += size + after_block
        if filled >= PART:
            yield bytes(space[:filled])
            filled = 0
    if filled:
        yield bytes(space[:filled])


def _unpack_frames(data: Buffer, frames: list[_Frame], limit: int, magic: int) -> bytes:
    """The content of frames with any options, unpacked by cramjam."""
    import cramjam

    if magic == 0:
        patched = bytearray(data)
        for frame in frames:
            patched[frame.checksum_at] = _header_checksum(patched[frame.start + 4 : frame.checksum_at])
        data = patched
    bound = sum(frame.bound for frame in frames)
    most = min(bound, limit)
    room = scratch.take(most)
    view, space = memoryview(data), memoryview(room)[:most]
    size = 0
    try:
        # Frame by frame: older releases of cramjam stop after the first and say nothing.
        for frame in frames:
            size += cramjam.lz4.decompress_into(view[frame.start : frame.end], space[size:])
    except cramjam.DecompressionError as error:
        if bound > limit:
            raise too_large("lz4", limit) from error
        raise CorruptRecordError(f"lz4 data is damaged: {error}") from error
    unpacked = bytes(space[:size])
    scratch.give_back(room)
    return unpacked


class _Frame(NamedTuple):
    start: int
    end: int
    checksum_at: int
    bound: int  # most bytes that the frame can unpack to


def _frames(data: Buffer) -> list[_Frame]:
    """All frames but skippable ones, found by the headers of frames and blocks.

    CorruptRecordError unless they fill the data.
    """
    end = len(data)
    position = 0
    frames: list[_Frame] = []
    while position < end or not end:
        start = position
        if end - start >= 8 and _UINT32.unpack_from(data, start)[0] & ~0xF == _SKIPPABLE:
            position += 8 + _UINT32.unpack_from(data, start + 4)[0]
            continue
        if data[start : start + 4] != _MAGIC or start + 7 > end:
            raise CorruptRecordError(f"no lz4 frame at byte {start}")
        flags, block_descriptor = data[start + 4], data[start + 5]
        largest_block = _BLOCK_SIZES.get(block_descriptor >> 4 & 7)
        if flags >> 6 != 1 or flags & _RESERVED or largest_block is None:
            raise CorruptRecordError(f"lz4 frame has unknown flags {flags:#04x} {block_descriptor:#04x}")
        checksum_at = start + 6 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY_ID else 0)
        after_block = 4 if flags & _BLOCK_CHECKSUMS else 0
        position, bound = _walk_blocks(data, checksum_at + 1, largest_block, after_block)
        position += 4 if flags & _CONTENT_CHECKSUM else 0
        frames.append(_Frame(start, position, checksum_at, bound))
    if position > end:
        raise CorruptRecordError("lz4 frame is cut off")
    return frames


def _walk_blocks(data: Buffer, position: int, largest_block: int, after_block: int) -> tuple[int, int]:
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
        position += size + after_block


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


def _header_checksum(covered: Buffer) -> int:
    return xxh32_short(covered) >> 8 & 0xFF


# The right header checksum, by flags and block size.
_CHECKSUMS = {
    descriptor: _header_checksum(descriptor)
    for descriptor in (
        bytes((_PLAIN_FLAGS | checksums, code << 4))
        for checksums in (0, _BLOCK_CHECKSUMS, _CONTENT_CHECKSUM, _BLOCK_CHECKSUMS | _CONTENT_CHECKSUM)
        for code in _BLOCK_SIZES
    )
}
_HEADER = _MAGIC + _DESCRIPTOR + bytes((_CHECKSUMS[_DESCRIPTOR],))
_WRONG_CHECKSUM = bytes((_header_checksum(_MAGIC + _DESCRIPTOR),))
