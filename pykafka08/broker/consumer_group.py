"""One group of the new protocol (KIP-848): its epochs, the assignment it moves to, and each member's way there.

    EMPTY        nobody is in it
    ASSIGNING    something has changed, the assignment is not made yet: the next heartbeat makes it
    RECONCILING  members are on their way to it
    STABLE       all are there

The group's epoch counts changes of members, subscriptions and partitions; the assignment's epoch follows it.  Which
requests come here at all is ``consumer_groups``'.  Source: ``ConsumerGroup``, ``CurrentAssignmentBuilder``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import partial
from uuid import UUID

from pykafka08.broker.consumer_member import LEFT_FOR_A_WHILE, ConsumerMember, MemberState, Partitions
from pykafka08.broker.server_assignors import SERVER_ASSIGNORS, Assignable, TopicPartitionId
from pykafka08.broker.state import Topics
from pykafka08.broker.timers import Timers

__all__ = ["ConsumerGroup", "ConsumerGroupState"]


class ConsumerGroupState(Enum):
    """Names as ConsumerGroupDescribe gives them."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroup:
    """Members, epochs, assignments; all in one thread, nothing awaits."""

    def __init__(self, group_id: str, timers: Timers, *, session_timeout: float) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.assignment_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.on_gone: Callable[[], None] = lambda: None
        """Called when a member has gone."""
        self._counts: dict[UUID, int] = {}
        self._timers = timers
        self.session_timeout = session_timeout

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        settled = all(
            member.state is MemberState.STABLE and member.epoch in (self.assignment_epoch, LEFT_FOR_A_WHILE)
            for member in self.members.values()
        )
        return ConsumerGroupState.STABLE if settled else ConsumerGroupState.RECONCILING

    @property
    def assignor(self) -> str:
        """The one that most members ask for, else the default."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        return votes.most_common(1)[0][0] if votes else next(iter(SERVER_ASSIGNORS))

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    # -- changes

    def add(self, member: ConsumerMember) -> None:
        """A new member, or a static one in place of its former self."""
        former = self.static_member(member.instance_id) if member.instance_id is not None else None
        if former is not None:
            former.end_timers()
            del self.members[former.member_id]
        self.members[member.member_id] = member

    def remove(self, member: ConsumerMember) -> None:
        """What it held is free at once."""
        member.end_timers()
        if self.members.pop(member.member_id, None) is not None:
            self.on_gone()
            self.epoch += 1

    def bump(self) -> None:
        """A subscription has changed."""
        self.epoch += 1

    def settle(self, member: ConsumerMember, owned: Partitions | None, topics: Topics) -> bool:
        """Bring the assignment up to date and the member one step nearer to it; True if its partitions changed."""
        self._look_at(topics)
        if self.assignment_epoch < self.epoch:
            self._assign(topics)
        before = member.assigned
        if member.reconcile(self.assignment_epoch, owned, partial(self._is_taken, member)):
            self.expect_no_step(member)
            if member.state is MemberState.UNREVOKED:
                self.expect_step(member)
        return before != member.assigned

    def topics_of(self, member: ConsumerMember, topics: Topics) -> frozenset[UUID]:
        """Ids of the topics it reads, by name or by its regular expression."""
        found = {topic.topic_id for name in member.names if (topic := topics.find(name)) is not None}
        if member.regex:
            found |= {topic.topic_id for topic in topics if re.fullmatch(member.regex, topic.name)}
        return frozenset(found)

    def _look_at(self, topics: Topics) -> None:
        """New topics and partitions are a change like any other."""
        wanted = frozenset().union(*(self.topics_of(member, topics) for member in self.members.values()))
        counts = {topic_id: len(topic.partitions) for topic_id in wanted if (topic := topics.find_id(topic_id))}
        if counts != self._counts:
            self._counts = counts
            self.epoch = self.assignment_epoch + 1

    def _assign(self, topics: Topics) -> None:
        members = [
            Assignable(each.member_id, each.instance_id, self.topics_of(each, topics), each.target)
            for each in self.members.values()
        ]
        shares = SERVER_ASSIGNORS[self.assignor](members, self._counts)
        for member_id, share in shares.items():
            self.members[member_id].target = share
        self.assignment_epoch = self.epoch

    def _is_taken(self, member: ConsumerMember, tp: TopicPartitionId) -> bool:
        return any(tp in other.held for other in self.members.values() if other is not member)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """True if something that it lacks is in others' hands."""
        return any(self._is_taken(member, tp) for tp in member.target - member.assigned)

    # -- time

    def expect_heartbeat(self, member: ConsumerMember, seconds: float | None = None) -> None:
        """Without another one within the session time-out it is out."""
        if member.session is not None:
            member.session.cancel()
        timeout = self.session_timeout if seconds is None else seconds
        member.session = self._timers.call_after(timeout, partial(self._expired, member))

    def expect_step(self, member: ConsumerMember) -> None:
        """It is to give something up, or (of the classic protocol) to join; it has as long as a rebalance may take."""
        if member.rebalance is None:
            member.rebalance = self._timers.call_after(member.rebalance_timeout, partial(self._expired, member))

    def expect_no_step(self, member: ConsumerMember) -> None:
        if member.rebalance is not None:
            member.rebalance.cancel()
            member.rebalance = None

    def _expired(self, member: ConsumerMember) -> None:
        """No heartbeat in time, or nothing given up in time."""
        if self.members.get(member.member_id) is member:
            self.remove(member)

    def expire(self, member_id: str | None) -> int:
        """End the session of one member, or of all; how many there were."""
        members = [each for each in self.members.values() if member_id in (None, each.member_id)]
        for member in members:
            self.remove(member)
        return len(members)

    def close(self) -> None:
        for member in self.members.values():
            member.end_timers()
        self.members.clear()
