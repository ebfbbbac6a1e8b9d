"""How far a streaming query is, by partition, out of what Spark says of each batch.  Pure; needs no pyspark.

Spark's own Kafka source has minOffsetsBehindLatest, maxOffsetsBehindLatest and avgOffsetsBehindLatest among its
metrics, which a source in Python cannot set: they are computed here from ``endOffset`` and ``latestOffset``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pykafka08.records.record import TopicPartition
from pykafka08.spark.offsets_json import offsets_of

__all__ = ["QueryProgress", "SourceProgress", "read_progress"]


@dataclass(frozen=True)
class SourceProgress:
    """One Kafka source of a query at the end of a batch."""

    rows: int
    rows_per_second: float
    ends: Mapping[TopicPartition, int]
    """The next offset of each partition: all before it are processed when the batch is."""
    latest: Mapping[TopicPartition, int]
    """Where the logs ended when the batch was planned; empty if the source did not say."""
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the batch began; empty in the first batch of a query, and a partition that is new is not in it."""
    estimated_bytes: int | None = None
    """Of the batch, as brokers keep it, by the size of a sample (``record_sizes``); None if nobody looked it up."""

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """Records behind the end of each partition's log, as it was when the batch was planned."""
        return {tp: max(0, end - self.ends.get(tp, 0)) for tp, end in self.latest.items()}

    @property
    def metrics(self) -> dict[str, float]:
        """By the names of Spark's own source; empty if nothing is known of the logs' ends."""
        lags = list(self.lag.values())
        if not lags:
            return {}
        return {
            "minOffsetsBehindLatest": min(lags),
            "maxOffsetsBehindLatest": max(lags),
            "avgOffsetsBehindLatest": sum(lags) / len(lags),
        }


@dataclass(frozen=True)
class QueryProgress:
    """One batch of a query."""

    query_id: str
    run_id: str
    name: str | None
    batch_id: int
    duration_ms: int
    sources: tuple[SourceProgress, ...]
    """Those that read Kafka, by this source or Spark's own."""

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)

    @property
    def estimated_bytes(self) -> int | None:
        """Of all sources; None unless it is known of each."""
        sizes = [source.estimated_bytes for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """The next offsets of all sources; the lower one where two read the same partition."""
        ends: dict[TopicPartition, int] = {}
        for source in self.sources:
            for tp, end in source.ends.items():
                ends[tp] = min(end, ends.get(tp, end))
        return ends


def read_progress(text: str) -> QueryProgress:
    """Of the JSON that Spark gives as ``event.progress.json``; ValueError if it is none."""
    found = json.loads(text)
    durations = found.get("durationMs") or {}
    sources = (_source(each) for each in found.get("sources") or ())
    return QueryProgress(
        query_id=str(found["id"]),
        run_id=str(found["runId"]),
        name=found.get("name"),
        batch_id=int(found["batchId"]),
        duration_ms=int(durations.get("triggerExecution", 0)),
        sources=tuple(source for source in sources if source is not None),
    )


def _source(found: Mapping[str, Any]) -> SourceProgress | None:
    """None for a source that does not read Kafka."""
    ends = _offsets(found.get("endOffset"))
    if ends is None:
        return None
    return SourceProgress(
        rows=int(found.get("numInputRows") or 0),
        rows_per_second=float(found.get("processedRowsPerSecond") or 0),
        ends=ends,
        latest=_offsets(found.get("latestOffset")) or {},
        starts=_offsets(found.get("startOffset")) or {},
    )


def _offsets(found: Any) -> dict[TopicPartition, int] | None:
    """Out of an offset, which is JSON or, in some releases, the text of it; None if it is none of Kafka's."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return None
    if not isinstance(found, dict) or not found:
        return None
    for partitions in found.values():
        if not isinstance(partitions, dict) or not all(_is_offset(*each) for each in partitions.items()):
            return None
    return offsets_of(found)


def _is_offset(partition: str, offset: object) -> bool:
    return partition.isdecimal() and isinstance(offset, int) and not isinstance(offset, bool)
