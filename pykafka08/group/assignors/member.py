"""A member as assignors see it, and the order that Java sorts members and topics in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pykafka08.records.record import TopicPartition

__all__ = ["Assignment", "GroupMember", "empty_assignment", "in_java_order", "java_order", "sorted_assignment"]

Assignment = dict[str, list[TopicPartition]]
"""Member id to its partitions, sorted."""


class GroupMember(NamedTuple):
    """``owned`` and ``generation`` are of its last assignment; empty and -1 if it has none, or gave it up."""

    member_id: str
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    instance_id: str | None = None
    user_data: bytes | None = None


def java_order(text: str) -> bytes:
    """Sort key: Java compares strings by UTF-16 units, Python by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def in_java_order(members: Iterable[GroupMember]) -> list[GroupMember]:
    """Static members first, by instance id; then the others, by member id."""
    return sorted(
        members,
        key=lambda member: (
            member.instance_id is None,
            java_order(member.instance_id if member.instance_id is not None else member.member_id),
        ),
    )


def empty_assignment(members: Iterable[GroupMember]) -> Assignment:
    return {member.member_id: [] for member in members}


def sorted_assignment(owned: Mapping[str, Iterable[TopicPartition]]) -> Assignment:
    return {member_id: sorted(partitions) for member_id, partitions in owned.items()}
