"""How far a consumer has read, for a producer that commits it in its transactions.

Records of a partition that has gone meanwhile are another member's to process: a transaction with what came of them
must not be committed, though this member may own the partition again by then.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.consumer.commits import Commits
from pykafka08.consumer.reader import Reader
from pykafka08.errors import PartitionRevokedError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["SentOffsets"]


class SentOffsets:
    """Remembers what was sent, and which partitions went with records that were handed out since."""

    def __init__(self, commits: Commits, reader: Reader) -> None:
        self._commits = commits
        self._reader = reader
        self._sent: dict[TopicPartition, int] = {}
        self._gone: list[TopicPartition] = []

    def partitions_go(self, partitions: Iterable[TopicPartition]) -> None:
        """Before they do."""
        for tp in partitions:
            position = self._reader.position(tp)
            sent = self._sent.pop(tp, self._commits.known(tp))
            if position is not None and position != sent:
                self._gone.append(tp)

    def take(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read on; PartitionRevokedError, once, if records were handed out of what is gone."""
        gone, self._gone = self._gone, []
        if gone:
            raise PartitionRevokedError(
                f"records of {len(gone)} partitions were handed out, and then the partitions went: abort, and read on",
                topic=gone[0].topic,
                partition=gone[0].partition,
            )
        offsets = self._commits.positions()
        self._sent = {tp: each.offset for tp, each in offsets.items()}
        return offsets
