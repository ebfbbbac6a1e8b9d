"""Sticky (eager): as even as can be, and as little change as that allows.  What members held is in their user data.

Source: Kafka's ``StickyAssignor`` (KIP-54), user data versions 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka08.group.assignors.balance import balance
from pykafka08.group.assignors.member import Assignment, GroupMember
from pykafka08.group.assignors.user_data import decode_sticky

__all__ = ["assign_sticky"]


def assign_sticky(members: Sequence[GroupMember], partitions: Mapping[str, int]) -> Assignment:
    claims = {member.member_id: decode_sticky(member.user_data) for member in members}
    return balance(members, partitions, claims)
