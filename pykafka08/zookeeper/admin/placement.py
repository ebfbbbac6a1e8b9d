"""Which brokers get the partitions of a new topic, as Kafka's AdminUtils spreads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pykafka08.errors import ConfigError

__all__ = ["in_turns_over_racks", "place", "wrong_assignment"]


def place(
    brokers: Sequence[int],
    count: int,
    replicas: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
    racks: Mapping[int, str] | None = None,
) -> dict[int, list[int]]:
    """Partition -> broker ids, the preferred leader first, for ``count`` partitions from ``first_partition`` on.

    First replicas go round from ``start``.  The others follow at a distance that begins with ``shift`` and grows at
    each turn, so that two brokers do not share all their partitions.  With ``racks``, of every broker, no rack gets a
    second replica before each has one.
    """
    if not brokers or replicas > len(brokers):
        raise ConfigError(f"{replicas} replicas of each partition need as many brokers; alive are {len(brokers)}")
    order = in_turns_over_racks(racks) if racks else sorted(brokers)
    size = len(order)
    assignment: dict[int, list[int]] = {}
    for partition in range(first_partition, first_partition + count):
        if partition > 0 and partition % size == 0:
            shift += 1
        first = (partition + start) % size
        others = [order[(first + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)]
        assignment[partition] = _chosen([order[first], *others], replicas, racks)
    return assignment


def _chosen(candidates: Sequence[int], replicas: int, racks: Mapping[int, str] | None) -> list[int]:
    """The first of them; with racks, in rounds that take one of each rack."""
    if not racks:
        return list(candidates[:replicas])
    chosen: list[int] = []
    waiting = list(candidates)
    while len(chosen) < replicas:
        seen: set[str] = set()
        for broker in list(waiting):
            if racks[broker] not in seen and len(chosen) < replicas:
                seen.add(racks[broker])
                chosen.append(broker)
                waiting.remove(broker)
    return chosen


def in_turns_over_racks(racks: Mapping[int, str]) -> list[int]:
    """Brokers such that neighbours are in different racks, as far as that goes."""
    members = {rack: sorted(each for each in racks if racks[each] == rack) for rack in sorted(set(racks.values()))}
    longest = max(map(len, members.values()), default=0)
    return [members[rack][turn] for turn in range(longest) for rack in members if turn < len(members[rack])]


def wrong_assignment(assignment: Mapping[int, Sequence[int]], brokers: Sequence[int]) -> str | None:
    """What is wrong with an assignment by hand, in words; None if nothing is.

    Each partition must have as many replicas as the others, each on a broker that is alive, and none twice.
    """
    for partition, ids in sorted(assignment.items()):
        if not ids:
            return f"partition {partition} has no replica"
        if len(set(ids)) != len(ids):
            return f"partition {partition} has a broker twice: {list(ids)}"
        missing = sorted(set(ids) - set(brokers))
        if missing:
            return f"partition {partition} is given to brokers that are not alive: {', '.join(map(str, missing))}"
    if len({len(ids) for ids in assignment.values()}) > 1:
        return "not all partitions have the same number of replicas"
    return None
