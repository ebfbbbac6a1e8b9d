"""What lies between the stages: rows that one has written, and the next has not read.  No Spark is started.

By the logs alone: bronze's is Spark's, silver's and gold's are the tables' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from pykafka08.spark.pipeline.compacting import readers_of, version_read
from pykafka08.spark.pipeline.file_logs import last_commit, unread_files
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.table import ACCEPTED, REJECTED, Table
from pykafka08.spark.pipeline.table_source import FILES_PER_TASK

__all__ = ["Waiting", "waiting"]

NEW, NEW_OR_CHANGED = ("batch",), ("batch", "backfill")
"""Kinds of entries."""
KINDS = {
    "dead-letters": (REJECTED, NEW),
    "aggregate": (ACCEPTED, NEW),
    "publish": ("rows", NEW_OR_CHANGED),
}
"""Stage, without the name behind it → the part of its table that it reads, and of which entries."""
IN_ORDER = "publish"
"""One task reads all files of such a stage."""


@dataclass(frozen=True)
class Waiting:
    """Files that a stage is still to read."""

    files: int
    rows: int
    bytes: int
    tasks: int | None
    """Of one batch with all of them; None: Spark packs files by its own settings and the cores there are."""


def waiting(pipeline: Pipeline) -> dict[str, Waiting]:
    """By stage, for all but those that read Kafka; in the order in which they run."""
    found = {f"decode-{name}": _of_bronze(pipeline, name) for name in pipeline.sources}
    for reader in readers_of(pipeline, pipeline.silver):
        found[reader] = _of_table(pipeline, pipeline.silver, reader)
        gold = pipeline.gold(reader.removeprefix("aggregate-"))
        found.update({each: _of_table(pipeline, gold, each) for each in readers_of(pipeline, gold)})
    return found


def _of_bronze(pipeline: Pipeline, source: str) -> Waiting:
    checkpoint = pipeline.checkpoint(f"decode-{source}")
    paths = unread_files(pipeline.bronze(source) / "_spark_metadata", checkpoint, last_commit(checkpoint))
    rows = sum(pq.read_metadata(path).num_rows for path in paths)
    return Waiting(len(paths), rows, sum(Path(path).stat().st_size for path in paths), None)


def _of_table(pipeline: Pipeline, folder: Path, reader: str) -> Waiting:
    part, kinds = next(each for stage, each in KINDS.items() if reader.startswith(stage))
    table = Table(folder)
    files = table.files_since(part, kinds, version_read(pipeline.checkpoint(reader)), table.version)
    per_task = len(files) if reader.startswith(IN_ORDER) else FILES_PER_TASK
    tasks = -(-len(files) // max(1, per_task))
    return Waiting(len(files), sum(one.rows for one in files), sum(one.bytes for one in files), tasks)
