"""The producer's bookkeeping: batches that wait for each partition, topics and their partitions, the deadlines.

Pure, and without decisions of its own: what happens to a queue is decided in ``machine``.
"""

from __future__ import annotations

import heapq
from collections import deque
from enum import Enum
from itertools import count

from pykafka08.cluster.metadata import Snapshot
from pykafka08.producer.batch import Batch
from pykafka08.producer.partitioners import Chooser
from pykafka08.producer.sequences import Sequences

__all__ = ["Deadlines", "OpenBatches", "PartitionQueue", "QueueState", "Timers", "TopicQueues"]


class QueueState(Enum):
    """What a partition's queue waits for.

    EMPTY -> LINGERING -> READY -> IN_FLIGHT -> EMPTY is the usual way; an answer that asks for a retry leads from
    IN_FLIGHT to BACKING_OFF, and a partition whose leader is not known waits as NO_LEADER.  With numbered batches the
    next one may be READY while others are in flight.
    """

    EMPTY = "for records"
    LINGERING = "for more records, until linger_ms has passed"
    HELD = "for the producer id that its batches are numbered under"
    READY = "for a free place among its broker's requests in flight"
    IN_FLIGHT = "for the broker's answer"
    BACKING_OFF = "until the next attempt is due"
    NO_LEADER = "for metadata that names a leader"


class OpenBatches:
    """How many batches of a producer take records: their records are objects, so that they are to be small if many."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class PartitionQueue:
    """The batches of one partition that have not ended, oldest first; ``open`` is the last one while it takes records.

    Those in flight are among ``batches`` until they end.  More than one is in flight only where the broker checks their
    numbers: otherwise the second would overtake the first when that must be sent again.
    """

    __slots__ = (
        "backoff_until",
        "batches",
        "closed_bytes",
        "due",
        "failed_leader",
        "in_flight",
        "is_plain",
        "largest",
        "leader",
        "limit",
        "misses",
        "open",
        "open_rows",
        "partition",
        "ready_at",
        "sent_to",
        "sequences",
        "state",
        "topic",
        "waiting_since",
    )

    def __init__(self, topic: TopicQueues, partition: int, limit: int) -> None:
        self.topic = topic
        self.partition = partition
        self.largest = limit
        """Size at which a batch is closed, whatever else there is."""
        self.limit = limit
        """Size at which the open batch is closed."""
        self.batches: deque[Batch] = deque()
        self.open: Batch | None = None
        self.open_rows: Batch | None = None
        """As ``open``, but of packed rows, which no single record can join; only one of the two is there."""
        self.closed_bytes = 0
        """Bytes of all batches that were ever closed."""
        self.in_flight: list[Batch] = []
        """Batches of requests that have not ended, in order; a batch may have ended before, by its deadline."""
        self.sent_to: int | None = None
        """The broker to which the last one went."""
        self.waiting_since = 0.0
        """The time at which the oldest batch in flight was sent, or the batch before it was answered."""
        self.is_plain = False
        """Its leader cannot keep numbers, or its log cannot hold them."""
        self.sequences = Sequences()
        self.state = QueueState.EMPTY
        self.leader: tuple[int, int] | None = None
        """Node id and leader epoch."""
        self.failed_leader: tuple[int, int] | None = None
        """The leader that did not serve the partition at the last attempt."""
        self.backoff_until = 0.0
        self.misses = 0
        """Times in a row that no leader was found."""
        self.ready_at: int | None = None
        """The broker in whose line the queue stands while READY."""
        self.due: float | None = None
        """When its timer fires."""

    def has_room(self, batch: Batch, size: int, now: float) -> bool:
        """Its open batch takes so many bytes more."""
        return batch.size + size <= self.limit and now <= batch.closes_at

    def close_open(self) -> None:
        """Let no more records join the last batch."""
        batch = self.open if self.open is not None else self.open_rows
        if batch is not None:
            batch.is_closed = True
            self.closed_bytes += batch.size
            self.open = self.open_rows = None
            self.topic.opened.count -= 1

    def next_to_send(self) -> Batch | None:
        """The oldest batch that is not in flight."""
        if not self.in_flight:
            return self.batches[0] if self.batches else None
        return next((batch for batch in self.batches if batch not in self.in_flight), None)

    def is_first(self, batch: Batch) -> bool:
        """Nothing before it waits for an answer or to be sent again."""
        return self.batches[0] is batch and all(
            other is batch or other.base_sequence > batch.base_sequence for other in self.in_flight
        )

    def may_have_written(self, batch: Batch) -> bool:
        """A broker may have put the batch into the log."""
        return batch.is_in_doubt or batch in self.in_flight

    def ended(self, batch: Batch) -> None:
        """The batch has ended, or its records have gone on in others."""
        if self.batches and self.batches[0] is batch:
            self.batches.popleft()
        else:
            self.batches.remove(batch)

    def __repr__(self) -> str:
        return f"<PartitionQueue {self.topic.name}[{self.partition}] {self.state.name}, {len(self.batches)} batches>"


class TopicQueues:
    """One topic: its partitions as the newest metadata has them, and the records that wait for it.

    It is what a partitioner sees (:class:`pykafka08.producer.partitioners.Topic`).
    """

    __slots__ = (
        "available",
        "by_key",
        "check_at",
        "chooser",
        "due",
        "error",
        "misses",
        "name",
        "opened",
        "parked",
        "partitions",
        "queues",
        "sticky",
        "sticky_since",
    )

    def __init__(self, name: str, chooser: Chooser, opened: OpenBatches) -> None:
        self.name = name
        self.chooser = chooser
        self.opened = opened
        self.partitions: tuple[int, ...] = ()
        self.available: tuple[int, ...] = ()
        self.error = 0
        """Error code of the topic in the newest metadata; 0 also where that was not asked about it."""
        self.queues: dict[int, PartitionQueue] = {}
        self.by_key: dict[bytes, PartitionQueue] = {}
        """Where the records of some keys go: hashing costs more than looking it up."""
        self.sticky: PartitionQueue | None = None
        """Where records without a key go for now."""
        self.sticky_since = 0
        """The queue's ``closed_bytes`` when it was chosen."""
        self.parked: list[Batch] = []
        """Records that wait for metadata, in the order they came."""
        self.misses = 0
        self.check_at = 0.0
        """The time of the next check why the cluster does not create the topic."""
        self.due: float | None = None

    def backlog(self, partition: int) -> int:
        queue = self.queues.get(partition)
        return len(queue.batches) if queue is not None else 0

    def update(self, snapshot: Snapshot) -> None:
        """Take over what ``snapshot`` knows; a topic that it lost keeps its partitions, without leaders."""
        self.error = snapshot.topic_error(self.name) if self.name in snapshot.topics else 0
        partitions = snapshot.partitions(self.name)
        if partitions and partitions != self.partitions:
            self.partitions = partitions
            self.by_key.clear()
        self.available = snapshot.available_partitions(self.name)
        for queue in self.queues.values():
            set_leader(queue, snapshot)
        if self.sticky is not None and self.sticky.leader is None:
            self.sticky = None


def set_leader(queue: PartitionQueue, snapshot: Snapshot) -> None:
    leader = snapshot.leader(queue.topic.name, queue.partition)
    if leader is None:
        queue.leader = None
    else:
        queue.leader = (leader, snapshot.leader_epoch(queue.topic.name, queue.partition))


class Deadlines:
    """All batches that have not ended, by deadline.  Ended ones are dropped as they are met, or when they are many."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Batch]] = []
        self._turn = count()
        self._compact_at = 64

    def add(self, batch: Batch) -> None:
        heapq.heappush(self._heap, (batch.deadline, next(self._turn), batch))
        if len(self._heap) > self._compact_at:
            self._heap = [entry for entry in self._heap if _is_alive(entry[2])]
            heapq.heapify(self._heap)
            self._compact_at = 2 * len(self._heap) + 64

    def next(self) -> float | None:
        heap = self._heap
        while heap and not _is_alive(heap[0][2]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> list[Batch]:
        due = []
        while (deadline := self.next()) is not None and deadline <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def alive(self) -> list[Batch]:
        """Every batch that has not ended, in the order of their deadlines."""
        return [entry[2] for entry in sorted(self._heap, key=_order) if _is_alive(entry[2])]


def _is_alive(batch: Batch) -> bool:
    return not batch.is_done and not batch.is_forwarded


def _order(entry: tuple[float, int, Batch]) -> tuple[float, int]:
    return entry[:2]


class Timers:
    """When to look at a queue or topic again.  One timer each: setting it again replaces the one before."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, PartitionQueue | TopicQueues]] = []
        self._turn = count()

    def set(self, item: PartitionQueue | TopicQueues, when: float) -> None:
        if item.due != when:
            item.due = when
            heapq.heappush(self._heap, (when, next(self._turn), item))

    def next(self) -> float | None:
        heap = self._heap
        while heap and heap[0][2].due != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float, slack: float) -> list[PartitionQueue | TopicQueues]:
        """Those that are due; with at least one, also those due within ``slack``, so that they share requests."""
        items: list[PartitionQueue | TopicQueues] = []
        when = self.next()
        limit = now + slack if when is not None and when <= now else now
        while when is not None and when <= limit:
            item = heapq.heappop(self._heap)[2]
            item.due = None
            items.append(item)
            when = self.next()
        return items
