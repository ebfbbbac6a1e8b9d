"""The leader's part of one generation: wait for metadata of every topic wanted, deal the partitions out, watch them.

Pure; times are monotonic seconds.  When to do what is ``machine``'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka08.errors import RemoteProtocolError
from pykafka08.group.assignors import Assignor, GroupMember
from pykafka08.group.subscription import decode_member, encode_assignment
from pykafka08.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

__all__ = ["Leadership"]

METADATA_PATIENCE = 5.0
"""How long a leader waits for metadata of topics that other members want; later it assigns without them."""

Assignments = tuple[tuple[str, bytes], ...]


class Leadership:
    """``assignments`` is None until they are made; ``unreadable`` has the members whose subscription makes no sense.

    Those get nothing: to fail over them would bring down one leader after the other.
    """

    def __init__(self, members: Sequence[JoinGroupResponseMember], assignor: Assignor, now: float) -> None:
        self.unreadable: dict[str, RemoteProtocolError] = {}
        self.assignments: Assignments | None = None
        self.assign_by = now + METADATA_PATIENCE
        self._assignor = assignor
        self._members = [self._read(each) for each in members]
        self._wanted: frozenset[str] = frozenset().union(*(member.topics for member in self._members))
        self._counts: dict[str, int] = {}
        self._has_asked = False

    @classmethod
    def of(
        cls, response: JoinGroupResponse, assignor: Assignor, counts: Mapping[str, int], now: float
    ) -> Leadership | None:
        """None for a member that follows, and for a static leader that is not told of the others (before 3.2)."""
        if response.leader != response.member_id or not response.members:
            return None
        leadership = cls(response.members, assignor, now)
        if response.skip_assignment:
            # A static leader came back, and the assignment stands (KIP-814); its topics are to be watched.
            leadership._watch(counts)
            leadership.assignments = ()
        return leadership

    def _read(self, member: JoinGroupResponseMember) -> GroupMember:
        try:
            return decode_member(member)
        except RemoteProtocolError as error:
            self.unreadable[member.member_id] = error
            return GroupMember(member.member_id, frozenset(), instance_id=member.group_instance_id)

    def own_fault(self, member_id: str, offered: frozenset[str]) -> str | None:
        """The fault of this member's own subscription in the JoinGroup answer; None if it has none."""
        if member_id in self.unreadable:
            return f"the member's own subscription came back damaged: {self.unreadable[member_id].message}"
        topics = next((each.topics for each in self._members if each.member_id == member_id), offered)
        if topics != offered:
            return f"the member's own subscription came back with topics {sorted(topics)} instead of {sorted(offered)}"
        return None

    def try_to_assign(self, counts: Mapping[str, int], now: float) -> tuple[str, ...]:
        """Assign, if the partitions of all topics are known or it is too late; else topics to ask for, once."""
        unknown = self._wanted - counts.keys()
        if unknown and now < self.assign_by:
            has_asked, self._has_asked = self._has_asked, True
            return () if has_asked else tuple(sorted(unknown))
        self._watch(counts)
        assignment = self._assignor.assign(self._members, {topic: n for topic, n in self._counts.items() if n})
        self.assignments = tuple((member_id, encode_assignment(mine)) for member_id, mine in assignment.items())
        return ()

    def _watch(self, counts: Mapping[str, int]) -> None:
        self._counts = {topic: counts.get(topic, 0) for topic in sorted(self._wanted)}

    def changed_topics(self, counts: Mapping[str, int]) -> list[str]:
        """Topics that have another number of partitions than was assigned; one that is gone for now does not count."""
        return [topic for topic, count in self._counts.items() if counts.get(topic, 0) not in (0, count)]
