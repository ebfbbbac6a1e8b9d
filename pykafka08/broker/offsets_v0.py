"""Offsets that OffsetCommit v0 keeps, apart from all others: in real clusters they are in ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pykafka08.broker.journal import Note, keep_nothing

if TYPE_CHECKING:
    from pykafka08.broker.groups import CommittedOffset, Offsets

__all__ = ["MemoryOffsets", "OffsetsV0"]


class OffsetsV0(Protocol):
    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None: ...

    def of(self, group_id: str) -> Offsets:
        """Empty for a group that has none."""

    def forget_topic(self, topic: str) -> None: ...


class MemoryOffsets:
    """For a cluster without ZooKeeper beside it."""

    def __init__(self) -> None:
        self.by_group: dict[str, Offsets] = {}
        self.note: Note = keep_nothing

    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.by_group.setdefault(group_id, {})[topic, partition] = committed
        self.note("offset_v0", group_id, topic, partition, *committed)

    def of(self, group_id: str) -> Offsets:
        return self.by_group.get(group_id, {})

    def forget_topic(self, topic: str) -> None:
        for offsets in self.by_group.values():
            for key in [key for key in offsets if key[0] == topic]:
                del offsets[key]
