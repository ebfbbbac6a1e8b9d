"""Offsets that OffsetCommit v0 keeps, apart from all others: in real clusters they are in ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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
        self._offsets: dict[str, Offsets] = {}

    def commit(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        self._offsets.setdefault(group_id, {})[topic, partition] = committed

    def of(self, group_id: str) -> Offsets:
        return self._offsets.get(group_id, {})

    def forget_topic(self, topic: str) -> None:
        for offsets in self._offsets.values():
            for key in [key for key in offsets if key[0] == topic]:
                del offsets[key]
