"""The topics whose names match a pattern, followed as metadata changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pykafka08.cluster.client import Client
from pykafka08.cluster.metadata import Snapshot
from pykafka08.errors import ConfigError

__all__ = ["PatternTopics"]


class PatternTopics:
    """``names`` are the topics that match; Kafka's own internal topics never do."""

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        try:
            compiled = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise ConfigError(f"pattern={pattern!r} is not a regular expression: {error}") from error
        if not isinstance(compiled.pattern, str):
            raise ConfigError(f"pattern={pattern!r} matches bytes; topic names are strings")
        self._pattern = compiled
        self.names: frozenset[str] = frozenset()

    def follow(
        self,
        client: Client,
        subscribe: Callable[[Iterable[str]], None],
        came_later: Callable[[Iterable[str]], None],
        *,
        may_be_none: bool,
    ) -> None:
        """Call ``subscribe(names)`` whenever they change; not for none if no group can read that.

        ``came_later`` is told first of those that were not there at the beginning.
        """
        is_first = True

        def changed(snapshot: Snapshot) -> None:
            nonlocal is_first
            names, was_first = self._matching(snapshot), is_first
            is_first = False
            if names != self.names and (names or may_be_none):
                if not was_first:
                    came_later(names - self.names)
                self.names = names
                subscribe(sorted(names))

        client.on_metadata(changed)

    def _matching(self, snapshot: Snapshot) -> frozenset[str]:
        return frozenset(
            name
            for name, topic in snapshot.topics.items()
            if topic.partitions and not topic.is_internal and self._pattern.fullmatch(name)
        )
