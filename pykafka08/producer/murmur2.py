"""murmur2 as the Java producer computes it (``org.apache.kafka.common.utils.Utils.murmur2``); a compiled module.

The same hash in two ways: by words that one call unpacks, which suits interpreted Python, and by arithmetic on machine
integers, which suits compiled code.  Which one runs is decided once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import FunctionType
from typing import Final

from mypy_extensions import i64

__all__ = ["hash_by_bytes", "hash_by_words", "unsigned_murmur2"]

_MASK: Final = 0xFFFFFFFF
_M: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C

_WORDS = tuple(struct.Struct(f"<{count}I").unpack_from for count in range(64))


def hash_by_words(data: bytes) -> int:
    """The unsigned 32-bit hash."""
    size = len(data)
    words = size >> 2
    h = _SEED ^ size
    for k in _WORDS[words](data) if words < 64 else struct.unpack_from(f"<{words}I", data):
        k = k * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if size & 3:
        h = (h ^ int.from_bytes(data[words * 4 :], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def hash_by_bytes(data: bytes) -> int:
    """The same; every product fits into 63 bits."""
    size: i64 = len(data)
    end: i64 = size & ~3
    at: i64 = 0
    h: i64 = (_SEED ^ size) & _MASK
    k: i64 = 0
    while at < end:
        k = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
        at += 4
    if end < size:
        k = data[end]
        if end + 1 < size:
            k |= data[end + 1] << 8
        if end + 2 < size:
            k |= data[end + 2] << 16
        h = (h ^ k) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


unsigned_murmur2: Callable[[bytes], int] = hash_by_words if isinstance(hash_by_words, FunctionType) else hash_by_bytes
"""The one that is faster here."""
