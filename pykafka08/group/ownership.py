"""What the member owns, as the application knows it, and what the application is told of it: one thing at a time.

Partitions are owned from the moment in which the application begins to hear of them, until it has given them up or they
are lost.  Pure; when to revoke, assign and lose is ``machine``'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from pykafka08.group.actions import Assign, ListenerCall, Lost, Revoke
from pykafka08.group.assignors import Assignor
from pykafka08.group.subscription import encode_subscription
from pykafka08.records.record import TopicPartition

__all__ = ["Ownership", "Partitions"]

Partitions = frozenset[TopicPartition]
NOTHING: Partitions = frozenset()


class Ownership:
    """``last`` is the newest assignment and its generation, whatever has become of it."""

    def __init__(self) -> None:
        self.assigned: Partitions = NOTHING
        self.last: tuple[Partitions, int] = (NOTHING, -1)
        self._tenures: dict[TopicPartition, int] = {}
        self._waiting: deque[ListenerCall] = deque()
        self._running: ListenerCall | None = None

    def tenure(self, tp: TopicPartition) -> int | None:
        """How often the partition has come to be this member's; None while it is not."""
        return self._tenures[tp] if tp in self.assigned else None

    @property
    def is_told(self) -> bool:
        """True if the application has heard everything."""
        return self._running is None and not self._waiting

    @property
    def is_due(self) -> bool:
        """True if the application can be told something now."""
        return self._running is None and bool(self._waiting)

    def begin(self) -> ListenerCall:
        """What to tell the application now."""
        call = self._running = self._waiting.popleft()
        if isinstance(call, Assign):
            for tp in call.assigned - self.assigned:
                self._tenures[tp] = self._tenures.get(tp, 0) + 1
            self.assigned = call.assigned
        return call

    def end(self) -> None:
        """The application has heard it."""
        ended, self._running = self._running, None
        if isinstance(ended, Revoke):
            self.assigned -= ended.partitions

    def offer(
        self, assignors: Iterable[Assignor], topics: Iterable[str], generation: int
    ) -> tuple[tuple[str, bytes], ...]:
        """What to say of it in JoinGroup: (assignor, subscription) pairs."""
        owned_in = generation if self.assigned else -1
        return tuple(
            (each.name, encode_subscription(topics, self.assigned, owned_in, each.user_data(*self.last)))
            for each in assignors
        )

    def take(self, assigned: Partitions, generation: int) -> bool:
        """A new assignment: first give up what is not in it, then hear of the rest.  True if something is given up."""
        self.last = (assigned, generation)
        is_smaller = self.revoke(self.assigned - assigned)
        self._waiting.append(Assign(assigned - self.assigned, assigned))
        return is_smaller

    def revoke(self, partitions: Partitions) -> bool:
        """True if there are any."""
        if partitions:
            self._waiting.append(Revoke(partitions))
        return bool(partitions)

    def revoke_all(self) -> None:
        self._forget()
        self.revoke(self.assigned - self._being_revoked)

    def lose_all(self, why: str) -> None:
        """It is all gone at this moment, but for what the application is giving up anyway."""
        self._forget()
        lost = self.assigned - self._being_revoked
        self.assigned = NOTHING
        if lost:
            self._waiting.append(Lost(lost, why))

    @property
    def _being_revoked(self) -> Partitions:
        return self._running.partitions if isinstance(self._running, Revoke) else NOTHING

    def _forget(self) -> None:
        """What the application has not heard yet has not happened, but for losses."""
        self._waiting = deque(call for call in self._waiting if isinstance(call, Lost))
