"""zstd as Kafka carries it: one frame on writing, any number of frames on reading (RFC 8878; KIP-110).

Nothing is unpacked before the headers have said how large it can become, and no claim is believed above the limit.
Java's producer writes frames without a content size; then the headers of the blocks bound it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pykafka08.errors import CorruptRecordError
from pykafka08.records import scratch
from pykafka08.records.bounds import PART, too_large
from pykafka08.wire import Buffer

__all__ = ["Zstd"]

_DEFAULT_LEVEL = 3
# Where no level was asked for, larger batches are packed with the window and tables of this size, which stay in the
# processor's cache: a quarter faster at 1 MiB of records, and 0.2 % larger.
_QUICK_WINDOW = 128 << 10
_LARGE = 1 << 10  # stands for that beside the levels
_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = 0x184D2A50  # the low four bits are free
_LARGEST_BLOCK = 128 << 10
_LARGEST_RATIO = _LARGEST_BLOCK // 4  # the densest block is one byte, repeated, behind a header of three
_USUAL_WINDOW = 8 << 20  # the format recommends that every decoder supports this size
_LARGEST_WINDOW = 128 << 20  # the library's limit for reading in parts
_IN_PARTS = ", or install zstandard, which unpacks it in parts: pip install 'pykafka08[zstd]'"
_LARGEST_KEPT_LEVEL = 9  # contexts of higher levels hold tens of megabytes
_MOST_KEPT = 4  # one for each thread that works at the same time; a list's pop and append are safe among threads


class Zstd:
    """zstd over zstandard (the module or None) or cramjam."""

    def __init__(self, zstandard: Any = None) -> None:
        import cramjam

        self._cramjam: Any = cramjam
        self._zstandard = zstandard
        self._unpackers: list[Any] = []
        self._packers: dict[int, list[Any]] = {}

    def compress(self, data: Buffer, level: int | None, _magic: int) -> bytes:
        """One frame with its content size and no checksum."""
        chosen = _DEFAULT_LEVEL if level is None else level
        is_large = level is None and len(data) > _QUICK_WINDOW
        if self._zstandard is None:
            return bytes(self._cramjam.zstd.compress(data, level=chosen))
        kept = self._packers.setdefault(_LARGE if is_large else chosen, [])
        try:
            packer = kept.pop()
        except IndexError:
            packer = self._large_packer() if is_large else self._zstandard.ZstdCompressor(level=chosen)
        packed: bytes = packer.compress(data)
        if chosen <= _LARGEST_KEPT_LEVEL and len(kept) < _MOST_KEPT:
            kept.append(packer)
        return packed

    def _large_packer(self) -> Any:
        parameters = self._zstandard.ZstdCompressionParameters.from_level(
            _DEFAULT_LEVEL, source_size=_QUICK_WINDOW, write_content_size=True
        )
        return self._zstandard.ZstdCompressor(compression_params=parameters)

    def decompress(self, data: Buffer, limit: int, _magic: int) -> bytes:
        """The content of all frames; CorruptRecordError if damaged, RecordTooLargeError above ``limit``."""
        if self._zstandard is None:
            return _unpack_with_cramjam(self._cramjam, data, limit)
        try:
            unpacker = self._unpackers.pop()
        except IndexError:
            unpacker = self._zstandard.ZstdDecompressor()
        try:
            unpacked = self._unpack(unpacker, data, limit)
        except self._zstandard.ZstdError as error:
            raise _damaged(error) from error
        if len(self._unpackers) < _MOST_KEPT:
            self._unpackers.append(unpacker)
        return unpacked

    def _unpack(self, unpacker: Any, data: Buffer, limit: int) -> bytes:
        part: bytes
        if 0 < _content_size(data, 0) <= limit:
            # Nearly always the only frame, and then nothing else has to be looked at.
            try:
                part = unpacker.decompress(data, allow_extra_data=False)
            except self._zstandard.ZstdError:
                pass  # more frames behind it, or damage
            else:
                return part
        view = memoryview(data)
        parts: list[bytes] = []
        room = limit
        frames = _frames(data)
        bound = sum(frame.bound for frame in frames)
        for frame in frames:
            if frame.content_size > frame.bound:
                raise CorruptRecordError(
                    f"zstd frame claims {frame.content_size} bytes, its blocks at most {frame.bound}"
                )
            if frame.content_size > room:
                raise too_large("zstd", limit)
            # Never 0, which stands for "as much as the frame says".
            most = max(1, min(frame.bound, room))
            try:
                part = unpacker.decompress(view[frame.start : frame.end], max_output_size=most, allow_extra_data=False)
            except self._zstandard.ZstdError as error:
                if bound > limit:
                    raise too_large("zstd", limit) from error
                raise
            room -= len(part)
            if room < 0:
                raise too_large("zstd", limit)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def parts(self, data: Buffer, limit: int, magic: int) -> Iterator[bytes]:
        """The content of all frames in parts of at most PART bytes; CorruptRecordError if it is damaged.

        Without the package zstandard, and for frames with a window (the memory that reading in parts takes) larger than
        ``limit`` and the usual size, it is one part, or RecordTooLargeError above ``limit``.
        """
        if self._zstandard is None:
            yield _unpack_with_cramjam(self._cramjam, data, limit)
            return
        # The reader does not report a truncated frame, so the frames are measured first.
        frames = _frames(data)
        if any(frame.window > min(max(limit, _USUAL_WINDOW), _LARGEST_WINDOW) for frame in frames):
            yield self.decompress(data, limit, magic)
            return
        unpacker = self._zstandard.ZstdDecompressor()
        view = memoryview(data)
        for frame in frames:
            size = 0
            reader = unpacker.stream_reader(view[frame.start : frame.end])
            try:
                while part := reader.read(PART):
                    size += len(part)
                    yield part
            except self._zstandard.ZstdError as error:
                raise _damaged(error) from error
            if frame.content_size not in (-1, size):
                raise CorruptRecordError(f"zstd frame claims {frame.content_size} bytes and has {size}")


def _unpack_with_cramjam(cramjam: Any, data: Buffer, limit: int) -> bytes:
    """Unpack with cramjam, which fills a given buffer and stops at its end."""
    if len(data) * _LARGEST_RATIO <= limit:
        try:
            return bytes(cramjam.zstd.decompress(data))
        except cramjam.DecompressionError as error:
            raise _damaged(error) from error
    size = _content_size(data, 0)
    if 0 < size <= scratch.LARGEST_KEPT and size <= limit:
        room = scratch.take(size)
        try:
            written = cramjam.zstd.decompress_into(data, memoryview(room)[:size])
        except cramjam.DecompressionError:
            written = -1  # more frames behind it, or damage
        if written == size:
            unpacked = bytes(memoryview(room)[:size])
            scratch.give_back(room)
            return unpacked
    bound = sum(frame.bound for frame in _frames(data))
    most = min(bound, limit)
    room = scratch.take(most)
    try:
        written = cramjam.zstd.decompress_into(data, memoryview(room)[:most])
    except cramjam.DecompressionError as error:
        if bound > limit:
            raise too_large("zstd", limit, _IN_PARTS) from error
        raise _damaged(error) from error
    unpacked = bytes(memoryview(room)[:written])
    scratch.give_back(room)
    return unpacked


class _Frame(NamedTuple):
    start: int
    end: int
    bound: int  # most bytes that the blocks can unpack to
    content_size: int  # as its header claims, or -1
    window: int  # bytes of memory for reading in parts


def _content_size(data: Buffer, start: int) -> int:
    """What the header of the frame at ``start`` claims; -1 where it claims nothing or there is no frame."""
    if len(data) < start + 18 or data[start : start + 4] != _MAGIC:
        # The smallest useful frame is shorter, but those few bytes may go the long way.
        return -1
    descriptor = data[start + 4]
    is_single_segment = descriptor >> 5 & 1
    at = start + 6 - is_single_segment + (0, 1, 2, 4)[descriptor & 3]
    kind = descriptor >> 6
    if not kind:
        return data[at] if is_single_segment else -1
    if kind == 1:
        return 256 + data[at] + (data[at + 1] << 8)
    return int.from_bytes(data[at : at + (4 if kind == 2 else 8)], "little")


def _frames(data: Buffer) -> list[_Frame]:
    """All frames but skippable ones, by the headers of their blocks; CorruptRecordError unless they fill the data."""
    end = len(data)
    position = 0
    frames: list[_Frame] = []
    if not end:
        raise CorruptRecordError("zstd data is empty")
    while position < end:
        start = position
        if int.from_bytes(data[position : position + 4], "little") & ~0xF == _SKIPPABLE:
            if position + 8 > end:
                raise CorruptRecordError("zstd frame is cut off")
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if data[position : position + 4] != _MAGIC or position + 5 > end:
            raise CorruptRecordError(f"no zstd frame at byte {position}")
        descriptor = data[position + 4]
        is_single_segment = descriptor >> 5 & 1
        content_size_bytes = (is_single_segment, 2, 4, 8)[descriptor >> 6]
        content_size = _content_size(data, start)
        window = content_size if is_single_segment else _window(data[position + 5 : position + 6])
        position += 5 + (not is_single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
        position, bound = _walk_blocks(data, position)
        position += 4 * (descriptor >> 2 & 1)  # a checksum of the content
        frames.append(_Frame(start, position, bound, content_size, window))
    if position > end:
        raise CorruptRecordError("zstd frame is cut off")
    return frames


def _window(descriptor: Buffer) -> int:
    """The window size in a frame's window descriptor; 0 if it is cut off."""
    if not len(descriptor):
        return 0
    base = 1 << 10 + (descriptor[0] >> 3)
    return base + base // 8 * (descriptor[0] & 7)


def _walk_blocks(data: Buffer, position: int) -> tuple[int, int]:
    """Position after the last block, and the most bytes that the blocks can unpack to."""
    end = len(data)
    bound = 0
    while True:
        if position + 3 > end:
            raise CorruptRecordError("zstd frame is cut off")
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        kind, size = header >> 1 & 3, header >> 3
        bound += _LARGEST_BLOCK if kind == 2 else size
        position += 4 if kind == 1 else 3 + size  # kind 1 is one byte, repeated
        if header & 1:
            return position, bound


def _damaged(error: Exception) -> CorruptRecordError:
    return CorruptRecordError(f"zstd data is damaged: {error}")
