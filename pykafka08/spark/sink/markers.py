"""What the sink notes in Kafka of the batches that it has written: committed offsets of groups that have no members.

A *task's marker* is committed in the same transaction as its rows, so that it is there if and only if they are.  The
*decision* is committed by the driver, on its own, before it ends the first transaction of a batch.  Offsets are batch
ids, the metadata is JSON.  Both last as long as committed offsets do (``offsets.retention.minutes``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["Decision", "Marker", "Place", "marker_partition"]


def marker_partition(topic: str) -> TopicPartition:
    """Under which partition notes stand of what was written to the topic."""
    return TopicPartition(topic, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Which part of which batch of which query a task writes."""

    prefix: str
    query_id: str
    batch_id: int
    task: int

    @property
    def query(self) -> str:
        """The group of the decisions."""
        return f"{self.prefix}-{self.query_id}"

    @property
    def transactional_id(self) -> str:
        """The same for each batch: whoever writes this part next ends what was left.  Also the marker's group."""
        return f"{self.query}-{self.task}"


@dataclass(frozen=True, slots=True)
class Marker:
    """The task has written that many rows, and bytes of keys and values, in that batch."""

    batch_id: int
    rows: int
    bytes: int

    def to_offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch_id, metadata=json.dumps({"rows": self.rows, "bytes": self.bytes}))

    @classmethod
    def of_offset(cls, committed: OffsetAndMetadata) -> Marker:
        """ValueError for one that is not the sink's."""
        noted = _noted(committed, "rows", "bytes")
        return cls(committed.offset, noted["rows"], noted["bytes"])


@dataclass(frozen=True, slots=True)
class Decision:
    """The batch, of that many tasks, is whole: every transaction of it is to be committed."""

    batch_id: int
    tasks: int

    def to_offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch_id, metadata=json.dumps({"tasks": self.tasks}))

    @classmethod
    def of_offset(cls, committed: OffsetAndMetadata) -> Decision:
        """ValueError for one that is not the sink's."""
        return cls(committed.offset, _noted(committed, "tasks")["tasks"])


def _noted(committed: OffsetAndMetadata, *names: str) -> dict[str, int]:
    try:
        found = json.loads(committed.metadata or "")
        return {name: int(found[name]) for name in names}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"offset {committed.offset} with metadata {committed.metadata!r:.100} was not committed by this sink: "
            "another application uses its group"
        ) from error
