"""Cooperative sticky: as sticky, but a partition that changes hands is left out until its owner has given it up.

Members keep what they own while they join; whoever must give partitions up does so and joins again, and then they are
dealt out.  Source: Kafka's ``CooperativeStickyAssignor`` (KIP-429, KIP-792).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pykafka08.group.assignors.balance import balance
from pykafka08.group.assignors.member import Assignment, GroupMember
from pykafka08.group.assignors.user_data import decode_generation, encode_generation
from pykafka08.records.record import TopicPartition

__all__ = ["assign_cooperative_sticky", "cooperative_sticky_user_data"]


def cooperative_sticky_user_data(_: Collection[TopicPartition], generation: int) -> bytes:
    """For members before 3.4, whose subscriptions do not carry the generation."""
    return encode_generation(generation)


def assign_cooperative_sticky(members: Sequence[GroupMember], partitions: Mapping[str, int]) -> Assignment:
    claims = {member.member_id: (member.owned, _generation(member)) for member in members}
    assignment = balance(members, partitions, claims)
    owners: dict[TopicPartition, set[str]] = {}
    for member in members:
        for tp in member.owned:
            owners.setdefault(tp, set()).add(member.member_id)
    return {
        member_id: [tp for tp in mine if not owners.get(tp, set()) - {member_id}]
        for member_id, mine in assignment.items()
    }


def _generation(member: GroupMember) -> int:
    return member.generation if member.generation >= 0 else decode_generation(member.user_data)
