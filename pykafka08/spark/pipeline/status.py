"""How far each stage is: lag, throughput, last batch; from checkpoints, logs and the last run.  No Spark is needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykafka08.errors import KafkaError
from pykafka08.spark.pipeline.compacting import readers_of, version_read
from pykafka08.spark.pipeline.file_logs import unread_rows
from pykafka08.spark.pipeline.settings import Pipeline, Source
from pykafka08.spark.pipeline.starting import committed_offsets, extent, started
from pykafka08.spark.pipeline.table import Table

__all__ = ["StageStatus", "late_updates", "progress_of", "rates", "runs", "status"]


@dataclass(frozen=True)
class StageStatus:
    """One stage."""

    stage: str
    batch: int | None
    """The newest that is committed."""
    at: str
    """When the last batch with rows began, as Spark writes it; ``""``: none is known."""
    rows_per_second: float | None
    lag: str
    """Offsets, rows or log entries, that are there and not read."""
    late: int
    """See :func:`late_updates`; of all runs."""


def runs(pipeline: Pipeline) -> list[Path]:
    """The folders of all runs, the oldest first."""
    return sorted((pipeline.root / "runs").glob("*"))


def progress_of(run: Path) -> list[dict[str, Any]]:
    """The progress documents of a run; a last line that a crash cut short is left out."""
    lines = (run / "progress.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def late_updates(documents: Iterable[Mapping[str, Any]]) -> int:
    """How many updates of windows came later than the watermark and were left out, by Spark's own count.

    An update is what one task has of one window and group, so of one row or of many.
    """
    return sum(one["numRowsDroppedByWatermark"] for document in documents for one in document["stateOperators"])


def rates(pipeline: Pipeline) -> dict[str, float]:
    """Rows a second of each stage, over the batches with rows of the newest run that has any of that stage."""
    found: dict[str, float] = {}
    for run in runs(pipeline):
        rows: dict[str, int] = {}
        seconds: dict[str, float] = {}
        for one in progress_of(run):
            if one["numInputRows"]:
                name = one["name"]
                rows[name] = rows.get(name, 0) + one["numInputRows"]
                seconds[name] = seconds.get(name, 0.0) + one["durationMs"].get("triggerExecution", 0) / 1000
        found.update({name: count / max(seconds[name], 0.001) for name, count in rows.items()})
    return found


def status(pipeline: Pipeline) -> list[StageStatus]:
    """Every stage, in order."""
    documents = [one for run in runs(pipeline) for one in progress_of(run) if one["numInputRows"]]
    newest = {one["name"]: one["timestamp"] for one in documents}
    rate = rates(pipeline)
    return [
        StageStatus(
            name,
            _batch(pipeline, name),
            newest.get(name, ""),
            rate.get(name),
            lag,
            late_updates(one for one in documents if one["name"] == name),
        )
        for name, lag in _lags(pipeline).items()
    ]


def _lags(pipeline: Pipeline) -> dict[str, str]:
    lags = {f"ingest-{name}": _lag_of_source(pipeline, source) for name, source in pipeline.sources.items()}
    for name in pipeline.sources:
        unread = unread_rows(pipeline.bronze(name) / "_spark_metadata", pipeline.checkpoint(f"decode-{name}"))
        lags[f"decode-{name}"] = f"{unread:,} rows"
    for folder in (pipeline.silver, *(pipeline.gold(name) for name in pipeline.aggregates)):
        for reader in readers_of(pipeline, folder):
            behind = Table(folder).version - version_read(pipeline.checkpoint(reader))
            lags[reader] = f"{behind} log entries"
    return lags


def _lag_of_source(pipeline: Pipeline, source: Source) -> str:
    try:
        first, end = extent(source)
    except KafkaError as error:
        return f"not known: {error}"
    start = committed_offsets(pipeline, source) or started(pipeline, source) or first
    lag = sum(max(0, at - max(start.get(tp, 0), first[tp])) for tp, at in end.items())
    return f"{lag:,} offsets"


def _done(folder: Path) -> int:
    return max((int(path.stem) for path in folder.glob("*") if path.stem.isdigit()), default=-1)


def _batch(pipeline: Pipeline, stage: str) -> int | None:
    done = _done(pipeline.checkpoint(stage) / "commits")
    return done if done >= 0 else None
