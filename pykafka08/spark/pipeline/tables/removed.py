"""Offset ranges of the records that retention has removed from bronze, by partition.

A file in the table's folder has all ranges so far; the commit that removes records names it.  The number of ranges of a
partition is limited, so a range may also contain offsets without a removed record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from pykafka08 import TopicPartition
from pykafka08.spark.pipeline.tables.model import FileBounds, Totals
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["OffsetRange", "Ranges", "joined", "merged", "ranges_in", "read_ranges", "write_ranges"]

MOST = 16
"""The maximum number of ranges of one partition.  If there are more, those with the smallest gaps are merged."""
NAME = "ranges.json"


class OffsetRange(NamedTuple):
    """Removed records of a partition."""

    first: int
    last: int
    """The offset of the last removed record."""
    rows: int
    """The number of removed records; less than the length of the range if offsets are missing in it."""

    @property
    def is_whole(self) -> bool:
        """Whether the record of every offset in the range was removed."""
        return self.rows == self.last - self.first + 1


Ranges = Mapping[TopicPartition, tuple[OffsetRange, ...]]
"""By partition, in the order of offsets, without overlaps."""


def joined(ranges: Iterable[OffsetRange], most: int = MOST) -> tuple[OffsetRange, ...]:
    """Join ranges that touch, then those with the smallest gaps between them, until at most ``most`` are left."""
    touching: list[OffsetRange] = []
    for one in sorted(ranges):
        if touching and one.first <= touching[-1].last + 1:
            touching[-1] = _both(touching[-1], one)
        else:
            touching.append(one)
    gaps = [(after.first - before.last, after.first) for before, after in pairwise(touching)]
    begins = {first for _, first in sorted(gaps, reverse=True)[: most - 1]}
    left: list[OffsetRange] = []
    for one in touching:
        if left and one.first not in begins:
            left[-1] = _both(left[-1], one)
        else:
            left.append(one)
    return tuple(left)


def _both(one: OffsetRange, other: OffsetRange) -> OffsetRange:
    return OffsetRange(one.first, max(one.last, other.last), one.rows + other.rows)


def merged(*every: Ranges) -> Ranges:
    """All ranges of each partition."""
    found: dict[TopicPartition, list[OffsetRange]] = {}
    for ranges in every:
        for partition, each in ranges.items():
            found.setdefault(partition, []).extend(each)
    return {partition: joined(each) for partition, each in found.items()}


def ranges_in(table: Table, one: FileBounds) -> Ranges:
    """The ranges of a bronze file: from its statistics, or if it has several partitions, from its rows."""
    topic, partitions, offsets = one.file.values["topic"], one.bounds.get("partition"), one.bounds.get("offset")
    if partitions and offsets and partitions[0] == partitions[1]:
        return {TopicPartition(topic, partitions[0]): (OffsetRange(*offsets, one.file.rows),)}
    rows = table.read(one.file, ["partition", "offset"]).group_by("partition")
    counted = rows.aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")]).to_pylist()
    return {
        TopicPartition(topic, row["partition"]): (
            OffsetRange(row["offset_min"], row["offset_max"], row["offset_count"]),
        )
        for row in counted
    }


def read_ranges(table: Table, totals: Totals | None = None) -> Ranges:
    """The ranges that the table's newest commit or ``totals`` name; empty if nothing was removed."""
    path = (totals or table.totals()).retention.get("ranges")
    if path is None:
        return {}
    topics = json.loads(table.location.read(path))
    return {
        TopicPartition(topic, int(partition)): tuple(OffsetRange(*one) for one in ranges)
        for topic, partitions in topics.items()
        for partition, ranges in partitions.items()
    }


def write_ranges(table: Table, attempt: str, ranges: Ranges) -> str:
    """Write the file of all ranges for a commit, and return its path."""
    topics: dict[str, dict[str, list[OffsetRange]]] = {}
    for (topic, partition), each in ranges.items():
        topics.setdefault(topic, {})[str(partition)] = list(each)
    (table.folder / attempt / NAME).write_text(json.dumps(topics))
    return f"{attempt}/{NAME}"
