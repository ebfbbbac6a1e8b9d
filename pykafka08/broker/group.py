"""One consumer group of the classic protocol: who is in it, which generation, what each member is to do.

    EMPTY      -> PREPARING   a member joins
    PREPARING  -> COMPLETING  all known members have joined, or the rebalance time-out has passed
    COMPLETING -> STABLE      the leader has sent the assignments
    COMPLETING, STABLE -> PREPARING   a member joins, leaves, expires or changes what it asks for
    PREPARING  -> EMPTY       nobody is left

Source: KIP-62 (rebalance time-out), KIP-345 (static members), KIP-394 (member id required); ``GroupCoordinator``.
Which error a request gets before it comes here (wrong coordinator, bad time-outs) is ``groups``'.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import Enum
from functools import partial

from pykafka08.broker.group_member import JoinResult, Member, Protocols, SyncResult
from pykafka08.broker.timers import Timer, Timers
from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode

__all__ = ["Group", "GroupState"]


class GroupState(Enum):
    """Names as DescribeGroups gives them (COMPLETING was AwaitingSync before 1.1)."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Group:
    """Joins, syncs, heartbeats, leaves; all in one thread, nothing awaits."""

    def __init__(self, group_id: str, timers: Timers, *, initial_delay: float) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader = ""
        self.members: dict[str, Member] = {}
        self._timers = timers
        self._initial_delay = initial_delay
        self._pending_ids: dict[str, Timer] = {}
        self._rebalance: Timer | None = None
        self._is_first_join = False

    # -- who is who

    def find(self, member_id: str, instance_id: str | None) -> tuple[Member | None, ErrorCode]:
        """The member, or why it is not one: unknown, or fenced by a newer one of the same instance id."""
        member = self.members.get(member_id)
        if instance_id is not None:
            current = self._static(instance_id)
            if current is not None and current.member_id != member_id:
                return None, ErrorCode.FENCED_INSTANCE_ID
        return (member, ErrorCode.NONE) if member is not None else (None, ErrorCode.UNKNOWN_MEMBER_ID)

    def _static(self, instance_id: str) -> Member | None:
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def new_pending_id(self, client_id: str, session_timeout: float) -> str:
        """A member id that the client is to join with (KIP-394); forgotten if it does not come back."""
        member_id = f"{client_id}-{uuid.uuid4()}"
        self._pending_ids[member_id] = self._timers.call_after(session_timeout, partial(self._forget, member_id))
        return member_id

    def _forget(self, pending_id: str) -> None:
        self._pending_ids.pop(pending_id, None)

    def accepts(self, protocol_type: str, protocols: Protocols) -> bool:
        """True if a member with these protocols can live with all present ones."""
        if not self.members:
            return bool(protocol_type and protocols)
        names = {name for name, _ in protocols}
        return protocol_type == self.protocol_type and any(
            all(name in dict(member.protocols) for member in self.members.values()) for name in names
        )

    # -- join

    def join(self, member: Member, protocol_type: str) -> Waiter[JoinResult] | JoinResult:
        """A new member, or a known one again; ``member`` is what the request says of it."""
        pending = self._pending_ids.pop(member.member_id, None)
        if pending is not None:
            pending.cancel()
        known = self.members.get(member.member_id)
        if known is not None:
            return self._rejoin(known, member.protocols, member)
        if member.member_id and pending is None:
            return JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        if not member.member_id:
            member.member_id = f"{member.instance_id or member.client_id}-{uuid.uuid4()}"
        former = self._static(member.instance_id) if member.instance_id is not None else None
        if former is not None:
            return self._replace(former, member)
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        waiter = member.joining = Waiter()
        self._prepare()
        return waiter

    def _rejoin(self, known: Member, protocols: Protocols, asked: Member) -> Waiter[JoinResult] | JoinResult:
        is_unchanged = known.protocols == list(protocols)
        is_leader = known.member_id == self.leader
        settled = self.state is GroupState.COMPLETING or (self.state is GroupState.STABLE and not is_leader)
        if settled and is_unchanged:
            self._expect_heartbeat(known)
            return self._result(known)
        known.protocols = list(protocols)
        known.session_timeout, known.rebalance_timeout = asked.session_timeout, asked.rebalance_timeout
        known.answer_join(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, known.member_id))
        waiter = known.joining = Waiter()
        self._prepare()
        return waiter

    def _replace(self, former: Member, member: Member) -> Waiter[JoinResult] | JoinResult:
        """A static member is back under a new member id; no rebalance if the group keeps to its assignor."""
        former.end_session()
        former.answer_join(JoinResult(ErrorCode.FENCED_INSTANCE_ID, former.member_id))
        former.answer_sync(SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        member.assignment = former.assignment
        self.members = {
            (member if each is former else each).member_id: (member if each is former else each)
            for each in self.members.values()
        }
        was_leader = self.leader == former.member_id
        if was_leader:
            self.leader = member.member_id
        if self.state is GroupState.STABLE and self._elect_protocol() == self.protocol:
            self._expect_heartbeat(member)
            result = self._result(member)
            # A leader that gets no members keeps its assignment; before v9 it is told of its former self as leader.
            return result._replace(skip_assignment=was_leader) if was_leader else result
        waiter = member.joining = Waiter()
        self._prepare()
        return waiter

    def _result(self, member: Member) -> JoinResult:
        members: tuple[tuple[str, str | None, bytes], ...] = ()
        if member.member_id == self.leader:
            members = tuple(
                (each.member_id, each.instance_id, each.metadata(self.protocol)) for each in self.members.values()
            )
        return JoinResult(
            ErrorCode.NONE, member.member_id, self.generation, self.protocol_type, self.protocol, self.leader, members
        )

    # -- rebalance

    def _prepare(self) -> None:
        """Begin a rebalance, or look whether the one that runs can end."""
        if self.state is not GroupState.PREPARING:
            for member in self.members.values():
                member.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
            self._is_first_join = self.state is GroupState.EMPTY and self._initial_delay > 0
            self.state = GroupState.PREPARING
            self._cancel_rebalance()
            wait = max((member.rebalance_timeout for member in self.members.values()), default=0.0)
            if self._is_first_join:
                wait = min(wait, self._initial_delay)
            self._rebalance = self._timers.call_after(wait, self._complete_join)
        self._complete_if_all_joined()

    def _complete_if_all_joined(self) -> None:
        if self.state is not GroupState.PREPARING or self._is_first_join:
            return
        if all(member.is_joining for member in self.members.values()):
            self._complete_join()

    def _complete_join(self) -> None:
        self._is_first_join = False
        self._cancel_rebalance()
        for member in tuple(self.members.values()):
            if not member.is_joining and (member.instance_id is None or member.session is None):
                self._remove(member)
        self.generation += 1
        if not self.members:
            self.state, self.protocol, self.leader = GroupState.EMPTY, None, ""
            return
        self.state = GroupState.COMPLETING
        self.protocol = self._elect_protocol()
        if self.leader not in self.members or not self.members[self.leader].is_joining:
            joined = [member.member_id for member in self.members.values() if member.is_joining]
            self.leader = joined[0] if joined else next(iter(self.members))
        for member in tuple(self.members.values()):
            self._expect_heartbeat(member)
            member.answer_join(self._result(member))

    def _elect_protocol(self) -> str:
        """Each member votes for the first of its protocols that all members have."""
        members = tuple(self.members.values())
        common = set.intersection(*({name for name, _ in member.protocols} for member in members))
        votes: dict[str, int] = {}
        for member in members:
            choice = next(name for name, _ in member.protocols if name in common)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def _cancel_rebalance(self) -> None:
        if self._rebalance is not None:
            self._rebalance.cancel()
            self._rebalance = None

    # -- sync, heartbeat, leave

    def sync(self, member: Member, assignments: dict[str, bytes]) -> Waiter[SyncResult] | SyncResult:
        """The leader's call ends the rebalance; the others wait for it."""
        if self.state is GroupState.PREPARING:
            return SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
        self._expect_heartbeat(member)
        if self.state is GroupState.STABLE:
            return self._synced(member)
        if self.state is not GroupState.COMPLETING:
            return SyncResult(ErrorCode.UNKNOWN_MEMBER_ID)
        member.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        waiter: Waiter[SyncResult] = Waiter()
        member.syncing = waiter
        if member.member_id == self.leader:
            self.state = GroupState.STABLE
            for each in self.members.values():
                each.assignment = assignments.get(each.member_id, b"")
            for each in tuple(self.members.values()):
                each.answer_sync(self._synced(each))
        return waiter

    def _synced(self, member: Member) -> SyncResult:
        return SyncResult(ErrorCode.NONE, member.assignment, self.protocol_type, self.protocol)

    def heartbeat(self, member: Member) -> None:
        self._expect_heartbeat(member)

    def leave(self, member: Member) -> None:
        member.answer_join(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        member.answer_sync(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        self._remove(member)
        if self.members:
            self._prepare()
        elif self.state is not GroupState.EMPTY:
            self._complete_join()

    def _remove(self, member: Member) -> None:
        member.end_session()
        self.members.pop(member.member_id, None)

    def _expect_heartbeat(self, member: Member) -> None:
        member.end_session()
        member.session = self._timers.call_after(member.session_timeout, partial(self._expired, member))

    def _expired(self, member: Member) -> None:
        """No heartbeat in time; a member that waits for others to join is alive."""
        member.session = None
        if member.is_joining or self.members.get(member.member_id) is not member:
            return
        self.leave(member)

    def coordinator_moved(self) -> None:
        """Calls that wait are told so; the members come back to the new coordinator, which knows them, and go on.

        It does not know those that have never been in a generation.
        """
        for member in tuple(self.members.values()):
            member.answer_join(JoinResult(ErrorCode.NOT_COORDINATOR, member.member_id))
            member.answer_sync(SyncResult(ErrorCode.NOT_COORDINATOR))
            if member.session is None:
                self._remove(member)
            else:
                self._expect_heartbeat(member)
        if not self.members and self.state is not GroupState.EMPTY:
            self._complete_join()

    def restore(self, members: Sequence[Member], protocol_type: str, generation: int) -> None:
        """Go on with members of a group of the new protocol: they are to join."""
        self.protocol_type, self.generation = protocol_type, generation
        self.members = {member.member_id: member for member in members}
        self.state = GroupState.STABLE
        for member in members:
            self._expect_heartbeat(member)
        self._prepare()

    def close(self) -> None:
        """Let go of all timers; the group is dead."""
        self._cancel_rebalance()
        for member in self.members.values():
            member.end_session()
        for timer in self._pending_ids.values():
            timer.cancel()
        self.members.clear()
        self.state = GroupState.DEAD
