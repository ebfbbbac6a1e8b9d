"""Records that were handed out and not committed when their partition went: a commit that would have them says so.

The next ``commit()`` of all that was handed out has PartitionRevokedError for such a partition, once, whether or not it
is back.  Where it is back and others have committed more, offsets of the records from before are refused, as they would
take the group back.  What a transaction has of them is ``sent_offsets``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykafka08.consumer.commits import Commits
from pykafka08.consumer.reader import Reader
from pykafka08.errors import PartitionRevokedError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["LeftBehind"]


class LeftBehind:
    """What a member remembers of partitions that went."""

    def __init__(self, commits: Commits, reader: Reader) -> None:
        self._commits = commits
        self._reader = reader
        self._ends: dict[TopicPartition, int] = {}
        """Where reading had come to in each partition that went with records that were not committed."""
        self._untold: set[TopicPartition] = set()

    def partitions_go(self, partitions: Iterable[TopicPartition]) -> None:
        """Before they do."""
        for tp in partitions:
            # What is only read ahead of handlers was not handed out to anybody.
            end = self._reader.finished(tp) if self._reader.workload is not None else self._reader.position(tp)
            began_at = self._reader.began_at.get(tp)
            self._ends.pop(tp, None)
            if end is not None and began_at not in (None, end) and self._commits.known(tp) != end:
                self._ends[tp] = end
                self._untold.add(tp)

    def told(self, partitions: Iterable[TopicPartition]) -> None:
        """The application has heard that these went."""
        self._untold.difference_update(partitions)

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A commit that was under way as these went was made after all."""
        for tp, offset in offsets.items():
            if offset >= self._ends.get(tp, offset + 1):
                del self._ends[tp]
                self._untold.discard(tp)

    def untold(self) -> dict[TopicPartition, PartitionRevokedError]:
        """For a commit of all that was handed out."""
        return {tp: _gone(tp, "records of it were handed out, and then the partition went") for tp in self._untold}

    def stale(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, PartitionRevokedError]:
        """Of these, offsets of records from before their partition went, unless the application went back to them."""
        return {
            tp: _gone(tp, f"it went, and is back with more committed than {each.offset}")
            for tp, each in offsets.items()
            if each.offset <= self._ends.get(tp, -1) and self._has_moved_on(tp, each.offset)
        }

    def _has_moved_on(self, tp: TopicPartition, offset: int) -> bool:
        start, position = self._commits.started_at(tp), self._reader.position(tp)
        began_at = self._reader.began_at.get(tp, position)
        if start is None or position is None or began_at is None:
            return False
        return offset < start <= min(position, began_at)


def _gone(tp: TopicPartition, why: str) -> PartitionRevokedError:
    text = f"the offset was not committed: {why}; what came of the records may be done twice"
    return PartitionRevokedError(text, topic=tp.topic, partition=tp.partition)
