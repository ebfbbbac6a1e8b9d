"""Who wants to know of what: each watch fires once, and ends with the connection it came over."""

from __future__ import annotations

from typing import Protocol

from pykafka08.broker.zookeeper.codes import EventType

__all__ = ["Watcher", "Watches"]


class Watcher(Protocol):
    def notify(self, kind: EventType, path: str) -> None: ...


class Watches:
    def __init__(self) -> None:
        # Dictionaries for their order.
        self._data: dict[str, dict[Watcher, None]] = {}
        self._children: dict[str, dict[Watcher, None]] = {}

    def __len__(self) -> int:
        return sum(len(each) for table in (self._data, self._children) for each in table.values())

    def add(self, path: str, watcher: Watcher) -> None:
        self._data.setdefault(path, {})[watcher] = None

    def add_of_children(self, path: str, watcher: Watcher) -> None:
        self._children.setdefault(path, {})[watcher] = None

    def fire(self, kind: EventType, path: str) -> None:
        """A deleted node ends both kinds of watches; who has both is told once."""
        told: dict[Watcher, None] = {}
        if kind is not EventType.CHILDREN:
            told.update(self._data.pop(path, {}))
        if kind in (EventType.CHILDREN, EventType.DELETED):
            told.update(self._children.pop(path, {}))
        for watcher in told:
            watcher.notify(kind, path)

    def drop(self, watcher: Watcher) -> None:
        for table in (self._data, self._children):
            for path in [path for path, watchers in table.items() if watcher in watchers]:
                del table[path][watcher]
                if not table[path]:
                    del table[path]
