"""Range: each topic by itself is cut into runs of neighbouring partitions, one a member, longer ones first.

Source: Kafka's ``RangeAssignor`` without racks (KIP-881 is not served).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka08.group.assignors.member import Assignment, GroupMember, empty_assignment, in_java_order, sorted_assignment
from pykafka08.records.record import TopicPartition

__all__ = ["assign_range"]


def assign_range(members: Sequence[GroupMember], partitions: Mapping[str, int]) -> Assignment:
    """Members with the same subscription get the same partition numbers of topics with as many partitions."""
    assignment = empty_assignment(members)
    ordered = in_java_order(members)
    for topic, count in partitions.items():
        readers = [member for member in ordered if topic in member.topics]
        if not readers:
            continue
        each, more = divmod(count, len(readers))
        start = 0
        for position, member in enumerate(readers):
            end = start + each + (position < more)
            assignment[member.member_id] += [TopicPartition(topic, number) for number in range(start, end)]
            start = end
    return sorted_assignment(assignment)
