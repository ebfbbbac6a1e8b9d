"""Checkpoints of Spark's queries: batches and their offsets."""

from __future__ import annotations

import json

from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.position import Position

__all__ = ["SOURCE_LINE", "last_commit", "offset_text", "planned_position", "position_read", "version_read"]


SOURCE_LINE = 2
"""The line with the end offset of the first source in a batch's file of offsets."""


def last_commit(checkpoint: Folder) -> int:
    """The newest committed batch of a query; -1 without one."""
    return max(_numbers(checkpoint / "commits"), default=-1)


def version_read(checkpoint: Folder) -> int:
    """The newest version of a table whose commit a stage has read completely; -1 without one."""
    return position_read(checkpoint).version


def position_read(checkpoint: Folder) -> Position:
    """The position in a table up to which a stage has read and committed."""
    return _position(checkpoint, last_commit(checkpoint))


def planned_position(checkpoint: Folder, batch: int) -> Position:
    """The end of ``batch``, the last one with rows; later committed batches had no rows, so the newest counts."""
    return _position(checkpoint, max(batch, last_commit(checkpoint)) if batch >= 0 else -1)


def offset_text(checkpoint: Folder, batch: int) -> str:
    """The end offset of the first source in a batch, as written by the source."""
    return (checkpoint / "offsets" / str(batch)).read_text().splitlines()[SOURCE_LINE]


def _position(checkpoint: Folder, batch: int) -> Position:
    return Position() if batch < 0 else Position.of(json.loads(offset_text(checkpoint, batch)))


def _numbers(folder: Folder) -> list[int]:
    return [int(name) for name in folder.names() if name.isdigit()]
