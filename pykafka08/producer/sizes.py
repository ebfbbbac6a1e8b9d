"""How many bytes columns of records have, seen in one pass with whether they hold bytes at all; a compiled module.

In two ways: by C loops over whole columns, which suits interpreted Python, and by one loop, which suits compiled code.
Which one runs is decided once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import add
from types import FunctionType
from typing import Any

from mypy_extensions import i64

from pykafka08.producer.batch import RECORD_OVERHEAD, headers_size
from pykafka08.records.record import Headers

__all__ = [
    "bounds_by_loop",
    "bounds_by_maps",
    "bounds_of",
    "measured",
    "measured_by_loop",
    "measured_by_maps",
    "record_sizes",
]

_BYTES = {bytes, type(None)}


def measured_by_maps(values: list[Any], keys: list[Any] | None) -> tuple[int, int] | None:
    """Bounds of the encoded bytes of all the records, and of the largest; None where one is not of bytes or None.

    Columns of one length, at least one record.
    """
    if not ({*map(type, values), *map(type, keys or ())} <= _BYTES):
        return None
    sizes = _lengths(values)
    if keys is not None:
        sizes = list(map(add, sizes, _lengths(keys)))
    return sum(sizes) + RECORD_OVERHEAD * len(sizes), max(sizes) + RECORD_OVERHEAD


def measured_by_loop(values: list[Any], keys: list[Any] | None) -> tuple[int, int] | None:
    """The same."""
    overhead: i64 = RECORD_OVERHEAD
    total: i64 = 0
    largest: i64 = 0
    index: i64 = 0
    count: i64 = len(values)
    while index < count:
        size: i64 = overhead
        value = values[index]
        if isinstance(value, bytes):
            size += len(value)
        elif value is not None:
            return None
        if keys is not None:
            key = keys[index]
            if isinstance(key, bytes):
                size += len(key)
            elif key is not None:
                return None
        total += size
        if size > largest:
            largest = size
        index += 1
    return total, largest


def _lengths(column: Sequence[bytes | None]) -> list[int]:
    try:
        return list(map(len, column))  # type: ignore[arg-type]
    except TypeError:  # looking for None first would cost more than this does where there is none
        return [0 if each is None else len(each) for each in column]


def record_sizes(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, headers: Sequence[Headers] | None
) -> list[int]:
    """Bounds of the encoded bytes of each record."""
    sizes = [RECORD_OVERHEAD + size for size in _lengths(values)]
    if keys is not None:
        sizes = list(map(add, sizes, _lengths(keys)))
    if headers is not None:
        sizes = [size + headers_size(each) for size, each in zip(sizes, headers, strict=True)]
    return sizes


def bounds_by_maps(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, headers: Sequence[Headers] | None
) -> list[int]:
    """Bounds of the encoded bytes of no record, of the first, of the first two, and so on to all."""
    return list(accumulate(record_sizes(values, keys, headers), initial=0))


def bounds_by_loop(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, headers: Sequence[Headers] | None
) -> list[int]:
    """The same."""
    overhead: i64 = RECORD_OVERHEAD
    total: i64 = 0
    found: list[int] = [0]
    index: i64 = 0
    count: i64 = len(values)
    while index < count:
        total += overhead
        value = values[index]
        if value is not None:
            total += len(value)
        if keys is not None:
            key = keys[index]
            if key is not None:
                total += len(key)
        if headers is not None and (some := headers[index]):
            total += headers_size(some)
        found.append(total)
        index += 1
    return found


_IS_INTERPRETED = isinstance(measured_by_maps, FunctionType)

# The ones that are faster here.
measured: Callable[[list[Any], list[Any] | None], tuple[int, int] | None] = (
    measured_by_maps if _IS_INTERPRETED else measured_by_loop
)
bounds_of: Callable[
    [Sequence[bytes | None], Sequence[bytes | None] | None, Sequence[Headers] | None],
    list[int],
] = bounds_by_maps if _IS_INTERPRETED else bounds_by_loop
