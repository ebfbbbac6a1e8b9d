"""The codecs of Kafka's records: one table, two functions.

gzip, snappy, lz4 and zstd all work with what python-snappy brings (cramjam) and the standard library; isal, lz4 and
backports.zstd (or Python 3.14's ``compression.zstd``) are used when they can be imported.  Nothing is imported before
the first batch that needs it.

Unpacking is capped: no codec ever allocates much more than ``limit`` bytes, whatever the input says.
Source: Kafka's protocol guide, "Compression"; KIP-110 (zstd), KIP-390 (levels), KIP-57 (lz4 framing).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

from pykafka08.errors import ConfigError, CorruptRecordError
from pykafka08.records import lz4_frame, snappy_stream
from pykafka08.wire import Buffer

__all__ = ["DEFAULT_UNPACK_LIMIT", "Codec", "check_level", "compress", "decompress"]

#: Bytes that one batch may unpack to, unless the caller says otherwise.
DEFAULT_UNPACK_LIMIT = 64 << 20


class Codec(IntEnum):
    """Compression of a batch, by its number in the attributes.

    lz4 needs Kafka 0.8.2, zstd needs Kafka 2.1 and magic 2.
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def parse(cls, name: str | int | None) -> Codec:
        """The codec of a ``compression_type``: a name of any case, a number, or None for no compression."""
        if name is None:
            return cls.NONE
        if isinstance(name, int):
            if name in cls._value2member_map_:
                return cls(name)
        elif name.upper() in cls.__members__:
            return cls[name.upper()]
        raise ConfigError(f"compression_type {name!r} is none of {', '.join(codec.label for codec in cls)}")

    @property
    def label(self) -> str:
        """The name as Kafka's configuration has it."""
        return self.name.lower()


class _Entry(NamedTuple):
    compress: Callable[[Buffer, int | None, int], bytes]  # data, level, magic
    decompress: Callable[[Buffer, int, int], bytes]  # data, limit, magic
    levels: range | None


def compress(codec: Codec, data: Buffer, *, level: int | None = None, magic: int = 2) -> bytes:
    """``data`` in the frame that a set of this ``magic`` carries; ``level`` None is the codec's quick default.

    ConfigError for a level that the codec lacks.
    """
    if level is not None:
        check_level(codec, level)
    return _TABLE[codec].compress(data, level, magic)


def decompress(codec: Codec, data: Buffer, *, limit: int = DEFAULT_UNPACK_LIMIT, magic: int = 2) -> bytes:
    """What was packed; CorruptRecordError when the bytes are damaged or unpack to more than ``limit`` bytes."""
    return _TABLE[codec].decompress(data, limit, magic)


def check_level(codec: Codec, level: int) -> None:
    """ConfigError unless ``codec`` has this compression level here (lz4 has levels with the package lz4 only)."""
    levels = _TABLE[codec].levels
    if levels is None:
        raise ConfigError(f"compression {codec.label} has no levels, got {level}")
    if level not in levels:
        raise ConfigError(f"compression level {level} of {codec.label} is not in {levels[0]}..{levels[-1]}")
    if codec is Codec.LZ4 and not lz4_frame.has_levels():
        raise ConfigError("levels of lz4 need the package lz4: pip install 'pykafka08[lz4]'")


def _copy(data: Buffer, _level: int | None, _magic: int) -> bytes:
    return bytes(data)


def _copy_back(data: Buffer, limit: int, _magic: int) -> bytes:
    if len(data) > limit:
        raise CorruptRecordError(f"{len(data)} bytes are more than the limit of {limit}")
    return bytes(data)


# gzip

_GZIP_FRAME = 31  # zlib's wbits for a 32 KiB window in a gzip frame


def _gzip(data: Buffer, level: int | None, _magic: int) -> bytes:
    isal = _isal()
    if level is None and isal is not None:
        packer = isal.compressobj(isal.ISAL_DEFAULT_COMPRESSION, zlib.DEFLATED, _GZIP_FRAME)
    else:
        packer = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, zlib.DEFLATED, _GZIP_FRAME)
    return bytes(packer.compress(data) + packer.flush())


def _gunzip(data: Buffer, limit: int, _magic: int) -> bytes:
    isal = _isal()
    library = zlib if isal is None else isal
    return _unpack_members("gzip", lambda: library.decompressobj(_GZIP_FRAME), library.error, data, limit)


@cache
def _isal() -> Any:
    try:
        from isal import isal_zlib
    except ImportError:
        return None
    return isal_zlib


# zstd


def _zstd(data: Buffer, level: int | None, _magic: int) -> bytes:
    library = _zstd_library()
    chosen = 3 if level is None else level
    if library is None:
        import cramjam

        return bytes(cramjam.zstd.compress(data, level=chosen))
    packed: bytes = library.compress(data, chosen)
    return packed


def _unzstd(data: Buffer, limit: int, _magic: int) -> bytes:
    library = _zstd_library()
    if library is None:
        return _unzstd_into(data, limit)
    return _unpack_members("zstd", library.ZstdDecompressor, library.ZstdError, data, limit)


@cache
def _zstd_library() -> Any:
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            return None
    return zstd


_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50  # the low four bits are free
_ZSTD_LARGEST_BLOCK = 128 << 10


def _unzstd_into(data: Buffer, limit: int) -> bytes:
    """Unpack with cramjam, which fills a given buffer and stops at its end."""
    import cramjam

    bound = _zstd_bound(data)
    room = bytearray(min(bound, limit))
    try:
        size = cramjam.zstd.decompress_into(data, room)
    except cramjam.DecompressionError as error:
        raise _damaged("zstd", error, limit if bound > limit else None) from error
    return bytes(memoryview(room)[:size])


def _zstd_bound(data: Buffer) -> int:
    """Most bytes that the frames can unpack to, from the headers of their blocks (RFC 8878, section 3.1)."""
    end = len(data)
    position = bound = 0
    while position < end:
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & ~0xF == _ZSTD_SKIPPABLE:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != _ZSTD_MAGIC or position + 5 > end:
            raise CorruptRecordError(f"no zstd frame at byte {position}")
        descriptor = data[position + 4]
        is_single_segment = descriptor >> 5 & 1
        content_size_bytes = (is_single_segment, 2, 4, 8)[descriptor >> 6]
        has_checksum = descriptor >> 2 & 1
        position += 5 + (not is_single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
        is_last = 0
        while not is_last:
            if position + 3 > end:
                raise CorruptRecordError("zstd frame is cut off")
            header = int.from_bytes(data[position : position + 3], "little")
            is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
            bound += _ZSTD_LARGEST_BLOCK if kind == 2 else size
            position += 3 + (1 if kind == 1 else size)  # kind 1 is one byte, repeated
        position += 4 * has_checksum
    if position > end or not end:
        raise CorruptRecordError("zstd frame is cut off")
    return bound


# shared


_LARGEST_INPUT = 1 << 20
_LARGEST_OUTPUT = 8 << 20


def _unpack_members(
    name: str, new_unpacker: Callable[[], Any], library_error: type[Exception], data: Buffer, limit: int
) -> bytes:
    """Unpack one or more members (gzip) or frames (zstd), one after another, with a streaming library.

    Both the pieces fed and those taken are bounded.  Libraries build their output twice over, so a bomb must not fill
    one piece; and they copy what they did not use, so a small member must not be handed the whole rest.
    """
    view = memoryview(data)
    end = len(view)
    parts: list[bytes] = []
    room, position, step = limit, 0, _LARGEST_INPUT
    try:
        while position < end or not parts:
            start = position
            unpacker = new_unpacker()
            fed: Buffer = b""
            is_starved = True
            while not unpacker.eof:
                if is_starved:
                    if position >= end:
                        raise CorruptRecordError(f"{name} data is cut off")
                    fed = view[position : position + step]
                    position += len(fed)
                    step = min(step * 2, _LARGEST_INPUT)
                part = unpacker.decompress(fed, min(room + 1, _LARGEST_OUTPUT))
                room -= len(part)
                if room < 0:
                    raise _damaged(name, None, limit)
                parts.append(part)
                # zlib and isal hand back what a full piece left over, zstd keeps it.
                is_starved = len(part) < _LARGEST_OUTPUT
                fed = b"" if is_starved else getattr(unpacker, "unconsumed_tail", b"")
            position -= len(unpacker.unused_data)
            step = min(max(1024, 2 * (position - start)), _LARGEST_INPUT)
    except (library_error, EOFError) as error:
        raise _damaged(name, error, None) from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _damaged(name: str, error: Exception | None, passed_limit: int | None) -> CorruptRecordError:
    if passed_limit is not None:
        return CorruptRecordError(f"{name} data unpacks to more than the limit of {passed_limit} bytes")
    return CorruptRecordError(f"{name} data is damaged: {error}")


_TABLE: dict[Codec, _Entry] = {
    Codec.NONE: _Entry(_copy, _copy_back, None),
    Codec.GZIP: _Entry(_gzip, _gunzip, range(1, 10)),
    Codec.SNAPPY: _Entry(snappy_stream.compress, snappy_stream.decompress, None),
    Codec.LZ4: _Entry(lz4_frame.compress, lz4_frame.decompress, range(1, 18)),
    Codec.ZSTD: _Entry(_zstd, _unzstd, range(-131072, 23)),
}
