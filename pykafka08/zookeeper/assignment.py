"""Who reads which partition in a group that ZooKeeper keeps: range and round robin, as Kafka 0.8 to 1.1 compute them.

Each member computes the whole group's assignment from the same nodes, so that every detail must be the JVM's: order of
thread ids, of partitions, and of hash codes.  A *thread id* is ``<member id>-<stream>``.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import cycle

from pykafka08.records.record import TopicPartition

__all__ = ["STRATEGIES", "java_hash", "java_order", "range_assignment", "round_robin_assignment", "thread_ids"]

Partitions = Mapping[str, Collection[int]]
"""Partition ids of each topic."""
Threads = Mapping[str, Collection[str]]
"""Thread ids, of all members, that read each topic."""


def thread_ids(member: str, streams: int) -> tuple[str, ...]:
    """The threads of one member, by number; their order in an assignment is another."""
    return tuple(f"{member}-{number}" for number in range(streams))


def java_order(text: str) -> bytes:
    """A key that sorts strings as the JVM does, by UTF-16 units: ``m-10`` comes before ``m-2``."""
    return text.encode("utf-16-be", "surrogatepass")


def java_hash(text: str) -> int:
    """``String.hashCode``: a signed number of 32 bits."""
    value = 0
    units = java_order(text)
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def range_assignment(partitions: Partitions, threads: Threads) -> dict[TopicPartition, str]:
    """Each topic for itself: consecutive partitions for each thread, one more for the first ones."""
    owners: dict[TopicPartition, str] = {}
    for topic, ids in partitions.items():
        readers = _distinct(threads.get(topic, ()))
        if not readers:
            continue
        in_order = sorted(ids)
        least, extra = divmod(len(in_order), len(readers))
        for position, reader in enumerate(readers):
            start = least * position + min(position, extra)
            count = least + (1 if position < extra else 0)
            for partition in in_order[start : start + count]:
                owners[TopicPartition(topic, partition)] = reader
    return owners


def round_robin_assignment(
    partitions: Partitions, threads: Threads, *, order: str = "brackets"
) -> dict[TopicPartition, str]:
    """All partitions of all topics in turn, in the order of their hash codes, which differs between JVM releases.

    ``order`` is "brackets" for groups of Kafka 0.8.2 to 0.11, "dash" for 1.0 and 1.1.  A thread that does not read a
    topic is passed over, and has lost its turn.
    """
    text = _TEXT_OF[order]
    ring = cycle(_distinct(thread for topic in partitions for thread in threads.get(topic, ())))
    readers = {topic: frozenset(threads.get(topic, ())) for topic in partitions}
    everything = [TopicPartition(topic, each) for topic, ids in partitions.items() if readers[topic] for each in ids]
    owners: dict[TopicPartition, str] = {}
    for tp in sorted(everything, key=lambda tp: (java_hash(text(tp)), tp)):
        owners[tp] = next(thread for thread in ring if thread in readers[tp.topic])
    return owners


def _distinct(threads: Iterable[str]) -> list[str]:
    return sorted(set(threads), key=java_order)


_TEXT_OF: Mapping[str, Callable[[TopicPartition], str]] = {
    "brackets": lambda tp: f"[{tp.topic},{tp.partition}]",
    "dash": lambda tp: f"{tp.topic}-{tp.partition}",
}

STRATEGIES = ("range", "roundrobin")
"""What ``partition_assignment_strategy`` may be."""
