"""Rows between the stages: written by one stage, and not read by the next one yet.

Read from the logs of the tables and the checkpoints of the stages, without Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

from pykafka08.spark.pipeline.checkpoints import position_read
from pykafka08.spark.pipeline.compacting import readers_of
from pykafka08.spark.pipeline.settings import Pipeline
from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.model import BACKFILL, NEW_ROWS
from pykafka08.spark.pipeline.tables.position import Position, files_between, files_since
from pykafka08.spark.pipeline.tables.stream import FILES_PER_TASK
from pykafka08.spark.pipeline.tables.table import Table

__all__ = ["Waiting", "waiting"]

IN_ORDER = "publish"
"""The prefix of stages whose files one task reads, with those of backfills."""


@dataclass(frozen=True)
class Waiting:
    """Files that a stage has not read yet."""

    files: int
    rows: int
    bytes: int
    tasks: int
    """The tasks of one batch with all these files."""


def waiting(pipeline: Pipeline) -> dict[str, Waiting]:
    """By stage, in the order in which they run; without the stages that read Kafka."""
    found = {f"decode-{one}": _of_table(pipeline, pipeline.bronze(one), f"decode-{one}") for one in pipeline.sources}
    for folder in (pipeline.rejects, pipeline.silver):
        for reader in readers_of(pipeline, folder):
            found[reader] = _of_table(pipeline, folder, reader)
            gold = pipeline.gold(reader.removeprefix("aggregate-"))
            found.update({each: _of_table(pipeline, gold, each) for each in readers_of(pipeline, gold)})
    return found


def _of_table(pipeline: Pipeline, folder: Folder, reader: str) -> Waiting:
    kinds = (NEW_ROWS, BACKFILL) if reader.startswith(IN_ORDER) else (NEW_ROWS,)
    table = Table(folder)
    read, last = position_read(pipeline.checkpoint(reader)), table.version
    begun = files_between(table, kinds, read, Position(read.at)) if read.files else []
    files = [*begun, *files_since(table, kinds, read.at if read.files else read.version, last)]
    per_task = len(files) if reader.startswith(IN_ORDER) else FILES_PER_TASK
    tasks = -(-len(files) // max(1, per_task))
    return Waiting(len(files), sum(one.rows for one in files), sum(one.bytes for one in files), tasks)
