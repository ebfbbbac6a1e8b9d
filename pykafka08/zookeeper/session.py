"""The clock of one client's sessions: when to ask for a sign of life, when a connection counts as dead, when a session.

kazoo says that a session is lost only after it has reached a server again.  A server ends a session when it has heard
nothing for the session's time-out, so that this clock counts from when the last *answered* request was sent: the server
has heard it no earlier.

    NEW --connected--> CONNECTED --disconnected, or silent for half the time-out--> SUSPENDED --connected--> CONNECTED
                           |                                                           |
                           `------------------ expired, or the time-out has passed ----+--> NEW, the next session

A session that we count as lost may still be there when the connection comes back (a server that was stopped gives
sessions their whole time-out again).  It is ended then (:class:`Renew`), and with it what is left of its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pykafka08.zookeeper.events import Connected, Event, SessionLost, Suspended

__all__ = ["Action", "DropConnection", "Heartbeat", "Renew", "SessionClock", "State", "Tell"]

# Parts of the session's time-out.
ASK_AFTER = 1 / 6
DEAD_AFTER = 1 / 2
DELIVER_FOR = 3 / 4
"""The rest is for an ensemble whose leader hears of our requests half a tick late; a session has two ticks at least."""

NEVER = float("-inf")


class State(Enum):
    NEW = "new"
    CONNECTED = "connected"
    SUSPENDED = "suspended"


@dataclass(frozen=True)
class Heartbeat:
    """Ask the server for anything."""


@dataclass(frozen=True)
class DropConnection:
    """It is dead, though nobody has said so."""


@dataclass(frozen=True)
class Renew:
    """End the session that was counted as lost, and open a new one."""


@dataclass(frozen=True)
class Tell:
    event: Event


Action = Heartbeat | DropConnection | Renew | Tell


class SessionClock:
    """Times are monotonic seconds; ``timeout`` is the session's, as asked for until the server has agreed to one."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.state = State.NEW
        self.session_id: int | None = None
        self.number = 1
        self._proof = NEVER
        self._asked_at: float | None = None
        self._abandoned: int | None = None
        self._actions: list[Action] = []

    @property
    def delivery_deadline(self) -> float:
        """Until when the session surely lives."""
        return self._proof + DELIVER_FOR * self.timeout if self.session_id is not None else NEVER

    @property
    def has_actions(self) -> bool:
        return bool(self._actions)

    # -- what happened

    def connected(self, session_id: int, timeout: float, sent_at: float) -> None:
        """A server has taken the session, or made one; it was asked at ``sent_at``."""
        if session_id == self._abandoned:
            self._actions.append(Renew())
            return
        is_new = session_id != self.session_id
        self.timeout = timeout
        self.state, self.session_id, self._abandoned = State.CONNECTED, session_id, None
        self._proof = sent_at
        self._asked_at = None
        self._actions.append(Tell(Connected(session_id, is_new)))

    def disconnected(self, now: float) -> None:
        if self.state is State.CONNECTED:
            self.state = State.SUSPENDED
            self._actions.append(Tell(Suspended(now)))

    def expired(self, now: float) -> None:
        """The server says that the session is over, or it was ended."""
        if self.session_id is not None:
            self._lose(now)
        self._abandoned = None

    def answered(self, sent_at: float, session_number: int) -> None:
        """The answer of a request came that was sent at ``sent_at`` in that session."""
        if session_number == self.number and self.session_id is not None:
            self._proof = max(self._proof, sent_at)
            if self._asked_at is not None and sent_at >= self._asked_at:
                self._asked_at = None

    # -- what is to be done

    def poll(self, now: float) -> list[Action]:
        if self.state is State.CONNECTED:
            if self._asked_at is not None and now >= self._asked_at + DEAD_AFTER * self.timeout:
                self._asked_at = None
                self._actions.append(DropConnection())
                self.disconnected(now)
            elif self._asked_at is None and now >= self._proof + ASK_AFTER * self.timeout:
                self._asked_at = now
                self._actions.append(Heartbeat())
        if self.state is State.SUSPENDED and now >= self._proof + self.timeout:
            self._abandoned = self.session_id
            self._lose(now)
        actions, self._actions = self._actions, []
        return actions

    def next_wakeup(self) -> float | None:
        if self._actions:
            return NEVER
        if self.state is State.SUSPENDED:
            return self._proof + self.timeout
        if self.state is State.CONNECTED:
            if self._asked_at is not None:
                return self._asked_at + DEAD_AFTER * self.timeout
            return self._proof + ASK_AFTER * self.timeout
        return None

    def _lose(self, now: float) -> None:
        self.state, self.session_id = State.NEW, None
        self._proof = NEVER
        self._asked_at = None
        self.number += 1
        self._actions.append(Tell(SessionLost(now)))
