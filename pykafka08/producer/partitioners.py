"""Which partition a record goes to: the hashes of the known producers, and the choices for records without a key.

Pure: the source of chance and the time are passed in.  Records that name their partition never come here.
Sources: KIP-480 and KIP-794 (sticky), ``org.apache.kafka.common.utils.Utils.murmur2``, the Scala producer's
``ByteArrayPartitioner`` (``java.util.Arrays.hashCode``), librdkafka's ``consistent_random`` (CRC-32).
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

from pykafka08.config import Partitioner
from pykafka08.errors import ConfigError
from pykafka08.producer.murmur2 import unsigned_murmur2

__all__ = [
    "PARTITIONERS",
    "Chance",
    "Chooser",
    "Topic",
    "arrays_hash_code",
    "chooser_factory",
    "crc32_partition",
    "murmur2",
    "murmur2_partition",
    "scala_partition",
]


class Chance(Protocol):
    """The part of :class:`random.Random` that is used here."""

    def randrange(self, stop: int, /) -> int: ...


class Topic(Protocol):
    """What a choice may depend on; ``partitions`` is never empty, ``available`` (those with a leader) may be."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> tuple[int, ...]: ...

    @property
    def available(self) -> tuple[int, ...]: ...

    def backlog(self, partition: int) -> int:
        """Batches that wait to be sent to ``partition``."""


STICKY_BYTES = 16_384
"""Bytes of consecutive keyless records for one partition: the default ``batch.size`` of the Java producer.

Larger batches are still filled, since another partition is chosen only at the end of a batch.
"""

MOST_COMPARED = 32
"""Partitions whose queues are compared for one choice; of more partitions, a random sample is compared."""

RANDOM_STICKY_S = 600.0
"""The Scala producer keeps a random partition as long as its metadata: ten minutes."""


# --- hashes -----------------------------------------------------------------------------------------------------------

_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The signed 32-bit murmur2 hash of the Java producer."""
    h = unsigned_murmur2(data)
    return h - (1 << 32) if h >> 31 else h


def murmur2_partition(key: bytes, count: int) -> int:
    """As the Java producer since 0.8.2."""
    return (unsigned_murmur2(key) & 0x7FFFFFFF) % count


def arrays_hash_code(data: bytes) -> int:
    """Java's ``Arrays.hashCode(byte[])``, a signed 32-bit number."""
    h = 1
    for byte in data:
        h = (31 * h + (byte - 256 if byte > 127 else byte)) & _MASK
    return h - (1 << 32) if h >> 31 else h


def scala_partition(key: bytes, count: int) -> int:
    """As the Scala producer of 0.8.2 to 0.11: the absolute value, and 0 for the one number that has none."""
    h = arrays_hash_code(key)
    return (0 if h == -(1 << 31) else abs(h)) % count


def scala_masked_partition(key: bytes, count: int) -> int:
    """As the Scala producer of 0.8.0 and 0.8.1, which cleared the sign bit instead."""
    return (arrays_hash_code(key) & 0x7FFFFFFF) % count


def crc32_partition(key: bytes, count: int) -> int:
    """As librdkafka's ``consistent`` partitioners."""
    return zlib.crc32(key) % count


# --- choosers: one object per topic -----------------------------------------------------------------------------------


class Chooser(Protocol):
    """Chooses the partitions of one topic's records.

    ``stickiness`` is the number of bytes of keyless records for one chosen partition while it has batches to send; 0
    chooses for each record.  ``keeps_keys``: records with the same key, if it is not
    empty, go to the same partition as long as there are as many.
    """

    stickiness: int
    keeps_keys: bool

    def choose(self, key: bytes | None, topic: Topic, now: float) -> int: ...


def _random_of(chance: Chance, partitions: Sequence[int]) -> int:
    return partitions[chance.randrange(len(partitions))]


def _least_loaded(chance: Chance, topic: Topic) -> int:
    """By chance, the likelier the shorter the partition's queue is (KIP-794: a slow broker gets fewer records)."""
    partitions = topic.available or topic.partitions
    if len(partitions) > MOST_COMPARED:
        start = chance.randrange(len(partitions))
        end = start + MOST_COMPARED
        partitions = partitions[start:end] + partitions[: max(0, end - len(partitions))]
    lengths = [topic.backlog(partition) for partition in partitions]
    most = max(lengths)
    if most == min(lengths):
        return _random_of(chance, partitions)
    bounds = list(accumulate(most + 1 - length for length in lengths))
    return partitions[bisect_right(bounds, chance.randrange(bounds[-1]))]


class Sticky:
    """Records with a key by ``hash_partition``; the others stay on one partition for ``stickiness`` bytes at most."""

    keeps_keys = True

    def __init__(self, chance: Chance, hash_partition: Callable[[bytes, int], int], stickiness: int) -> None:
        self.stickiness = min(stickiness, STICKY_BYTES)
        self._chance = chance
        self._hash_partition = hash_partition

    def choose(self, key: bytes | None, topic: Topic, now: float) -> int:
        if key is not None:
            return topic.partitions[self._hash_partition(key, len(topic.partitions))]
        return _least_loaded(self._chance, topic)


class RandomSticky:
    """Records with a key by ``hash_partition``; the others stay on one random partition for ten minutes."""

    stickiness = 0
    keeps_keys = True

    def __init__(self, chance: Chance, hash_partition: Callable[[bytes, int], int]) -> None:
        self._chance = chance
        self._hash_partition = hash_partition
        self._partition = -1
        self._until = 0.0

    def choose(self, key: bytes | None, topic: Topic, now: float) -> int:
        if key is not None:
            return topic.partitions[self._hash_partition(key, len(topic.partitions))]
        candidates = topic.available or topic.partitions
        if now >= self._until or self._partition not in candidates:
            self._partition = _random_of(self._chance, candidates)
            self._until = now + RANDOM_STICKY_S
        return self._partition


class ConsistentRandom:
    """Records with a key by CRC-32; those without, or with an empty one, at random, as librdkafka's default does."""

    stickiness = 0
    keeps_keys = True

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def choose(self, key: bytes | None, topic: Topic, now: float) -> int:
        if key:
            return topic.partitions[crc32_partition(key, len(topic.partitions))]
        return _random_of(self._chance, topic.available or topic.partitions)


class RoundRobin:
    """One partition after the other, whatever the key; partitions without a leader are passed over."""

    stickiness = 0
    keeps_keys = False

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._turn = -1

    def choose(self, key: bytes | None, topic: Topic, now: float) -> int:
        candidates = topic.available or topic.partitions
        # A random start, so that many short-lived producers do not all begin with partition 0.
        self._turn = self._chance.randrange(len(candidates)) if self._turn < 0 else self._turn + 1
        return candidates[self._turn % len(candidates)]


class Callback:
    """The application's own function."""

    stickiness = 0
    keeps_keys = False

    def __init__(self, function: Partitioner) -> None:
        self._function = function

    def choose(self, key: bytes | None, topic: Topic, now: float) -> int:
        """ConfigError for an answer that is no partition, and for whatever the function raises, which is its cause."""
        try:
            partition = self._function(key, topic.partitions, topic.available)
        except Exception as error:
            raise ConfigError(f"the partitioner raised {error!r:.300}", topic=topic.name) from error
        if not isinstance(partition, int) or isinstance(partition, bool) or partition not in topic.partitions:
            count = len(topic.partitions)
            raise ConfigError(
                f"the partitioner answered {partition!r:.100}, which is none of the {count} partitions",
                topic=topic.name,
            )
        return partition


PARTITIONERS: dict[str, Callable[[Chance, int], Chooser]] = {
    "murmur2": lambda chance, batch_size: Sticky(chance, murmur2_partition, batch_size),
    "round_robin": lambda chance, batch_size: RoundRobin(chance),
    "random_sticky": lambda chance, batch_size: RandomSticky(chance, murmur2_partition),
    "scala": lambda chance, batch_size: RandomSticky(chance, scala_partition),
    "scala_0_8_1": lambda chance, batch_size: RandomSticky(chance, scala_masked_partition),
    "consistent_random": lambda chance, batch_size: ConsistentRandom(chance),
    "crc32": lambda chance, batch_size: Sticky(chance, crc32_partition, batch_size),
}
"""The values of the setting ``partitioner``: ``(chance, batch_size) -> Chooser``."""


def chooser_factory(partitioner: str | Partitioner, chance: Chance, batch_size: int) -> Callable[[], Chooser]:
    """A function that makes the chooser of one more topic; ConfigError for a name that is not in the table."""
    if callable(partitioner):
        function = partitioner
        return lambda: Callback(function)
    make = PARTITIONERS.get(partitioner)
    if make is None:
        raise ConfigError(f"partitioner={partitioner!r} is none of {', '.join(PARTITIONERS)}, nor a function")
    return lambda: make(chance, batch_size)
