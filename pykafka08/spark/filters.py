"""What filters of a query make of its ranges: fewer of them, and shorter ones.

Pure.  Spark hands over the conditions that are joined by AND; those on topic, partition and offset are kept to exactly.
A lower bound of the timestamp only finds where reading begins, since later records may be older again: Spark checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from pykafka08.spark.ranges import Range

__all__ = ["Narrowing", "narrowing_of"]

FIRST_AND_END: Mapping[str, Callable[[int], tuple[int | None, int | None]]] = {
    "EqualTo": lambda value: (value, value + 1),
    "EqualNullSafe": lambda value: (value, value + 1),
    "GreaterThan": lambda value: (value + 1, None),
    "GreaterThanOrEqual": lambda value: (value, None),
    "LessThan": lambda value: (None, value),
    "LessThanOrEqual": lambda value: (None, value + 1),
}
"""By Spark's name of a filter: the whole numbers that it lets pass, from the first to before the end."""
EQUALS = ("EqualTo", "EqualNullSafe")
LOWER_BOUNDS = ("EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual")
NEVER_NULL = ("topic", "partition", "offset", "timestamp", "timestampType")

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

Bounds = tuple[int | None, int | None]


@dataclass
class Narrowing:
    """What the filters leave."""

    topics: list[frozenset[str]] = field(default_factory=list)
    partitions: list[frozenset[int]] = field(default_factory=list)
    partition_bounds: list[Bounds] = field(default_factory=list)
    offset_bounds: list[Bounds] = field(default_factory=list)
    not_before_ms: int | None = None
    """No earlier record passes; those behind the first that is as young may."""

    def apply(self, ranges: Iterable[Range]) -> list[Range]:
        """The parts of ``ranges`` that can have rows, by all but the timestamp."""
        return [each for one in ranges if self._is_wanted(one) for each in [self._cut(one)] if each.size > 0]

    def _is_wanted(self, one: Range) -> bool:
        return (
            all(one.topic in some for some in self.topics)
            and all(one.partition in some for some in self.partitions)
            and all(
                (first is None or one.partition >= first) and (end is None or one.partition < end)
                for first, end in self.partition_bounds
            )
        )

    def _cut(self, one: Range) -> Range:
        start, end = one.start, one.end
        for first, bound in self.offset_bounds:
            start = start if first is None else max(start, first)
            end = end if bound is None else min(end, bound)
        return replace(one, start=start, end=end)


def narrowing_of(filters: Sequence[Any]) -> tuple[Narrowing, list[Any]]:
    """What Spark's filters leave, and those of them that Spark has to check still."""
    narrowing = Narrowing()
    return narrowing, [each for each in filters if not _is_taken(narrowing, each)]


def _is_taken(narrowing: Narrowing, each: Any) -> bool:
    """Put one filter into ``narrowing``; True if every row that is left passes it."""
    kind = type(each).__name__
    path: Sequence[str] = getattr(each, "attribute", ())
    if len(path) != 1:
        return False
    column, value = path[0], getattr(each, "value", None)
    if kind == "IsNotNull":
        return column in NEVER_NULL
    if column == "timestamp":
        if kind in LOWER_BOUNDS and isinstance(value, datetime) and value.tzinfo is not None:
            earliest_ms = (value - EPOCH) // timedelta(milliseconds=1)
            if earliest_ms >= 0:  # records without a time have -1, and pass an earlier bound
                narrowing.not_before_ms = max(narrowing.not_before_ms or 0, earliest_ms)
        return False
    if column == "topic" and (values := _values(kind, value, str)) is not None:
        narrowing.topics.append(frozenset(values))
        return True
    if column == "partition" and (values := _values(kind, value, int)) is not None:
        narrowing.partitions.append(frozenset(values))
        return True
    if column in ("partition", "offset") and kind in FIRST_AND_END and type(value) is int:
        bounds = narrowing.partition_bounds if column == "partition" else narrowing.offset_bounds
        bounds.append(FIRST_AND_END[kind](value))
        return True
    return False


def _values(kind: str, value: Any, of: type) -> list[Any] | None:
    """What a column may be equal to; None if the filter does not say."""
    found = [value] if kind in EQUALS else list(value) if kind == "In" else []
    return found if found and all(type(each) is of for each in found) else None
