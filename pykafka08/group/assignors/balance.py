"""The heart of both sticky assignors: even loads with as few moves as possible.

Claims are settled first: a partition belongs to whoever held it in the highest generation; two holders in the same
generation contradict each other, and neither keeps it.  Then, if all members want the same topics, everybody keeps up
to an even share and the rest is dealt out.  Otherwise partitions are dealt to the least loaded, and moved along chains
of members (A takes from B, who takes from C) until no chain makes the loads more even.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence

from pykafka08.group.assignors.member import Assignment, GroupMember, java_order, sorted_assignment
from pykafka08.records.record import TopicPartition

__all__ = ["Claims", "balance"]

Claims = Mapping[str, tuple[Collection[TopicPartition], int]]
"""Member id to what it held, and the generation in which it did (-1 unknown)."""


def balance(members: Sequence[GroupMember], partitions: Mapping[str, int], claims: Claims) -> Assignment:
    """Every partition of a wanted topic to one member."""
    if not members:
        return {}
    owners = _settle(members, partitions, claims)
    kept: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for tp in sorted(owners):
        kept[owners[tp]].append(tp)
    wanted = frozenset().union(*(member.topics for member in members))
    topics = sorted(wanted & partitions.keys(), key=java_order)
    everything = [TopicPartition(topic, number) for topic in topics for number in range(partitions[topic])]
    if all(member.topics & partitions.keys() == set(topics) for member in members):
        return sorted_assignment(_share_evenly(kept, everything))
    return sorted_assignment(_Loads(members, partitions, owners).level(everything))


def _settle(members: Sequence[GroupMember], partitions: Mapping[str, int], claims: Claims) -> dict[TopicPartition, str]:
    """Partition to the one member that may keep it."""
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        owned, generation = claims[member.member_id]
        for tp in owned:
            if tp.topic not in member.topics or not 0 <= tp.partition < partitions.get(tp.topic, 0):
                continue
            rival = best.get(tp)
            if rival is None or generation > rival[0]:
                best[tp] = (generation, member.member_id)
            elif generation == rival[0]:
                best[tp] = (generation, None)
    return {tp: member_id for tp, (_, member_id) in best.items() if member_id is not None}


def _share_evenly(
    kept: Mapping[str, list[TopicPartition]], everything: Sequence[TopicPartition]
) -> dict[str, list[TopicPartition]]:
    """All members want the same: each gets ``least`` partitions, and ``larger`` of them one more."""
    least, larger = divmod(len(everything), len(kept))
    assignment: dict[str, list[TopicPartition]] = {}
    for member_id in sorted(kept, key=java_order):
        mine = kept[member_id]
        if len(mine) > least and larger:
            larger -= 1
            assignment[member_id] = mine[: least + 1]
        else:
            assignment[member_id] = mine[:least]
    taken = {tp for mine in assignment.values() for tp in mine}
    below = deque(member_id for member_id, mine in assignment.items() if len(mine) < least)
    level = deque(member_id for member_id, mine in assignment.items() if len(mine) == least)
    for tp in everything:
        if tp in taken:
            continue
        if below:
            member_id = below.popleft()
            assignment[member_id].append(tp)
            (below if len(assignment[member_id]) < least else level).append(member_id)
        else:
            assignment[level.popleft()].append(tp)
    return assignment


class _Loads:
    """Members that want different topics: who holds what, and moves between them."""

    def __init__(
        self, members: Sequence[GroupMember], partitions: Mapping[str, int], before: Mapping[TopicPartition, str]
    ) -> None:
        self._before = before
        self._order = sorted((member.member_id for member in members), key=java_order)
        self._topics = {member.member_id: sorted(member.topics & partitions.keys()) for member in members}
        self._readers: dict[str, list[str]] = {}
        for member_id in self._order:
            for topic in self._topics[member_id]:
                self._readers.setdefault(topic, []).append(member_id)
        # member to topic to partition numbers, and the reverse of the first two
        self._held: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in self._order}
        self._holders: dict[str, set[str]] = {topic: set() for topic in self._readers}
        self._load = dict.fromkeys(self._order, 0)

    def level(self, everything: Sequence[TopicPartition]) -> dict[str, list[TopicPartition]]:
        for tp, member_id in self._before.items():
            self._give(tp, member_id)
        unassigned = [tp for tp in everything if tp not in self._before]
        # those that few can take come first: the others make up for them
        unassigned.sort(key=lambda tp: len(self._readers[tp.topic]))
        for tp in unassigned:
            self._give(tp, min(self._readers[tp.topic], key=self._load.__getitem__))
        while any(self._relieve_for(member_id) for member_id in sorted(self._order, key=self._load.__getitem__)):
            pass  # each chain lowers the sum of the squared loads, so that this ends
        return {
            member_id: [TopicPartition(topic, number) for topic, numbers in held.items() for number in numbers]
            for member_id, held in self._held.items()
        }

    def _give(self, tp: TopicPartition, member_id: str) -> None:
        self._held[member_id].setdefault(tp.topic, set()).add(tp.partition)
        self._holders[tp.topic].add(member_id)
        self._load[member_id] += 1

    def _take(self, tp: TopicPartition, member_id: str) -> None:
        numbers = self._held[member_id][tp.topic]
        numbers.remove(tp.partition)
        if not numbers:
            del self._held[member_id][tp.topic]
            self._holders[tp.topic].discard(member_id)
        self._load[member_id] -= 1

    def _relieve_for(self, receiver: str) -> bool:
        """Move one partition to the receiver, along the shortest chain from a member with two more at least."""
        enough = self._load[receiver] + 2
        came_from: dict[str, tuple[str, str] | None] = {receiver: None}
        line = deque([receiver])
        while line:
            taker = line.popleft()
            for topic in self._topics[taker]:
                holders = sorted(self._holders[topic], key=lambda each: (-self._load[each], java_order(each)))
                for giver in holders:
                    if giver in came_from:
                        continue
                    came_from[giver] = (taker, topic)
                    if self._load[giver] >= enough:
                        self._shift(giver, came_from)
                        return True
                    line.append(giver)
        return False

    def _shift(self, giver: str, came_from: Mapping[str, tuple[str, str] | None]) -> None:
        step = came_from[giver]
        while step is not None:
            taker, topic = step
            tp = self._to_move(giver, taker, topic)
            self._take(tp, giver)
            self._give(tp, taker)
            giver, step = taker, came_from[taker]

    def _to_move(self, giver: str, taker: str, topic: str) -> TopicPartition:
        """One that the taker had before, else one that the giver had not."""
        held = [TopicPartition(topic, number) for number in sorted(self._held[giver][topic])]
        return min(held, key=lambda tp: (self._before.get(tp) != taker, self._before.get(tp) == giver))
