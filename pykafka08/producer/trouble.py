"""Causes for which records are not sent, with their age: no leader, no partitions, no producer id, failed attempts.

A missing answer is trouble too.  Pure; ``now`` is monotonic seconds.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pykafka08.cluster.metadata import Broker
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, RequestTimeoutError, broker_error
from pykafka08.producer.actions import RecordsStalled
from pykafka08.producer.batch import Batch
from pykafka08.producer.queues import PartitionQueue, QueueState, TopicQueues
from pykafka08.report_timer import ReportTimer

__all__ = ["LATE", "REPORT_AFTER", "Trouble", "TroubleWatch", "longest_trouble"]

LATE = 5.0
"""Seconds after which an answer is late."""
REPORT_AFTER = 5.0
"""Seconds before trouble is reported: a leader election takes a few seconds."""
LOOK_EVERY = 1.0


class Trouble(NamedTuple):
    """The cause for which records of a partition are not acknowledged; ``error`` names topic and partition."""

    error: KafkaError
    since: float
    """The time at which the oldest of the records was added."""


class TroubleWatch:
    """Decides when to warn of records that are not sent."""

    def __init__(self) -> None:
        self._look_at = 0.0
        self._reports = ReportTimer(REPORT_AFTER)

    @property
    def look_at(self) -> float:
        """When to look next, while records wait."""
        return self._look_at

    def look(
        self,
        queues: Iterable[PartitionQueue],
        topics: Iterable[TopicQueues],
        brokers: Mapping[int, Broker],
        no_identity: KafkaError | None,
        now: float,
    ) -> list[RecordsStalled]:
        """The warning that is due: one when trouble begins, then one a minute while it lasts."""
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_EVERY
        trouble = longest_trouble(queues, topics, brokers, no_identity, now)
        if trouble is None:
            self._reports.reset()
            return []
        if now < self._reports.next_at(trouble.since):
            return []
        self._reports.reported(now)
        return [RecordsStalled(trouble.error, now - trouble.since)]


def longest_trouble(
    queues: Iterable[PartitionQueue],
    topics: Iterable[TopicQueues],
    brokers: Mapping[int, Broker],
    no_identity: KafkaError | None,
    now: float,
) -> Trouble | None:
    """The trouble of the oldest records: ``queues`` hold those of partitions, ``topics`` those without one yet.

    ``no_identity`` is why there is no producer id.
    """
    found = (*_of_queues(queues, brokers, no_identity, now), *_of_topics(topics))
    return min(found, key=lambda each: each.since, default=None)


def _of_queues(
    queues: Iterable[PartitionQueue], brokers: Mapping[int, Broker], no_identity: KafkaError | None, now: float
) -> Iterator[Trouble]:
    for queue in queues:
        if not queue.batches:
            continue
        oldest = queue.batches[0]
        if queue.leader is None:
            yield Trouble(_no_leader(oldest, ErrorCode.LEADER_NOT_AVAILABLE), oldest.created)
        elif oldest.last_error is not None:
            yield Trouble(_placed(oldest.last_error, oldest), oldest.created)
        elif queue.in_flight and now >= queue.waiting_since + LATE:
            yield Trouble(_no_answer(queue, oldest, brokers, now), oldest.created)
        elif queue.state is QueueState.HELD and now >= oldest.created + LATE:
            reason = no_identity or RequestTimeoutError(
                f"no producer id for {now - oldest.created:.0f} s", api="InitProducerId"
            )
            yield Trouble(_placed(reason, oldest), oldest.created)


def _of_topics(topics: Iterable[TopicQueues]) -> Iterator[Trouble]:
    for topic in topics:
        if topic.parked and topic.misses:
            oldest = topic.parked[0]
            yield Trouble(_no_leader(oldest, topic.error or ErrorCode.LEADER_NOT_AVAILABLE), oldest.created)


def _placed(error: KafkaError, batch: Batch) -> KafkaError:
    error = copy.copy(error)
    error.topic, error.partition = batch.topic, batch.partition
    return error


def _no_answer(queue: PartitionQueue, batch: Batch, brokers: Mapping[int, Broker], now: float) -> KafkaError:
    broker = None if queue.sent_to is None else brokers.get(queue.sent_to)
    return RequestTimeoutError(
        f"no answer for {now - queue.waiting_since:.0f} s",
        broker=None if broker is None else broker.name,
        api="Produce",
        topic=batch.topic,
        partition=batch.partition,
    )


def _no_leader(batch: Batch, code: int) -> KafkaError:
    partition = batch.partition if batch.partition >= 0 else None
    return broker_error(code, api="Metadata", topic=batch.topic, partition=partition, needed="WRITE")
