"""Plan of a run: tasks, records, bytes and expected duration.  No Spark is started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pykafka08 import TopicPartition
from pykafka08.spark.admission import prorated
from pykafka08.spark.options import ReadOptions
from pykafka08.spark.pipeline.settings import Pipeline, Source
from pykafka08.spark.pipeline.starting import (
    Offsets,
    committed_offsets,
    extent,
    find,
    opened,
    read_options_of,
    start_of,
    started,
)
from pykafka08.spark.pipeline.status import rates
from pykafka08.spark.pipeline.waiting import Waiting, waiting
from pykafka08.spark.ranges import Range, plan_tasks
from pykafka08.spark.sizes import with_sizes

__all__ = ["SourcePlan", "StagePlan", "plan_sources", "plan_stages"]

USUAL_RATE = 100_000.0
"""Rows a second of an ingest, before a run has measured this machine."""


@dataclass(frozen=True)
class SourcePlan:
    """The plan of one source."""

    source: str
    partitions: int
    offsets: int
    """The number of offsets to read, which is the number of records in a topic without gaps."""
    bytes: int
    """The estimated size on the brokers (compressed), from a sample of each topic; 0: unknown."""
    lost: int
    """The number of these offsets that the cluster has deleted."""
    batches: int
    tasks: int
    """The tasks of the first batch, which is the largest."""
    offsets_per_task: int
    """The most offsets of one task."""
    bytes_per_task: int
    seconds: float
    is_rate_known: bool
    """Whether `seconds` comes from an earlier run."""


@dataclass(frozen=True)
class StagePlan:
    """The plan of a stage that reads a table: one batch with all rows that wait."""

    stage: str
    waiting: Waiting
    more: int | None
    """The most rows that earlier stages can add in the same run; None if that depends on the records."""
    seconds: float | None
    """The time for all these rows at the rate of an earlier run; None if the rate or the number is unknown."""


def plan_sources(pipeline: Pipeline) -> list[SourcePlan]:
    """Ask each cluster what there is to read now."""
    return [_plan(pipeline, source) for source in pipeline.sources.values()]


def plan_stages(pipeline: Pipeline, sources: Iterable[SourcePlan]) -> list[StagePlan]:
    """The stages after those; what they have brought to bronze is decoded before silver is read."""
    coming = {f"decode-{one.source}": one.offsets for one in sources}
    found, rate = waiting(pipeline), rates(pipeline)
    decoded = sum(coming.values()) + sum(found[stage].rows for stage in coming)
    planned = []
    for stage, each in found.items():
        more = None if stage.startswith("publish-") else coming.get(stage, decoded)
        is_known = stage in rate and more is not None
        planned.append(StagePlan(stage, each, more, (each.rows + (more or 0)) / rate[stage] if is_known else None))
    return planned


def _plan(pipeline: Pipeline, source: Source) -> SourcePlan:
    options = read_options_of(source)
    first, end = extent(source)
    start = committed_offsets(pipeline, source) or started(pipeline, source) or start_of(source)
    begin = {tp: _begin(tp, start, first) for tp in end}
    ranges = asyncio.run(_measured(source, options, _ranges(begin, end)))
    count = sum(one.size for one in ranges)
    limit = options.max_offsets_per_trigger or 0
    tasks = _tasks(ranges, prorated(begin, end, limit) if limit else end, options)
    rate = rates(pipeline).get(f"ingest-{source.name}")
    return SourcePlan(
        source=source.name,
        partitions=len(end),
        offsets=count,
        bytes=_bytes(ranges),
        lost=sum(max(0, first[tp] - at) for tp, at in start.items() if tp in first),
        batches=-(-count // limit) if limit else min(1, count),
        tasks=len(tasks),
        offsets_per_task=max((sum(one.size for one in task) for task in tasks), default=0),
        bytes_per_task=max((_bytes(task) for task in tasks), default=0),
        seconds=count / (rate or USUAL_RATE),
        is_rate_known=rate is not None,
    )


def _ranges(begin: Offsets, end: Offsets) -> list[Range]:
    return [Range(*tp, begin[tp], at) for tp, at in end.items() if at > begin[tp]]


async def _measured(source: Source, options: ReadOptions, ranges: list[Range]) -> list[Range]:
    """The ranges with the size of an offset."""
    if not ranges:
        return ranges
    async with opened(source, options) as client:
        await find(client, options)
        await client.wait_for_topics(
            {one.topic for one in ranges}, timeout=client.config.default_api_timeout_ms / 1000, needed="READ"
        )
        return await with_sizes(client, ranges, options.settings)


def _tasks(ranges: list[Range], ends: Offsets, options: ReadOptions) -> list[tuple[Range, ...]]:
    """Those of a batch that ends there."""
    return plan_tasks(
        [replace(one, end=ends[TopicPartition(one.topic, one.partition)]) for one in ranges],
        min_partitions=options.min_partitions,
        max_records_per_partition=options.max_records_per_partition,
        target_records_per_task=options.target_records_per_task,
        target_bytes=sys.maxsize,  # a stream shares them out by offsets, whatever is known of bytes
    )


def _bytes(ranges: Iterable[Range]) -> int:
    return round(sum(one.size * one.average_bytes for one in ranges))


def _begin(tp: TopicPartition, start: Offsets, first: Offsets) -> int:
    return max(start.get(tp, first[tp]), first[tp])
