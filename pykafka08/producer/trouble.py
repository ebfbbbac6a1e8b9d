"""What keeps records from being sent, and since when: no leader, no partitions, attempts that fail.  Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, broker_error
from pykafka08.producer.actions import InTrouble
from pykafka08.producer.batch import Batch
from pykafka08.producer.queues import PartitionQueue, TopicQueues

__all__ = ["TELL_AFTER", "Trouble", "TroubleWatch", "longest_trouble"]

TELL_AFTER = 5.0
"""Seconds of trouble before it is told: a leader that moves is no trouble."""
TELL_AGAIN_AFTER = 60.0
LOOK_EVERY = 1.0


class Trouble(NamedTuple):
    """Why records of a partition are not acknowledged; ``error`` names topic and partition."""

    error: KafkaError
    since: float
    """When the oldest of the records was added."""


class TroubleWatch:
    """When trouble was told."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._told_at: float | None = None

    def look(self, queues: Iterable[PartitionQueue], topics: Iterable[TopicQueues], now: float) -> list[InTrouble]:
        """The warning that is due: once when trouble begins, then once a minute while it lasts."""
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_EVERY
        trouble = longest_trouble(queues, topics)
        if trouble is None:
            self._told_at = None
            return []
        is_told = self._told_at is not None and now < self._told_at + TELL_AGAIN_AFTER
        if is_told or now < trouble.since + TELL_AFTER:
            return []
        self._told_at = now
        return [InTrouble(trouble.error, now - trouble.since)]


def longest_trouble(queues: Iterable[PartitionQueue], topics: Iterable[TopicQueues]) -> Trouble | None:
    """The trouble of the oldest records: ``queues`` hold those of partitions, ``topics`` those without one yet."""
    return min((*_of_queues(queues), *_of_topics(topics)), key=lambda each: each.since, default=None)


def _of_queues(queues: Iterable[PartitionQueue]) -> Iterator[Trouble]:
    for queue in queues:
        if not queue.batches:
            continue
        oldest = queue.batches[0]
        if queue.leader is None:
            yield Trouble(_no_leader(oldest, ErrorCode.LEADER_NOT_AVAILABLE), oldest.created)
        elif oldest.last_error is not None:
            error = copy.copy(oldest.last_error)
            error.topic, error.partition = oldest.topic, oldest.partition
            yield Trouble(error, oldest.created)


def _of_topics(topics: Iterable[TopicQueues]) -> Iterator[Trouble]:
    for topic in topics:
        if topic.parked and topic.misses:
            oldest = topic.parked[0]
            yield Trouble(_no_leader(oldest, topic.error or ErrorCode.LEADER_NOT_AVAILABLE), oldest.created)


def _no_leader(batch: Batch, code: int) -> KafkaError:
    partition = batch.partition if batch.partition >= 0 else None
    return broker_error(code, api="Metadata", topic=batch.topic, partition=partition)
