"""All that the connections of one server share: nodes, sessions, watches, its release, scripted faults."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pykafka08.broker.zookeeper.codes import EventType, Operation
from pykafka08.broker.zookeeper.sessions import Sessions
from pykafka08.broker.zookeeper.tree import Tree
from pykafka08.broker.zookeeper.watches import Watches
from pykafka08.errors import ConfigError
from pykafka08.security.secret import Secret

if TYPE_CHECKING:
    from pykafka08.broker.zookeeper.conversation import Conversation

__all__ = ["Observer", "Service"]

Observer = Callable[[EventType, str], None]

# What came with which release; the patch releases are those that Kafka's distributions carry.
RELEASES = {"3.3": "3.3.4", "3.4": "3.4.6", "3.8": "3.8.4"}
_NEW_IN = {Operation.MULTI: (3, 4), Operation.CHECK: (3, 4), Operation.CREATE2: (3, 5)}


class Service:
    """Times are seconds of the event loop's clock."""

    def __init__(self, release: str, sessions: Sessions, *, allowed_words: frozenset[str] | None) -> None:
        if not isinstance(release, str) or release not in RELEASES:
            raise ConfigError(f"release={release!r:.100} is not one of {', '.join(RELEASES)}")
        self.release = RELEASES[release]
        self.numbers = tuple(map(int, release.split(".")))
        self.allowed_words = allowed_words
        """Four-letter words that are answered; None for the release's default."""
        self.watches = Watches()
        self.tree = Tree(self._changed)
        self.sessions = sessions
        self.observers: list[Observer] = []
        self.connections: dict[Conversation, None] = {}
        self.is_paused = False
        self.is_holding = False
        """Answers are kept back."""
        self.lost_answers: list[Operation] = []
        """The next request of each kind is carried out, and its connection is closed instead of an answer."""
        self.cut_off: dict[int, float | None] = {}
        """Sessions whose connections are refused, until when; None for until they are let in."""
        self.refused_schemes: set[str] = set()
        self.passwords: Mapping[str, Secret] = {}
        """Of SASL's users."""
        self.requests_served = 0
        self.touched: Callable[[], None] = lambda: None
        """Called when a session's end may have come nearer than it was."""
        self.now: Callable[[], float] = time.monotonic

    def knows(self, operation: Operation) -> bool:
        return self.numbers >= _NEW_IN.get(operation, (0,))

    def _changed(self, kind: EventType, path: str) -> None:
        self.watches.fire(kind, path)
        for observer in tuple(self.observers):
            observer(kind, path)

    def stamp(self) -> Tree:
        """The tree, about to be changed now."""
        self.tree.now_ms = time.time_ns() // 1_000_000
        return self.tree

    def is_cut_off(self, session_id: int) -> bool:
        if session_id not in self.cut_off:
            return False
        until = self.cut_off[session_id]
        if until is not None and self.now() >= until:
            del self.cut_off[session_id]
            return False
        return True

    def expire_due(self) -> float | None:
        """End the sessions of which nothing was heard in time; when the next one may end."""
        if not self.is_paused:
            for session_id in self.sessions.due(self.now()):
                self.end_session(session_id)
        return None if self.is_paused else self.sessions.next_expiry()

    def end_session(self, session_id: int) -> bool:
        """Its nodes go, its connection is closed."""
        if not self.sessions.close(session_id):
            return False
        self.stamp().change(lambda: self.tree.drop_session(session_id))
        for connection in self.connections_of(session_id):
            connection.close()
        return True

    def connections_of(self, session_id: int) -> list[Conversation]:
        return [each for each in self.connections if each.session_id == session_id]
