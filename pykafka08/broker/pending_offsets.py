"""Offsets that were committed in transactions which are still open; they count when the transaction is committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pykafka08.broker.journal import Note, keep_nothing

__all__ = ["PendingOffsets"]

T = TypeVar("T", bound="tuple[Any, ...]")


class PendingOffsets(Generic[T]):
    """By group, producer id, and (topic, partition)."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[int, dict[tuple[str, int], T]]] = {}
        self._epochs: dict[tuple[str, int], int] = {}
        self.note: Note = keep_nothing

    def epoch(self, group_id: str, producer_id: int) -> int:
        """The newest epoch of the producer that the group has seen; -1 for none."""
        return self._epochs.get((group_id, producer_id), -1)

    def add(self, group_id: str, producer_id: int, epoch: int, topic: str, partition: int, committed: T) -> None:
        """A producer commits as part of its transaction."""
        self._epochs[group_id, producer_id] = epoch
        self._groups.setdefault(group_id, {}).setdefault(producer_id, {})[topic, partition] = committed
        self.note("pending_offset", group_id, producer_id, epoch, topic, partition, *committed)

    def take(self, group_id: str, producer_id: int, epoch: int) -> dict[tuple[str, int], T]:
        """The producer's transaction has ended: what it committed, which is pending no more."""
        self._epochs[group_id, producer_id] = epoch
        pending = self._groups.get(group_id, {})
        taken = pending.pop(producer_id, {})
        if not pending:
            self._groups.pop(group_id, None)
        return taken

    def entries(self) -> Iterator[tuple[object, ...]]:
        """The entries that were passed to ``note``, without offsets that are committed by now."""
        for group_id, producers in self._groups.items():
            for producer_id, offsets in producers.items():
                for (topic, partition), committed in offsets.items():
                    epoch = self.epoch(group_id, producer_id)
                    yield "pending_offset", group_id, producer_id, epoch, topic, partition, *committed

    def covers(self, group_id: str, topic: str, partition: int) -> bool:
        """True while a transaction is open that has committed this partition."""
        return any((topic, partition) in offsets for offsets in self._groups.get(group_id, {}).values())

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted."""
        for producers in self._groups.values():
            for offsets in producers.values():
                for key in [key for key in offsets if key[0] == topic]:
                    del offsets[key]
