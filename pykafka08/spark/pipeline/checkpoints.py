"""Checkpoints of Spark's queries: their batches, and what these have read."""

from __future__ import annotations

import json

from pykafka08.spark.pipeline.stores import Folder
from pykafka08.spark.pipeline.tables.position import Position

__all__ = ["last_commit", "offset_text", "planned_position", "position_read", "version_read"]


def last_commit(checkpoint: Folder) -> int:
    """The newest batch of a query that is committed; -1: there is none."""
    return max(_numbers(checkpoint / "commits"), default=-1)


def version_read(checkpoint: Folder) -> int:
    """The newest version of a table that a stage has read whole and committed; -1: none."""
    return position_read(checkpoint).version


def position_read(checkpoint: Folder) -> Position:
    """How far a stage has read a table, and committed that."""
    return _position(checkpoint, last_commit(checkpoint))


def planned_position(checkpoint: Folder, batch: int) -> Position:
    """How far the batches until ``batch`` read, which is the last with rows: later ones that are committed had none."""
    return _position(checkpoint, max(batch, last_commit(checkpoint)) if batch >= 0 else -1)


def offset_text(checkpoint: Folder, batch: int) -> str:
    """The end offset of the first source in a batch, as the source has written it."""
    return (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2]


def _position(checkpoint: Folder, batch: int) -> Position:
    return Position() if batch < 0 else Position.of(json.loads(offset_text(checkpoint, batch)))


def _numbers(folder: Folder) -> list[int]:
    return [int(name) for name in folder.names() if name.isdigit()]
