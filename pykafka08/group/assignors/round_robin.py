"""Round robin: all partitions of all topics are dealt to the members in turn, past those that do not want the topic.

Source: Kafka's ``RoundRobinAssignor``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

from pykafka08.group.assignors.member import (
    Assignment,
    GroupMember,
    empty_assignment,
    in_java_order,
    java_order,
    sorted_assignment,
)
from pykafka08.records.record import TopicPartition

__all__ = ["assign_round_robin"]


def assign_round_robin(members: Sequence[GroupMember], partitions: Mapping[str, int]) -> Assignment:
    assignment = empty_assignment(members)
    wanted = frozenset().union(*(member.topics for member in members))
    turns = cycle(in_java_order(members))
    for topic in sorted(wanted & partitions.keys(), key=java_order):
        for number in range(partitions[topic]):
            member = next(turn for turn in turns if topic in turn.topics)
            assignment[member.member_id].append(TopicPartition(topic, number))
    return sorted_assignment(assignment)
