"""What a run will read, before it runs: tasks, records and expected duration.  No Spark is needed."""

from __future__ import annotations

from dataclasses import dataclass

from pykafka08 import TopicPartition
from pykafka08.spark.pipeline.settings import Pipeline, Source
from pykafka08.spark.pipeline.starting import Offsets, committed_offsets, extent, start_of, started
from pykafka08.spark.pipeline.status import rates
from pykafka08.spark.ranges import TARGET_RECORDS, Range, plan_tasks

__all__ = ["SourcePlan", "plan"]

USUAL_RATE = 100_000.0
"""Rows a second of an ingest, where no run has shown what this machine does."""


@dataclass(frozen=True)
class SourcePlan:
    """One source."""

    source: str
    partitions: int
    offsets: int
    """How many are to be read; records, where the topic has no holes."""
    lost: int
    """Of these the cluster has deleted so many."""
    batches: int
    tasks: int
    """Of the largest batch."""
    offsets_per_task: int
    """At most."""
    seconds: float
    is_rate_known: bool
    """Whether `seconds` is by an earlier run."""


def plan(pipeline: Pipeline) -> list[SourcePlan]:
    """Ask each cluster what there is to read now."""
    return [_plan(pipeline, source) for source in pipeline.sources.values()]


def _plan(pipeline: Pipeline, source: Source) -> SourcePlan:
    first, end = extent(source)
    start = committed_offsets(pipeline, source) or started(pipeline, source) or start_of(source)
    ranges = [Range(tp.topic, tp.partition, _begin(tp, start, first), at) for tp, at in end.items()]
    count = sum(max(0, one.size) for one in ranges)
    limit = source.max_offsets_per_trigger
    target = source.target_records_per_task or TARGET_RECORDS
    tasks = plan_tasks(_of_a_batch(ranges, count, limit), target_records_per_task=target)
    rate = rates(pipeline).get(f"ingest-{source.name}")
    return SourcePlan(
        source=source.name,
        partitions=len(ranges),
        offsets=count,
        lost=sum(max(0, first[tp] - at) for tp, at in start.items() if tp in first),
        batches=-(-count // limit) if limit else min(1, count),
        tasks=len(tasks),
        offsets_per_task=max((sum(one.size for one in task) for task in tasks), default=0),
        seconds=count / (rate or USUAL_RATE),
        is_rate_known=rate is not None,
    )


def _of_a_batch(ranges: list[Range], count: int, limit: int) -> list[Range]:
    """What each partition has of a batch of ``limit`` offsets, 0: of all: its share of what there is."""
    if not limit or count <= limit:
        return ranges
    return [Range(one.topic, one.partition, one.start, one.start + one.size * limit // count) for one in ranges]


def _begin(tp: TopicPartition, start: Offsets, first: Offsets) -> int:
    return max(start.get(tp, first[tp]), first[tp])
