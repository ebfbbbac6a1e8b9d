"""Status of each stage: lag, throughput, last batch, from checkpoints, logs and the last run.  No Spark is needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from pykafka08 import TopicPartition
from pykafka08.errors import AuthorizationError, KafkaError, SecurityError
from pykafka08.spark.offsets_json import offsets_of
from pykafka08.spark.pipeline.checkpoints import last_commit
from pykafka08.spark.pipeline.settings import Pipeline, Source
from pykafka08.spark.pipeline.starting import committed_offsets, extent, started
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.waiting import waiting

__all__ = [
    "PartitionStatus",
    "StageStatus",
    "ended_at",
    "late_updates",
    "newest_batches",
    "PROGRESS",
    "progress_of",
    "rates",
    "runs",
    "status",
]


@dataclass(frozen=True)
class PartitionStatus:
    """One topic partition of a source."""

    partition: TopicPartition
    lag: int
    """Offsets in the cluster that are not in bronze yet."""
    offset: int
    """The next offset to read."""
    rows_per_second: float | None
    """Offsets a second over the batches with rows of the newest run with any."""


@dataclass(frozen=True)
class StageStatus:
    """The status of one stage."""

    stage: str
    batch: int | None
    """The newest committed batch."""
    at: datetime | None
    """The end of the last batch with rows; None if unknown."""
    rows_per_second: float | None
    lag: str
    """Offsets or rows that wait for the stage, as text."""
    behind: int | None
    """The lag as a number; None if unknown."""
    late: int
    """Dropped updates of windows in all runs, see :func:`late_updates`."""
    partitions: tuple[PartitionStatus, ...] = ()
    """Partitions of a stage that reads Kafka, the one with the largest lag first."""
    refusal: SecurityError | AuthorizationError | None = None
    """The error of a source whose brokers refused the credentials or the request."""


PROGRESS = "progress"
"""The prefix of the files with Spark's progress, in the folder of a run."""


def runs(pipeline: Pipeline) -> list[Folder]:
    """The folders of all runs, the oldest first."""
    folder = pipeline.root / "runs"
    return [folder / name for name in folder.names()]


def progress_of(run: Folder) -> list[dict[str, Any]]:
    """The progress documents of a run; an incomplete last line, after a crash, is skipped."""
    parts = [(run / name).read_text() for name in run.names() if name.startswith(PROGRESS)]
    lines = [line for text in parts for line in text.splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def late_updates(documents: Iterable[Mapping[str, Any]]) -> int:
    """The number of updates of windows that came later than the watermark and were dropped, as counted by Spark.

    An update is what one task has of one window and group, so of one row or of many.
    """
    return sum(one["numRowsDroppedByWatermark"] for document in documents for one in document["stateOperators"])


def rates(pipeline: Pipeline) -> dict[str, float]:
    """Rows a second of each stage, over the batches with rows of the newest run that has any of that stage."""
    return {
        name: sum(one["numInputRows"] for one in each) / _seconds(each)
        for name, each in newest_batches(pipeline).items()
    }


def status(pipeline: Pipeline) -> list[StageStatus]:
    """Every stage, in order."""
    documents = [one for run in runs(pipeline) for one in progress_of(run) if one["numInputRows"]]
    newest, rate = newest_batches(pipeline), rates(pipeline)
    found = []
    for name, (lag, behind, partitions, refusal) in _lags(pipeline, newest).items():
        batch = last_commit(pipeline.checkpoint(name))
        late = late_updates(one for one in documents if one["name"] == name)
        ended = ended_at(newest[name][-1]) if name in newest else None
        last = batch if batch >= 0 else None
        found.append(StageStatus(name, last, ended, rate.get(name), lag, behind, late, partitions, refusal))
    return found


Documents = Mapping[str, list[dict[str, Any]]]
"""Stage → progress of its batches with rows, in order."""


def newest_batches(pipeline: Pipeline) -> Documents:
    """The batches of each stage in the newest run that has any of it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs(pipeline):
        of_run: dict[str, list[dict[str, Any]]] = {}
        for one in progress_of(run):
            if one["numInputRows"]:
                of_run.setdefault(one["name"], []).append(one)
        found.update(of_run)
    return found


def _seconds(documents: Iterable[Mapping[str, Any]]) -> float:
    millis: int = sum(one["durationMs"].get("triggerExecution", 0) for one in documents)
    return max(millis, 1) / 1000


def ended_at(document: Mapping[str, Any]) -> datetime:
    """The end of a batch; Spark's progress has its begin and duration."""
    began = datetime.strptime(document["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return began + timedelta(milliseconds=document["durationMs"].get("triggerExecution", 0))


class _Lag(NamedTuple):
    text: str
    behind: int | None = None
    partitions: tuple[PartitionStatus, ...] = ()
    refusal: SecurityError | AuthorizationError | None = None


def _lags(pipeline: Pipeline, newest: Documents) -> dict[str, _Lag]:
    lags: dict[str, _Lag] = {}
    for name, source in pipeline.sources.items():
        lags[f"ingest-{name}"] = _of_source(pipeline, source, newest.get(f"ingest-{name}", []))
    lags.update({stage: _Lag(f"{each.rows:,} rows", each.rows) for stage, each in waiting(pipeline).items()})
    return lags


def _of_source(pipeline: Pipeline, source: Source, documents: list[dict[str, Any]]) -> _Lag:
    try:
        partitions = _partitions(pipeline, source, documents)
    except (SecurityError, AuthorizationError) as error:
        return _Lag("not known", refusal=error)
    except KafkaError as error:
        return _Lag(f"not known: {error}")
    total = sum(one.lag for one in partitions)
    return _Lag(f"{total:,} offsets", total, tuple(sorted(partitions, key=lambda one: -one.lag)))


def _partitions(pipeline: Pipeline, source: Source, documents: list[dict[str, Any]]) -> list[PartitionStatus]:
    first, end = extent(source)
    start = started(pipeline, source)
    at = committed_offsets(pipeline, source) or start or first
    begun = _offsets(documents[0], "startOffset") or start or {} if documents else {}
    read = _offsets(documents[-1], "endOffset") if documents else {}
    seconds = _seconds(documents)
    found = []
    for tp, last in sorted(end.items()):
        place = max(at.get(tp, first[tp]), first[tp])
        rate = (read[tp] - begun.get(tp, 0)) / seconds if tp in read else None
        found.append(PartitionStatus(tp, max(0, last - place), place, rate))
    return found


def _offsets(document: Mapping[str, Any], which: str) -> Mapping[TopicPartition, int]:
    """Empty before the first batch."""
    found = document["sources"][0][which]
    return offsets_of(json.loads(found) if isinstance(found, str) else found) if found else {}
