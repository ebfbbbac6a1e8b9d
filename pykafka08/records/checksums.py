"""The two checksums of Kafka's formats, as unsigned 32-bit numbers; memoryviews are not copied."""

from __future__ import annotations

from collections.abc import Callable

from crc32c import crc32c as _crc32c

try:
    # Thirteen times zlib's speed on large messages, three times on small ones; the extra "gzip" brings both packages.
    from isal.isal_zlib import crc32 as _crc32
except ImportError:
    try:
        from zlib_ng.zlib_ng import crc32 as _crc32
    except ImportError:
        from zlib import crc32 as _crc32

__all__ = ["crc32", "crc32c"]

# Names for the functions of the libraries, not functions around them: small batches feel every call.

#: CRC-32 (zlib's polynomial), for messages of magic 0 and 1; a second argument is that of the bytes before.
crc32: Callable[..., int] = _crc32

#: CRC-32C (Castagnoli's polynomial, RFC 3720), for batches of magic 2; a second argument is that of the bytes before.
crc32c: Callable[..., int] = _crc32c
