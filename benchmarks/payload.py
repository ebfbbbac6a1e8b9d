"""The records of every benchmark: JSON-like values of varied length, and keys.  The same bytes in each process."""

from __future__ import annotations

import random
from functools import lru_cache

__all__ = ["DISTINCT_KEYS", "keys_of", "pool_of", "repeated"]

DISTINCT_KEYS = 10_000

_EVENTS = ("order_placed", "order_paid", "item_added", "item_removed", "page_view", "search", "login", "logout")
_WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima")


@lru_cache(maxsize=1)
def pool_of(size: int, count: int) -> list[bytes]:
    """``count`` values of ``size`` bytes on average, from three fifths to seven fifths of it."""
    source = random.Random(size)
    words = " ".join(source.choice(_WORDS) for _ in range(1 + size // 2))
    values = []
    for number in range(count):
        wanted = source.randint(size * 3 // 5, size * 7 // 5)
        value = b'{"id":%d,"event":"%s","amount":%d.%02d,"note":"' % (
            number * 7919,
            source.choice(_EVENTS).encode(),
            source.randrange(1000),
            source.randrange(100),
        )
        start = source.randrange(size)
        filled = words[start : start + max(0, wanted - len(value) - 2)]
        values.append(value + filled.encode() + b'"}')
    return values


@lru_cache(maxsize=1)
def keys_of(count: int) -> list[bytes]:
    """``count`` keys of eight bytes, of which at most ``DISTINCT_KEYS`` are different."""
    source = random.Random(8)
    return [b"k%07d" % source.randrange(DISTINCT_KEYS) for _ in range(count)]


def repeated(pool: list[bytes], count: int) -> list[bytes]:
    """The first ``count`` of the pool repeated without end."""
    return (pool * (count // len(pool) + 1))[:count]
