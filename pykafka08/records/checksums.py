"""The two checksums of Kafka's formats: CRC-32 (magic 0 and 1), CRC-32C (magic 2)."""

from __future__ import annotations

from crc32c import crc32c as _crc32c

from pykafka08.wire import Buffer

try:
    # Thirteen times zlib's speed on large messages; comes with the extra "gzip".
    from isal.isal_zlib import crc32 as _crc32
except ImportError:
    from zlib import crc32 as _crc32

__all__ = ["crc32", "crc32c"]


def crc32(data: Buffer) -> int:
    """CRC-32 (zlib's polynomial) as an unsigned 32-bit number."""
    checksum: int = _crc32(data)
    return checksum


def crc32c(data: Buffer) -> int:
    """CRC-32C (Castagnoli's polynomial, RFC 3720) as an unsigned 32-bit number; memoryviews are not copied."""
    checksum: int = _crc32c(data)
    return checksum
