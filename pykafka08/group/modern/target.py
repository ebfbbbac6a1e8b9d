"""The assignment that the broker wants a member to have: by topic ids, whose names may have to be looked up first.

Pure; times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from pykafka08.group.ownership import Partitions
from pykafka08.protocol.messages.consumer_group_heartbeat import TopicPartitions
from pykafka08.records.record import TopicPartition

__all__ = ["PartitionIds", "TargetAssignment"]

PartitionIds = frozenset[tuple[UUID, int]]


class TargetAssignment:
    """``looking_up`` is the attempt that is under way; ``look_up_at`` is when the next may begin."""

    def __init__(self) -> None:
        self.looking_up: int | None = None
        self.look_up_at = 0.0
        self._wanted: PartitionIds = frozenset()
        self._names: dict[UUID, str] = {}
        self._ids: dict[TopicPartition, UUID] = {}

    def replace(self, topics: Iterable[TopicPartitions]) -> None:
        self._wanted = frozenset((each.topic_id, number) for each in topics for number in each.partitions)

    def clear(self) -> None:
        self._wanted = frozenset()

    def name(self, names: Mapping[UUID, str]) -> None:
        """Names as they are known now; those known before stay."""
        self._names.update(names)

    @property
    def nameless(self) -> frozenset[UUID]:
        """Topics that cannot be read yet."""
        return frozenset(topic_id for topic_id, _ in self._wanted) - self._names.keys()

    def partitions(self) -> Partitions:
        """What can be read; from now on these names stand for these ids: a topic made anew has its old name."""
        ids = {
            TopicPartition(self._names[topic_id], number): topic_id
            for topic_id, number in self._wanted
            if topic_id in self._names
        }
        self._ids.update(ids)
        return frozenset(ids)

    def by_id(self, owned: Partitions) -> PartitionIds:
        """What the broker calls partitions that it has once given."""
        return frozenset((self._ids[tp], tp.partition) for tp in owned)
