"""The assignors of Kafka's group coordinator: who of a group of the new protocol reads which partitions.

Pure functions of the members, what they have now, and the partitions there are.  ``uniform`` spreads evenly and moves
little; ``range`` gives each member neighbouring partitions of each topic.  Source: KIP-848; ``UniformAssignor`` and
``RangeAssignor`` of Kafka's group coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

__all__ = ["SERVER_ASSIGNORS", "Assignable", "TopicPartitionId"]

TopicPartitionId = tuple[UUID, int]
"""A partition by its topic's id."""

Assignment = dict[str, frozenset[TopicPartitionId]]


class Assignable(NamedTuple):
    """A member as an assignor sees it; ``current`` is its share in the last assignment."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    current: frozenset[TopicPartitionId]


Assignor = Callable[[Sequence[Assignable], Mapping[UUID, int]], Assignment]


def uniform(members: Sequence[Assignable], counts: Mapping[UUID, int]) -> Assignment:
    """As even as the subscriptions allow; nobody gives up more than evenness takes."""
    shares: dict[str, set[TopicPartitionId]] = {member.member_id: set() for member in members}
    by_id = {member.member_id: member for member in members}
    holders = {tp: member.member_id for member in members for tp in sorted(member.current) if tp[0] in member.topics}
    everything = [(topic, number) for topic in sorted(counts) for number in range(counts[topic])]
    quota = -(-len(everything) // max(1, len(members)))
    homeless = []
    for tp in everything:
        holder = holders.get(tp)
        if holder is not None and len(shares[holder]) < quota:
            shares[holder].add(tp)
        else:
            homeless.append(tp)
    for tp in homeless:
        takers = [member.member_id for member in members if tp[0] in member.topics]
        if takers:
            shares[min(takers, key=lambda taker: len(shares[taker]))].add(tp)
    _level(shares, by_id)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _level(shares: dict[str, set[TopicPartitionId]], members: Mapping[str, Assignable]) -> None:
    """Move single partitions from who has most to who has at least two less and may read them, while there are such."""
    while True:
        for rich in sorted(shares, key=lambda each: -len(shares[each])):
            poorer = [each for each in shares if len(shares[each]) + 1 < len(shares[rich])]
            moves = (
                (tp, poor)
                for poor in sorted(poorer, key=lambda each: len(shares[each]))
                for tp in sorted(shares[rich], reverse=True)
                if tp[0] in members[poor].topics
            )
            move = next(moves, None)
            if move is not None:
                shares[rich].remove(move[0])
                shares[move[1]].add(move[0])
                break
        else:
            return


def range_(members: Sequence[Assignable], counts: Mapping[UUID, int]) -> Assignment:
    """Static members first, by instance id; the others by member id.  The first get the rest."""
    ordered = sorted(members, key=lambda each: (each.instance_id is None, each.instance_id or each.member_id))
    shares: dict[str, set[TopicPartitionId]] = {member.member_id: set() for member in ordered}
    for topic, count in counts.items():
        takers = [member.member_id for member in ordered if topic in member.topics]
        start = 0
        for position, taker in enumerate(takers):
            size = count // len(takers) + (position < count % len(takers))
            shares[taker] |= {(topic, number) for number in range(start, start + size)}
            start += size
    return {member_id: frozenset(share) for member_id, share in shares.items()}


SERVER_ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform, "range": range_}
"""By name; the first is the default."""
