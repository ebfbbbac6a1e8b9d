"""One member of a group of the new protocol (KIP-848) as its coordinator knows it, and its way to its share.

    STABLE      -> UNREVOKED    the group's assignment has changed, and the member owns what it shall not
    UNREVOKED   -> UNRELEASED   it has given that up, and others still own what it shall have
    UNREVOKED   -> STABLE       it has given that up, and has what it shall
    UNRELEASED  -> STABLE       the others have let go

A member is at the epoch of the assignment that it has reached; it stays at its old one until it has revoked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from pykafka08.broker.group_member import Member
from pykafka08.broker.server_assignors import TopicPartitionId
from pykafka08.broker.timers import Timer

__all__ = ["LEFT_FOR_A_WHILE", "ConsumerMember", "MemberState"]

LEFT_FOR_A_WHILE = -2
"""The epoch of a static member that has gone and is expected back."""

Partitions = frozenset[TopicPartitionId]


class MemberState(Enum):
    STABLE = "stable"
    UNREVOKED = "unrevoked partitions"
    UNRELEASED = "unreleased partitions"


class ConsumerMember:
    """``assigned`` may be read, ``pending`` is to be given up; ``classic`` is set for who speaks the old protocol."""

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout = 0.0
        self.names: frozenset[str] = frozenset()
        self.regex = ""
        self.assignor: str | None = None
        self.classic: Member | None = None
        self.epoch = 0
        self.previous_epoch = -1
        self.state = MemberState.STABLE
        self.assigned: Partitions = frozenset()
        self.pending: Partitions = frozenset()
        self.target: Partitions = frozenset()
        self.session: Timer | None = None
        self.rebalance: Timer | None = None

    @property
    def held(self) -> Partitions:
        """What nobody else may have yet."""
        return self.assigned | self.pending

    def replaced_by(self, member_id: str) -> ConsumerMember:
        """The same static member, back under another member id."""
        back = ConsumerMember(member_id, self.instance_id)
        back.rack_id, back.rebalance_timeout = self.rack_id, self.rebalance_timeout
        back.names, back.regex, back.assignor = self.names, self.regex, self.assignor
        back.state, back.assigned, back.pending, back.target = self.state, self.assigned, self.pending, self.target
        return back

    def leave_for_a_while(self) -> None:
        """It is expected back before its session ends, and keeps what it has."""
        self.epoch, self.pending = LEFT_FOR_A_WHILE, frozenset()
        if self.rebalance is not None:
            self.rebalance.cancel()
            self.rebalance = None

    def reconcile(
        self, target_epoch: int, owned: Partitions | None, is_taken: Callable[[TopicPartitionId], bool]
    ) -> bool:
        """One step towards ``target``; True if something changed.

        ``owned`` is what the member tells that it owns, None if it does not tell.
        """
        before = self.epoch, self.state, self.assigned, self.pending
        if self.state is MemberState.STABLE and self.epoch == target_epoch:
            return False
        if self.state is MemberState.UNREVOKED and _owns(owned, self.pending):
            return False
        own = self.pending
        kept = self.assigned & self.target
        to_revoke = self.assigned - kept
        if to_revoke and _owns(owned, to_revoke):
            self.state, self.assigned, self.pending = MemberState.UNREVOKED, kept, to_revoke
            self._enter(self.epoch)
        else:
            wanted = self.target - kept
            free = frozenset(tp for tp in wanted if tp in own or not is_taken(tp))
            self.state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED
            self.assigned, self.pending = kept | free, frozenset()
            self._enter(target_epoch)
        return before != (self.epoch, self.state, self.assigned, self.pending)

    def _enter(self, epoch: int) -> None:
        self.previous_epoch, self.epoch = self.epoch, epoch

    def end_timers(self) -> None:
        for timer in (self.session, self.rebalance):
            if timer is not None:
                timer.cancel()
        self.session = self.rebalance = None


def _owns(owned: Partitions | None, partitions: Iterable[TopicPartitionId]) -> bool:
    """A member that does not say what it owns is taken to own it."""
    return owned is None or not owned.isdisjoint(partitions)
