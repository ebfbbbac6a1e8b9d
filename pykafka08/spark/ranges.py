"""What is read: ranges of offsets, how they are split as Spark's connector splits them, and how small ones share tasks.

Pure: the same ranges and limits give the same tasks, in another process and after a restart too.  That is what
exactly-once stands on when a micro-batch is read again.  Source of the splits: Spark's options ``minPartitions`` and
``maxRecordsPerPartition`` (SPARK-36576, SPARK-49259), the latter applied first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from pykafka08.config import ClientConfig, ConsumerConfig

__all__ = ["TARGET_BYTES", "TARGET_RECORDS", "Range", "ReadSettings", "ReadTask", "plan_tasks"]

TARGET_RECORDS = 50_000
TARGET_BYTES = 8 * 1024 * 1024
"""When a task that small ranges share is full: a task costs 45 to 60 ms however little it reads."""
NEARLY = 1 - 1e-9
"""Sums of fractions may be a little beside the whole."""


@dataclass(frozen=True)
class Range:
    """The offsets from ``start`` to before ``end`` of one partition.

    ``average_bytes`` of an offset, as brokers keep it, is an estimate, 0 if there is none, as in streams (``sizes``);
    ``topic_id`` is None before Kafka 2.8.  Offsets may have holes, so that a range may have fewer records than offsets,
    or none.
    """

    topic: str
    partition: int
    start: int
    end: int
    average_bytes: float = 0.0
    topic_id: UUID | None = None

    @property
    def size(self) -> int:
        """Offsets in the range; negative if it ends before it starts."""
        return self.end - self.start


@dataclass(frozen=True)
class ReadSettings:
    """What a task needs to know beside its ranges; times in milliseconds, sizes in bytes."""

    client: ClientConfig
    consumer: ConsumerConfig
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 120_000
    """How long a fetch may go without progress (``kafkaConsumer.pollTimeoutMs``)."""
    include_headers: bool = False
    fetch_bytes: int = 4 * 1024 * 1024
    """Asked of a broker at once (``fetchBytes``, ``kafka.fetch.max.bytes``)."""
    partition_fetch_bytes: int | None = None
    """Asked of each partition at once at most (``kafka.max.partition.fetch.bytes``)."""


@dataclass(frozen=True)
class ReadTask:
    """One Spark task: its ranges are read one after the other."""

    ranges: tuple[Range, ...]
    settings: ReadSettings


def plan_tasks(
    ranges: Iterable[Range],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
    target_records_per_task: int = TARGET_RECORDS,
    target_bytes: int = TARGET_BYTES,
) -> list[tuple[Range, ...]]:
    """The ranges of each task, in order of topic and partition; empty ranges are left out.

    With ``min_partitions`` or ``max_records_per_partition`` each task has one range, split as Spark splits it.
    Without, none is split, and small ones share as few tasks of about the same size as ``target_records_per_task``
    offsets and ``target_bytes`` of each allow.
    """
    wanted = sorted(
        (each for each in ranges if each.size > 0), key=lambda each: (each.topic, each.partition, each.start)
    )
    if min_partitions is None and max_records_per_partition is None:
        return _grouped(wanted, target_records_per_task, target_bytes)
    pieces: list[Range] = wanted
    if max_records_per_partition is not None:
        most = max_records_per_partition
        pieces = [piece for each in wanted for piece in _divided(each, -(-each.size // most))]
    if min_partitions is not None and min_partitions > len(pieces):
        pieces = _at_least(pieces, min_partitions)
    return [(piece,) for piece in pieces]


def _at_least(ranges: Sequence[Range], count: int) -> list[Range]:
    """Large ranges are cut in proportion to their size; those below one share stay whole."""
    total = sum(each.size for each in ranges)
    small = [each for each in ranges if _parts(each.size, total, count) == 1]
    kept_whole = {(each.topic, each.partition) for each in small}
    total_of_large = total - sum(each.size for each in small)
    left = max(count - len(small), 1)
    pieces = []
    for each in ranges:
        is_small = (each.topic, each.partition) in kept_whole
        pieces += _divided(each, 1 if is_small else _parts(each.size, total_of_large, left))
    return pieces


def _parts(size: int, total: int, count: int) -> int:
    """The nearest whole number to the range's share of ``count``; halves go up, as in Java, and one is the least."""
    return max(int(size / total * count + 0.5), 1)


def _divided(whole: Range, count: int) -> list[Range]:
    """``count`` pieces of nearly equal size, the larger ones last; empty ones are left out."""
    pieces = []
    start, left = whole.start, whole.size
    for index in range(count):
        size = left // (count - index)
        left -= size
        if size:
            pieces.append(replace(whole, start=start, end=start + size))
        start += size
    return pieces


def _grouped(ranges: Sequence[Range], most_records: int, most_bytes: int) -> list[tuple[Range, ...]]:
    """As few tasks as the most of each allows, and these as even as whole ranges let them be."""
    weights = [max(each.size / most_records, each.size * each.average_bytes / most_bytes) for each in ranges]
    left = sum(weights)
    tasks: list[tuple[Range, ...]] = []
    held: list[Range] = []
    weight = 0.0
    for each, its_weight in zip(ranges, weights, strict=True):
        held.append(each)
        weight += its_weight
        # What is left is shared out anew with each task: one large range changes what the others' share is.
        if weight >= NEARLY * left / max(1, math.ceil(NEARLY * left)):
            tasks.append(tuple(held))
            held, left, weight = [], left - weight, 0.0
    return [*tasks, tuple(held)] if held else tasks
