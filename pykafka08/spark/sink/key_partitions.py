"""The partitions of a column of keys, by the murmur2 of the Java producer, for all rows at once.  Pure; needs numpy.

Words of the hash are computed for all rows that have such a word: nothing is interpreted for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pykafka08.producer.murmur2 import unsigned_murmur2

__all__ = ["murmur2_of"]

_M = np.uint32(0x5BD1E995)
_SEED = np.uint32(0x9747B28C)
LONG = 256
"""Keys of more bytes are hashed one by one: a loop over the words of the longest would go over nothing else."""


def murmur2_of(keys: pa.Array) -> Any:
    """The hash of each key, without its sign as the producer uses it: int64; 0 for null.

    ``keys`` are binary or text, of either size.
    """
    is_large = pa.types.is_large_binary(keys.type) or pa.types.is_large_string(keys.type)
    kind = np.dtype(np.int64 if is_large else np.int32)
    _, offsets, contents = keys.buffers()
    bounds = np.frombuffer(offsets, kind, len(keys) + 1, keys.offset * kind.itemsize).astype(np.int64)
    starts, lengths = bounds[:-1], np.diff(bounds)
    data = np.frombuffer(contents, np.uint8) if contents is not None else np.zeros(0, np.uint8)
    short = np.flatnonzero(lengths <= LONG)
    hashes = np.zeros(len(keys), np.uint32)
    hashes[short] = _hashed(data, starts[short], lengths[short])
    for row in np.flatnonzero(lengths > LONG).tolist():
        hashes[row] = unsigned_murmur2(data[bounds[row] : bounds[row + 1]].tobytes())
    hashes = (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64)
    if keys.null_count:
        hashes[keys.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def _hashed(data: Any, starts: Any, lengths: Any) -> Any:
    words = lengths >> 2
    hashes = _SEED ^ lengths.astype(np.uint32)
    for word in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > word)
        at = starts[rows] + 4 * word
        part = _word(data, at, 4) * _M
        hashes[rows] = (hashes[rows] * _M) ^ ((part ^ (part >> np.uint32(24))) * _M)
    for rest in (1, 2, 3):
        rows = np.flatnonzero(lengths & 3 == rest)
        at = starts[rows] + 4 * words[rows]
        hashes[rows] = (hashes[rows] ^ _word(data, at, rest)) * _M
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
    return hashes ^ (hashes >> np.uint32(15))


def _word(data: Any, at: Any, size: int) -> Any:
    """Little-endian numbers of so many bytes."""
    found = data[at].astype(np.uint32)
    for byte in range(1, size):
        found |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return found
