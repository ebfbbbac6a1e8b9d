"""The codecs of Kafka's records: one number each, one way in and one way out.

gzip, snappy, lz4 and zstd all work with what python-snappy brings (cramjam) and the standard library; which faster
packages are used when they can be imported, and for what, is told in ``libraries``.  Each format has its module.

Unpacking is capped: no codec ever allocates much more than ``limit`` bytes, whatever the input says.
Source: Kafka's protocol guide, "Compression"; KIP-110 (zstd), KIP-390 (levels), KIP-57 (lz4 framing).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import IntEnum
from typing import Protocol

from pykafka08.errors import ConfigError
from pykafka08.records.bounds import too_large
from pykafka08.records.gzip_members import Gzip
from pykafka08.records.libraries import PACKAGES, load
from pykafka08.records.lz4_frame import Lz4
from pykafka08.records.snappy_stream import Snappy
from pykafka08.records.zstd_frames import Zstd
from pykafka08.wire import Buffer

__all__ = ["DEFAULT_UNPACK_LIMIT", "Codec", "Compression", "check_level", "compress", "decompress", "unpacked_parts"]

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


_LEVELS = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-131072, 23)}


class _Format(Protocol):
    def compress(self, data: Buffer, level: int | None, magic: int, /) -> bytes: ...
    def decompress(self, data: Buffer, limit: int, magic: int, /) -> bytes: ...
    def parts(self, data: Buffer, limit: int, magic: int, /) -> Iterator[bytes]: ...


class _Plain:
    def compress(self, data: Buffer, _level: int | None, _magic: int) -> bytes:
        return bytes(data)

    def decompress(self, data: Buffer, limit: int, _magic: int) -> bytes:
        if len(data) > limit:
            raise too_large("uncompressed", limit)
        return bytes(data)

    def parts(self, data: Buffer, limit: int, magic: int) -> Iterator[bytes]:
        yield self.decompress(data, limit, magic)


class Compression:
    """All codecs over those of the faster ``packages`` (by default: all) that are installed.

    A format's library is looked for when the format is first used.  Threads may share one.
    """

    def __init__(self, packages: Collection[str] = PACKAGES) -> None:
        self._packages = packages
        self._formats: list[_Format | None] = [None] * len(Codec)

    def compress(self, codec: Codec, data: Buffer, *, level: int | None = None, magic: int = 2) -> bytes:
        """``data`` in the frame that a set of this ``magic`` carries; ``level`` None is the codec's quick default.

        ConfigError for a level that the codec lacks.
        """
        if level is not None:
            self.check_level(codec, level)
        return (self._formats[codec] or self._open(codec)).compress(data, level, magic)

    def decompress(self, codec: Codec, data: Buffer, *, limit: int = DEFAULT_UNPACK_LIMIT, magic: int = 2) -> bytes:
        """The unpacked data.

        CorruptRecordError if the bytes are damaged, RecordTooLargeError if they unpack to more than ``limit`` bytes.
        """
        return (self._formats[codec] or self._open(codec)).decompress(data, limit, magic)

    def unpacked_parts(
        self, codec: Codec, data: Buffer, *, limit: int = DEFAULT_UNPACK_LIMIT, magic: int = 2
    ) -> Iterator[bytes]:
        """The unpacked data of any size, in parts of about a MiB.

        CorruptRecordError where the bytes are damaged, RecordTooLargeError where a part that the format or the library
        cannot divide is larger than ``limit`` bytes.
        """
        return (self._formats[codec] or self._open(codec)).parts(data, limit, magic)

    def check_level(self, codec: Codec, level: int) -> None:
        """ConfigError unless ``codec`` has this compression level here (lz4 has levels with the package lz4 only)."""
        levels = _LEVELS.get(codec)
        if levels is None:
            raise ConfigError(f"compression {codec.label} has no levels; gzip, lz4 and zstd have")
        if level not in levels:
            raise ConfigError(f"compression level {level} of {codec.label} is not in {levels[0]}..{levels[-1]}")
        if codec is Codec.LZ4 and load("lz4", self._packages) is None:
            raise ConfigError("levels of lz4 need the package lz4: pip install 'pykafka08[lz4]'")

    def _open(self, codec: Codec) -> _Format:
        made: _Format
        if codec is Codec.GZIP:
            made = Gzip(load("isal", self._packages), load("zlib_ng", self._packages))
        elif codec is Codec.SNAPPY:
            made = Snappy()
        elif codec is Codec.LZ4:
            made = Lz4(load("lz4", self._packages))
        elif codec is Codec.ZSTD:
            made = Zstd(load("zstandard", self._packages))
        else:
            made = _Plain()
        self._formats[codec] = made
        return made


_INSTALLED = Compression()

#: The methods of one Compression over all that is installed.
compress = _INSTALLED.compress
decompress = _INSTALLED.decompress
unpacked_parts = _INSTALLED.unpacked_parts
check_level = _INSTALLED.check_level
