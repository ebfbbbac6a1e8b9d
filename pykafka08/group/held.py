"""Does the coordinator still hold our JoinGroup or SyncGroup, or is the answer lost?  Pure; times in monotonic seconds.

A coordinator holds JoinGroup until every member has joined, SyncGroup until the leader has sent the assignments: for as
long as ``max_poll_interval_ms``.  An answer that is lost on a connection that lives would be waited for as long.  After
a while the group is looked at (DescribeGroups, on another connection): its state says whether such a request can be
held at all.  What is held is a sign of life, as an answered heartbeat is; without any the session is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pykafka08.group.actions import Look
from pykafka08.group.states import State

__all__ = ["LOOK_SECONDS", "HeldRequest", "Sight"]

PATIENCE = 5.0
"""Before the first look; doubled while the group really waits for other members."""
LEAST_PATIENCE = 0.1
"""Between two looks however little is left of the session."""
SHARE_OF_SESSION = 3
"""So many looks go into a session."""
AGAIN = 1.0
"""Between two looks when the first has found nothing held: an answer may just be on its way."""
DOUBTS = 2
"""So many looks in a row that find nothing held, or have no answer, and the answer counts as lost."""
LOOK_SECONDS = 5.0
"""How long a look may take."""

HELD_IN: Mapping[State, frozenset[str]] = {
    State.JOINING: frozenset({"PreparingRebalance"}),
    State.SYNCING: frozenset({"CompletingRebalance", "AwaitingSync"}),
}
"""States of a group, by their names in all releases, in which the request of a member in that state is held."""


class Sight(NamedTuple):
    """What a look has seen: the group's state and the ids of its members."""

    state: str
    members: frozenset[str]

    def holds(self, state: State, member_id: str) -> bool:
        """``member_id`` may be empty: a new member does not know its own before the first answer."""
        is_there = not member_id or member_id in self.members
        return is_there and self.state in HELD_IN.get(state, ())


class HeldRequest:
    """The one that is out; ``losses`` in a row make the next one's patience longer."""

    def __init__(self) -> None:
        self.attempt: int | None = None
        """None while nothing is out."""
        self.sent_at = 0.0
        self.look_at: float | None = None
        """When to look next; None while nothing is out, a look is under way, or looking is no use."""
        self.losses = 0
        self._node_id = -1
        self._look: tuple[int, float] | None = None
        self._patience = PATIENCE
        self._most = PATIENCE
        self._doubts = 0
        self.is_hidden = False
        """Looking is no use: what is held is waited for."""

    def sent(
        self, attempt: int, node_id: int, now: float, session_timeout: float, *, left: float | None = None
    ) -> None:
        """JoinGroup or SyncGroup goes out; ``left`` is what is left of the session of a member that has one."""
        self.ended()
        self.attempt, self._node_id, self.sent_at = attempt, node_id, now
        self._most = session_timeout / SHARE_OF_SESSION
        self._patience = min(PATIENCE * 2.0 ** min(self.losses, 10), self._most)
        if left is not None:
            self._patience = min(self._patience, max(LEAST_PATIENCE, left / 2))
        self.look_at = None if self.is_hidden else now + self._patience

    def ended(self) -> None:
        """It was answered, or nobody waits for it any more."""
        self.attempt = self.look_at = self._look = None
        self._doubts = 0

    def look(self, attempt: int, now: float) -> Look:
        self._look = (attempt, now)
        self.look_at = None
        return Look(attempt, self._node_id)

    def awaits(self, attempt: int) -> bool:
        """True if that look is under way."""
        return self._look is not None and self._look[0] == attempt

    def found_held(self, now: float) -> float:
        """The group waits for other members; when the look was sent: since then nobody can have given us up."""
        assert self._look is not None
        sent_at = self._look[1]
        self._look, self._doubts = None, 0
        self._patience = min(self._patience * 2, self._most)
        self.look_at = now + self._patience
        return sent_at

    def found_nothing(self, now: float) -> tuple[int, int] | None:
        """The group is in no state to hold it, or nobody answers.

        Attempt and broker if that is enough to call the answer lost.
        """
        self._look = None
        self._doubts += 1
        if self._doubts < DOUBTS or self.attempt is None:
            self.look_at = now + min(AGAIN, self._patience)
            return None
        self.losses += 1
        return self.attempt, self._node_id

    def hide(self) -> None:
        """This member may not look, or the broker cannot be asked."""
        self.is_hidden = True
        self._look = None
