"""Expectations of decoded rows: levels, thresholds, and the rows of each batch that break them.

A run writes the counts of a batch into its progress document, which shows them over time.  No pyspark is needed.
"""

from __future__ import annotations

import json
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
"""The field of a progress document with the rows read, and the rows that broke each expectation.

With Spark Connect also the folder of the files in which the server writes these counts."""
REMEMBERED = 1000
"""The number of batches whose counts are kept until Spark reports their progress, which it does at once."""


class QualityError(RuntimeError):
    """Too many rows of a batch break an expectation with the level ``fail``; the batch is not committed."""


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
    """A batch, and the number of its rows that broke each expectation."""

    at: datetime
    query: str
    read: int
    counts: Mapping[str, int] = field(default_factory=dict)


def expectations(decode: Decode) -> list[Expectation]:
    """All expectations, in the order in which they judge a row."""
    found = [
        Expectation(f"rule: {name}", f"decode.rules.{name!r}", rule.level, rule.threshold)
        for name, rule in decode.rules.items()
    ]
    found += [Expectation(one.reason, "decode.references", one.level, one.threshold) for one in decode.references]
    found += [Expectation(one.reason, "decode.uniqueness", one.level, one.threshold) for one in decode.uniqueness]
    return found


def check(found: Iterable[Expectation], read: int, counts: Mapping[str, int]) -> None:
    """Raise QualityError if a batch exceeds a threshold."""
    failed = [
        f"{one.where}: {counts[one.reason]:,} of {read:,} rows break {one.reason!r}, threshold {one.threshold:.2%}"
        for one in found
        if one.level == "fail" and counts.get(one.reason, 0) > one.threshold * read
    ]
    if failed:
        raise QualityError(
            "; ".join([*failed, "the batch is not committed; correct the data or the expectation, then run again"])
        )


_COUNTS: dict[tuple[str, str, int], dict[str, Any]] = {}
"""Folder, query and batch → the counts that :func:`with_counts` takes once Spark reports the batch's progress."""


def remember(pipeline: Pipeline, query: str, batch: int, read: int, counts: Mapping[str, int]) -> None:
    """Keep the counts of a batch for its progress document.

    On a Spark Connect server this runs in another process than :func:`with_counts`, so the counts go into a file.
    """
    if pipeline.spark.is_connect:
        _file(pipeline, query, batch).write_text(json.dumps({"read": read, "broken": dict(counts)}))
        return
    _COUNTS[pipeline.folder, query, batch] = {"read": read, "broken": dict(counts)}
    while len(_COUNTS) > REMEMBERED:
        _COUNTS.pop(next(iter(_COUNTS)), None)  # stages run in threads of their own


def with_counts(pipeline: Pipeline, document: dict[str, Any]) -> dict[str, Any]:
    """A progress document with the counts of its batch, if there are any."""
    query, batch = document["name"], document["batchId"]
    counts = _COUNTS.pop((pipeline.folder, query, batch), None)
    if pipeline.spark.is_connect:
        counts = _taken(_file(pipeline, query, batch))
    return document if counts is None else {**document, FIELD: counts}


def _file(pipeline: Pipeline, query: str, batch: int) -> Folder:
    return pipeline.root / FIELD / query / f"{batch}.json"


def _taken(file: Folder) -> dict[str, Any] | None:
    """The counts in a file, which is deleted; None if it does not exist."""
    try:
        counts: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    file.delete()
    return counts


def of_runs(folders: Iterable[Folder]) -> list[Broken]:
    """Every judged batch of the runs, in order."""
    return [one for run in folders for one in _of_run(progress_of(run))]


def of_newest_run(pipeline: Pipeline) -> tuple[int, Counter[str]]:
    """The rows read, and the rows that broke each expectation, in the newest run that judged rows."""
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
