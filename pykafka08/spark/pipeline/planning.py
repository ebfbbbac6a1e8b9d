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
    tasks: int
    batches: int
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
    tasks = plan_tasks(ranges, target_records_per_task=source.target_records_per_task or TARGET_RECORDS)
    rate = rates(pipeline).get(f"ingest-{source.name}")
    return SourcePlan(
        source=source.name,
        partitions=len(ranges),
        offsets=count,
        lost=sum(max(0, first[tp] - at) for tp, at in start.items() if tp in first),
        tasks=len(tasks),
        batches=-(-count // source.max_offsets_per_trigger) if source.max_offsets_per_trigger else min(1, count),
        seconds=count / (rate or USUAL_RATE),
        is_rate_known=rate is not None,
    )


def _begin(tp: TopicPartition, start: Offsets, first: Offsets) -> int:
    return max(start.get(tp, first[tp]), first[tp])
