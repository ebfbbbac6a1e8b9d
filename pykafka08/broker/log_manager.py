"""Retention, compaction and the bound on memory, over the logs of all topics.

Time is an argument.  Retention of one log is in ``segments``, compaction of one log in ``compaction``.
Source: ``LogManager``, ``LogCleanerManager``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pykafka08.broker.compaction import Compaction
from pykafka08.broker.log import PartitionLog, RecordMemory, StoredBatch
from pykafka08.broker.segments import FOREVER_MS, deletable
from pykafka08.broker.state import Partition, Topic, Topics
from pykafka08.logs import LibraryLogger

__all__ = ["DEFAULT_MEMORY_BYTES", "LogManager", "LogPolicy"]

DEFAULT_MEMORY_BYTES = 1 << 30
HEADROOM = 16  # a sixteenth of the bound is freed at once


class LogPolicy(NamedTuple):
    """The retention and compaction configs of a topic."""

    is_deleted: bool
    is_compacted: bool
    retention_ms: int
    retention_bytes: int
    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int
    delete_retention_ms: int

    @classmethod
    def of(cls, topic: Topic) -> LogPolicy:
        def number(name: str, absent: int) -> int:
            return topic.number(name) if topic.value(name) else absent

        policies = [item.strip() for item in topic.value("cleanup.policy").split(",")]
        return cls(
            is_deleted="delete" in policies,
            is_compacted="compact" in policies,
            retention_ms=number("retention.ms", -1),
            retention_bytes=number("retention.bytes", -1),
            min_dirty_ratio=float(topic.value("min.cleanable.dirty.ratio") or 0.5),
            min_lag_ms=number("min.compaction.lag.ms", 0),
            max_lag_ms=number("max.compaction.lag.ms", FOREVER_MS),
            delete_retention_ms=number("delete.retention.ms", 0),
        )


class LogManager:
    """``memory`` is the memory of all records; ``max_memory_bytes`` bounds it."""

    def __init__(self, topics: Topics, memory: RecordMemory, log: LibraryLogger, max_memory_bytes: int) -> None:
        self._topics = topics
        self._memory = memory
        self._log = log
        self.max_memory_bytes = max_memory_bytes
        self._warned: set[str] = set()

    def delete_old_segments(self, now_ms: int) -> None:
        """Run retention; brokers do so every ``log.retention.check.interval.ms``."""
        for topic in self._topics:
            policy = LogPolicy.of(topic)
            if not policy.is_deleted:
                continue
            for partition in topic.partitions:
                self._delete_old_segments(partition, policy, now_ms)

    @staticmethod
    def _delete_old_segments(partition: Partition, policy: LogPolicy, now_ms: int) -> None:
        log = partition.log
        gone = deletable(
            log.segments,
            now_ms=now_ms,
            retention_ms=policy.retention_ms,
            retention_bytes=policy.retention_bytes,
        )
        if gone:
            log.trim(log.segments[gone].base_offset if gone < len(log.segments) else log.end_offset)
            partition.changed()

    def compact(self, now_ms: int) -> None:
        """Run compaction; brokers do so every ``log.cleaner.backoff.ms``."""
        for topic in self._topics:
            policy = LogPolicy.of(topic)
            if policy.is_compacted:
                for partition in topic.partitions:
                    _compact(partition.log, policy, now_ms)

    def bound_memory(self) -> None:
        """Delete the oldest batches of all logs until the rest fits; compacted logs come last."""
        if self._memory.used <= self.max_memory_bytes:
            return
        partitions = [partition for topic in self._topics for partition in topic.partitions]
        need = self._memory.used - self.max_memory_bytes + self.max_memory_bytes // HEADROOM
        trimmed = _oldest(partitions, need, lambda topic: LogPolicy.of(topic).is_compacted)
        for partition, offset in trimmed:
            self._warn(partition, offset)
            partition.log.trim(offset)
            partition.changed()

    def _warn(self, partition: Partition, offset: int) -> None:
        name = partition.topic.name
        if name not in self._warned:
            self._warned.add(name)
            self._log.warning(
                "records deleted to keep within max_memory_bytes",
                topic=name,
                partition=partition.index,
                log_start_offset=offset,
                max_memory_bytes=self.max_memory_bytes,
            )


def _compact(log: PartitionLog, policy: LogPolicy, now_ms: int) -> None:
    end = _compactable_end(log, policy, now_ms)
    dirty_from = max(log.compacted_until, log.start_offset)
    dirty = log.stored(dirty_from, end)
    if not dirty:
        return
    dirty_bytes = sum(len(batch.data) for batch in dirty)
    clean_bytes = sum(len(batch.data) for batch in log.stored(log.start_offset, dirty_from))
    is_overdue = now_ms - dirty[0].max_timestamp_ms > policy.max_lag_ms
    if dirty_bytes <= policy.min_dirty_ratio * (dirty_bytes + clean_bytes) and not is_overdue:
        return
    last = (batch for _, _, batch in log.sequences.latest() if batch is not None)
    compaction = Compaction(
        aborted=log.aborted(),
        last_batches=frozenset(batch.base_offset for batch in last),
        now_ms=now_ms,
        delete_retention_ms=policy.delete_retention_ms,
    )
    log.compacted(end, compaction.run(log.stored(log.start_offset, end), dirty_from))


def _compactable_end(log: PartitionLog, policy: LogPolicy, now_ms: int) -> int:
    """The offset before which batches may be compacted; the active segment and open transactions are after it."""
    end = min(log.segments[-1].base_offset, log.stable_offset) if log.segments else log.start_offset
    for segment in log.segments:
        if segment.base_offset >= end:
            break
        if policy.min_lag_ms > 0 and segment.latest_ms > now_ms - policy.min_lag_ms:
            return segment.base_offset
    return end


def _oldest(
    partitions: Iterable[Partition], need: int, comes_last: Callable[[Topic], bool]
) -> list[tuple[Partition, int]]:
    """Partitions and new log start offsets that free ``need`` bytes; each partition keeps its last batch."""
    heap: list[tuple[bool, int, int]] = []
    queues: list[tuple[Partition, list[StoredBatch]]] = []
    for partition in partitions:
        log = partition.log
        stored = log.stored(log.start_offset, log.end_offset)
        if len(stored) > 1:
            heap.append((comes_last(partition.topic), stored[0].appended_at_ms, len(queues)))
            queues.append((partition, stored))
    heapq.heapify(heap)
    taken = [0] * len(queues)
    while heap and need > 0:
        is_last, _, index = heap[0]
        stored = queues[index][1]
        need -= stored[taken[index]].memory_bytes
        taken[index] += 1
        if taken[index] < len(stored) - 1:
            heapq.heapreplace(heap, (is_last, stored[taken[index]].appended_at_ms, index))
        else:
            heapq.heappop(heap)
    return [
        (partition, stored[count].base_offset)
        for (partition, stored), count in zip(queues, taken, strict=True)
        if count
    ]
