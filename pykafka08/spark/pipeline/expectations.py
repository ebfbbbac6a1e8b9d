"""Expectations of decoded rows: their levels and thresholds, and how many rows of each batch did not meet them.

A run writes the counts of a batch into its progress document, so that they can be compared over time.  No pyspark is
needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pykafka08.spark.pipeline.settings import Decode, Pipeline
from pykafka08.spark.pipeline.status import ended_at, progress_of, runs
from pykafka08.spark.pipeline.stores import Folder

__all__ = [
    "Broken",
    "Expectation",
    "QualityError",
    "check",
    "expectations",
    "of_newest_run",
    "of_runs",
    "remember",
    "with_counts",
]

FIELD = "quality"
"""Of a progress document: rows read, and rows by expectation that did not meet it."""
REMEMBERED = 1000
"""Batches whose progress Spark has not told yet: it does so soon after each."""


class QualityError(RuntimeError):
    """More rows of a batch than allowed do not meet an expectation with the level ``fail``; the batch is not taken."""


@dataclass(frozen=True)
class Expectation:
    """A rule, a uniqueness or a reference of the settings."""

    reason: str
    """Its name, and the reason of the rows that are refused for it."""
    where: str
    """Its setting."""
    level: str
    threshold: float

    @property
    def refuses(self) -> bool:
        return self.level != "warn"


@dataclass(frozen=True)
class Broken:
    """A batch, and how many of its rows did not meet each expectation."""

    at: datetime
    query: str
    read: int
    counts: Mapping[str, int] = field(default_factory=dict)


def expectations(decode: Decode) -> list[Expectation]:
    """All of them, in the order in which a row is judged."""
    found = [
        Expectation(f"rule: {name}", f"decode.rules.{name!r}", rule.level, rule.threshold)
        for name, rule in decode.rules.items()
    ]
    found += [Expectation(one.reason, "decode.references", one.level, one.threshold) for one in decode.references]
    found += [Expectation(one.reason, "decode.uniqueness", one.level, one.threshold) for one in decode.uniqueness]
    return found


def check(found: Iterable[Expectation], read: int, counts: Mapping[str, int]) -> None:
    """Compare a batch with the thresholds.  Raises QualityError."""
    failed = [
        f"{one.where}: {counts[one.reason]:,} of {read:,} rows break {one.reason!r}, {one.threshold:.2%} are allowed"
        for one in found
        if one.level == "fail" and counts.get(one.reason, 0) > one.threshold * read
    ]
    if failed:
        raise QualityError("; ".join([*failed, "the batch is not taken, and the next run reads it again"]))


_COUNTS: dict[tuple[str, str, int], dict[str, Any]] = {}
"""What :func:`remember` keeps until Spark tells the progress of the batch, in the same process."""


def remember(pipeline: Pipeline, query: str, batch: int, read: int, counts: Mapping[str, int]) -> None:
    """Keep the counts of a batch for its progress document."""
    _COUNTS[pipeline.folder, query, batch] = {"read": read, "broken": dict(counts)}
    while len(_COUNTS) > REMEMBERED:
        del _COUNTS[next(iter(_COUNTS))]


def with_counts(pipeline: Pipeline, document: dict[str, Any]) -> dict[str, Any]:
    """A progress document with the counts of its batch, if there are any."""
    counts = _COUNTS.pop((pipeline.folder, document["name"], document["batchId"]), None)
    return document if counts is None else {**document, FIELD: counts}


def of_runs(folders: Iterable[Folder]) -> list[Broken]:
    """Every batch of the runs whose rows were judged, in order."""
    return [one for run in folders for one in _of_run(progress_of(run))]


def of_newest_run(pipeline: Pipeline) -> tuple[int, Counter[str]]:
    """Rows read, and rows by expectation, of the newest run that judged any."""
    for run in reversed(runs(pipeline)):
        found = _of_run(progress_of(run))
        if found:
            counts: Counter[str] = Counter()
            for one in found:
                counts.update(one.counts)
            return sum(one.read for one in found), counts
    return 0, Counter()


def _of_run(documents: Iterable[Mapping[str, Any]]) -> list[Broken]:
    return [
        Broken(ended_at(one), one["name"], one[FIELD]["read"], one[FIELD]["broken"])
        for one in documents
        if FIELD in one
    ]
