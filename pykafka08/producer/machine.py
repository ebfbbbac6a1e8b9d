"""What the producer does next: linger, leaders, requests in flight, retries, deadlines.  Pure.

A queue whose oldest batch is full, or has lingered long enough, stands in line at its leader's broker; :meth:`poll
<ProducerMachine.poll>` makes one request of the heads of a line.  What an answer leads to stands in ``reactions``.
Every batch has one deadline from its creation, and ends as acknowledged or failed whatever happens to brokers.

Not here: how records get into batches (``accumulator``), bytes (``request``), the network (``sender``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pykafka08.backoff import pause_after
from pykafka08.cluster.metadata import Broker, Snapshot
from pykafka08.cluster.refusals import Refusals
from pykafka08.cluster.topic_creation import CREATION_S
from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError
from pykafka08.producer.accumulator import Accumulator
from pykafka08.producer.actions import (
    Action,
    CheckCreation,
    Counters,
    RefreshMetadata,
    RoomFreed,
    Send,
    UseTopics,
)
from pykafka08.producer.batch import Batch
from pykafka08.producer.failures import expired, in_doubt, left_out, placed
from pykafka08.producer.following import Following
from pykafka08.producer.identity import IdentityKeeper
from pykafka08.producer.lines import Lines
from pykafka08.producer.outcomes import Outcomes
from pykafka08.producer.partitioners import Chooser
from pykafka08.producer.queues import Deadlines, PartitionQueue, QueueState, Timers, TopicQueues
from pykafka08.producer.reactions import Outcome, reaction_to_error
from pykafka08.producer.sequences import Identity
from pykafka08.producer.trouble import Trouble, TroubleWatch, longest_trouble

__all__ = ["ProducerMachine"]

PACKED_SINCE_PRODUCE = 3
"""The version that brought the format in which rows are packed (Kafka 0.11)."""

ROOM_FREED = RoomFreed()

CREATION_AGAIN_S = 10.0
"""Seconds after which the controller is asked again why a topic is not created."""


class ProducerMachine:
    """See the module.  Times are monotonic seconds; ``chance`` gives floats from 0 up to 1, for the jitter.

    With ``is_transactional`` the producer id is asked for by somebody else, and comes through :meth:`identity_given`.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: ClientConfig,
        *,
        make_chooser: Callable[[], Chooser],
        chance: Callable[[], float],
        is_transactional: bool = False,
    ) -> None:
        self.accumulator = Accumulator(config, make_chooser, self)
        self.refusals = Refusals(client)
        """Those of the client, once it is open."""
        self.wants_poll = False
        """Something is to be done before the wake-up that the driver knows of."""
        self._trouble = TroubleWatch()
        self._linger = config.linger_ms / 1000
        self._backoff_base = client.retry_backoff_ms / 1000
        self._backoff_max = client.retry_backoff_max_ms / 1000
        self._chance = chance
        self._active: dict[PartitionQueue, None] = {}
        """Queues that hold batches."""
        self._lines = Lines(config.max_in_flight_requests_per_connection, config.max_request_size)
        self._following = Following()
        self._creations: list[Action] = []
        self._deadlines = Deadlines()
        self._timers = Timers()
        self._keeper = IdentityKeeper(
            is_wanted=config.is_idempotent is not False,
            is_demanded=config.is_idempotent is True,
            is_given=is_transactional,
            backoff=self._backoff,
        )
        self._outcomes = Outcomes(
            self.accumulator, self._deadlines, self._keeper, self._backoff, config.transactional_id
        )

    @property
    def counters(self) -> Counters:
        return self._outcomes.counters(self._lines.requests)

    # --- told by the accumulator --------------------------------------------------------------------------------------

    def batch_opened(self, batch: Batch) -> None:
        self._deadlines.add(batch)
        self.wants_poll = True

    def queue_changed(self, queue: PartitionQueue, now: float) -> None:
        self._settle(queue, now)
        self.wants_poll = True

    def metadata_missing(self, topic: TopicQueues, now: float, *, is_new: bool) -> None:
        if topic.due is None:
            self._timers.set(topic, now + self._backoff(1))
        # A topic just added is asked for anyway; with a known one, the metadata is too old for the partition.
        self._outcomes.is_refresh_wanted |= is_new and bool(topic.partitions)

    def batch_failed(self, batch: Batch, error: KafkaError) -> None:
        self._outcomes.fail(batch, error)

    # --- what happened ------------------------------------------------------------------------------------------------

    def metadata_changed(self, snapshot: Snapshot, now: float) -> None:
        self.accumulator.metadata_changed(snapshot, now)
        for queue in list(self._active):
            if queue.failed_leader is not None and queue.leader not in (None, queue.failed_leader):
                queue.backoff_until = now  # another leader: it has not refused yet
                queue.failed_leader = None
            self._settle(queue, now)
        self.wants_poll = True

    def broker_known(self, node_id: int, produce_version: int) -> None:
        """A request to that broker will be of this version of Produce."""
        self._following.broker_known(node_id, produce_version)
        self.accumulator.packs_rows = produce_version >= PACKED_SINCE_PRODUCE

    def is_numbered(self, batch: Batch) -> bool:
        """The batch goes out with a producer id and numbers."""
        return self._keeper.is_on and not self._queue_of(batch).is_plain

    def number(self, batch: Batch) -> None:
        """A numbered batch is about to be written: the first time it gets its numbers."""
        if batch.base_sequence < 0:
            self._queue_of(batch).sequences.number(batch)

    def take_back(self, batch: Batch) -> None:
        """A batch that was just numbered cannot be written."""
        self._queue_of(batch).sequences.take_back(batch)

    @property
    def identity(self) -> Identity | None:
        """The producer id and epoch in use."""
        return self._keeper.identity

    def identity_given(self, identity: Identity, now: float) -> None:
        """This is the producer's id and epoch from now on."""
        self._keeper.given(identity)
        self._settle_all(now)

    def identity_failed(self, error: KafkaError, now: float, *, is_invalid: bool = False) -> None:
        """Note that a broker gave no producer id; ``is_invalid``: its answer had impossible values."""
        self._keeper.failed(error, now, is_invalid=is_invalid)
        self._settle_all(now)

    def _settle_all(self, now: float) -> None:
        for queue in list(self._active):
            self._settle(queue, now)
        self.wants_poll = True

    def request_answered(self, send: Send, outcomes: Sequence[Outcome | None], now: float) -> None:
        """The broker answered; ``outcomes`` stand in the order of ``send.batches``, None for one it left out."""
        self._request_ended(send)
        for batch, outcome in zip(send.batches, outcomes, strict=True):
            queue = self._free(batch, now)
            if outcome is not None:
                self._outcomes.answered(queue, batch, outcome, send, now)
            elif not batch.is_done:
                error = left_out(self.accumulator.snapshot, send.node_id, batch)
                self._outcomes.react(queue, batch, reaction_to_error(error), error, send, now)
            self._settle(queue, now)

    def request_failed(self, send: Send, error: KafkaError, now: float, *, was_written: bool = True) -> None:
        """The request ended without an answer; ``was_written`` False: before a byte of it was written."""
        self._request_ended(send)
        for batch in send.batches:
            queue = self._free(batch, now)
            if not batch.is_done:
                self._outcomes.react(
                    queue, batch, reaction_to_error(error), placed(error, batch), send, now, was_written=was_written
                )
            self._settle(queue, now)

    def records_refused(
        self, send: Send, batch: Batch, indices: Collection[int], error: KafkaError, now: float
    ) -> Batch | None:
        """These records of a batch that is about to be sent cannot be written for that broker.

        The others stay in ``send`` as the batch that comes back; None if there are none.
        """
        queue = self._queue_of(batch)
        kept = self._outcomes.refuse(queue, batch, indices, error)
        place = send.batches.index(batch)
        if kept is not None:
            send.batches[place] = kept
            queue.in_flight[queue.in_flight.index(batch)] = kept
            return kept
        del send.batches[place]
        self._settle(self._free(batch, now), now)
        self.wants_poll = True
        return None

    def release_all(self, now: float) -> None:
        """Let nothing linger any more."""
        self.accumulator.close_batches(self._active)
        self._settle_all(now)

    def under_way(self) -> list[Batch]:
        """All batches that have not ended, in the order of their deadlines."""
        return self._deadlines.alive()

    def fail_unsent(self, error: KafkaError, now: float) -> None:
        """Fail every batch that is not in flight; those that are end by the broker's answer."""
        for batch in self._deadlines.alive():
            queue = self.accumulator.topics[batch.topic].queues.get(batch.partition)
            if queue is None or batch not in queue.in_flight:
                self._end_early(batch, placed(error, batch), now)

    def close(self, error: KafkaError) -> list[Action]:
        """Fail all records that are left, which is the caller's to tell; what is to be told of those before."""
        told = self._outcomes.failures()
        for batch in self._deadlines.alive():
            queue = self.accumulator.topics[batch.topic].queues.get(batch.partition)
            is_in_doubt = queue is not None and queue.may_have_written(batch)
            self._outcomes.fail(batch, in_doubt(error) if is_in_doubt else error)
        for topic in self.accumulator.topics.values():
            topic.parked.clear()
        for queue in self._active:
            queue.batches.clear()
            queue.close_open()
            queue.state = QueueState.EMPTY
        self._active.clear()
        self._lines.clear()
        self._outcomes.is_refresh_wanted = False
        self._outcomes.failures()
        return told

    # --- what to do ---------------------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Action]:
        self.wants_poll = False
        self._expire(now)
        # Queues that are due within a moment go along, so that partitions share requests.
        for item in self._timers.pop_due(now, self._linger / 4):
            if isinstance(item, PartitionQueue):
                self._settle(item, now + self._linger / 4)
            elif item.parked:
                item.misses += 1
                self._outcomes.is_refresh_wanted = True
                self._timers.set(item, now + self._backoff(item.misses))
                self._check_creation(item, now)
        actions = self._outcomes.failures()
        actions += self._creations
        self._creations.clear()
        if self.accumulator.new_topics:
            actions.append(UseTopics(tuple(self.accumulator.new_topics)))
            self.accumulator.new_topics.clear()
        for node_id, queues, batches in self._lines.requests_due():
            for queue in queues:
                if len(queue.in_flight) == 1:
                    queue.waiting_since = now
                self._settle(queue, now)  # where another may follow, in a request of its own
            actions.append(Send(node_id, self.accumulator.snapshot.generation, batches))
        actions += self._keeper.poll(self.accumulator.snapshot, now)
        if self._outcomes.is_refresh_wanted:
            self._outcomes.is_refresh_wanted = False
            actions.append(RefreshMetadata(self.accumulator.snapshot.generation))
        if self.accumulator.has_freed_room:
            self.accumulator.has_freed_room = False
            actions.append(ROOM_FREED)
        if now >= self._trouble.look_at:
            actions += self._trouble.look(*self._what_waits(), now)
        return actions

    def trouble(self, now: float) -> Trouble | None:
        """The trouble of the partition with the oldest unsent record."""
        return longest_trouble(*self._what_waits(), now)

    def _what_waits(
        self,
    ) -> tuple[Iterable[PartitionQueue], Iterable[TopicQueues], Mapping[int, Broker], KafkaError | None]:
        """Records that wait, and what the trouble of them depends on."""
        accumulator = self.accumulator
        return self._queues_that_wait(), accumulator.topics.values(), accumulator.snapshot.brokers, self._keeper.error

    def _queues_that_wait(self) -> Iterable[PartitionQueue]:
        return self._active

    def _check_creation(self, topic: TopicQueues, now: float) -> None:
        """Ask the controller about the topic if its creation takes too long."""
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.check_at <= now:
            oldest = topic.parked[0].created
            if now >= oldest + CREATION_S:
                topic.check_at = now + CREATION_AGAIN_S
                self._creations.append(CheckCreation(topic.name))

    def topic_refused(self, name: str, error: KafkaError) -> None:
        """Fail the records that wait for a topic which the cluster does not create."""
        self.accumulator.topic_refused(name, error)
        self.wants_poll = True

    def metadata_refused(self, error: KafkaError) -> None:
        """Fail the records that wait for a topic's metadata, which no broker gives with these credentials."""
        for name in [each.name for each in self.accumulator.topics.values() if each.parked]:
            self.topic_refused(name, error)

    def next_wakeup(self) -> float | None:
        times = [
            time
            for time in (
                self._timers.next(),
                self._deadlines.next(),
                self._keeper.next_wakeup(),
                self._trouble.look_at if self._active else None,
            )
            if time is not None
        ]
        return min(times, default=None)

    # --- the state of a queue -----------------------------------------------------------------------------------------

    def _settle(self, queue: PartitionQueue, now: float) -> None:
        """The state of a queue follows from what it holds; this is the one place that decides it."""
        line, queue.ready_at = queue.ready_at, None
        if not queue.in_flight and queue.batches:
            self._prepare_numbers(queue)
        if not queue.in_flight and not queue.batches:
            self._active.pop(queue, None)
            queue.state = QueueState.EMPTY
            queue.due = None
            return
        self._active[queue] = None
        head = queue.next_to_send()
        if head is None or (queue.in_flight and not self._may_follow(queue, now)):
            queue.state = QueueState.IN_FLIGHT
        elif queue.backoff_until > now:
            queue.state = QueueState.BACKING_OFF
            self._timers.set(queue, queue.backoff_until)
        else:
            self._settle_head(queue, head, line, now)

    def _may_follow(self, queue: PartitionQueue, now: float) -> bool:
        """A further batch may go while others are in flight."""
        return self._keeper.is_on and not queue.is_plain and self._following.is_allowed(queue, now)

    def _settle_head(self, queue: PartitionQueue, head: Batch, line: int | None, now: float) -> None:
        lingers_until = head.created + self._following.linger(queue, self._linger)
        if not head.is_closed and lingers_until > now:
            queue.state = QueueState.LINGERING
            self._timers.set(queue, lingers_until)
        elif queue.leader is None:
            if queue.state is not QueueState.NO_LEADER or queue.due is None:
                queue.state = QueueState.NO_LEADER
                queue.misses += 1
                self._outcomes.is_refresh_wanted = True
                self._timers.set(queue, now + self._backoff(queue.misses))
        elif self._is_held(queue, head):
            queue.state = QueueState.HELD
        else:
            queue.state = QueueState.READY
            queue.due = None
            queue.misses = 0
            node_id = queue.ready_at = queue.leader[0]
            if line != node_id:
                self._lines.join(node_id, queue)

    def _prepare_numbers(self, queue: PartitionQueue) -> None:
        """With nothing in flight: put the numbers of the waiting batches in order."""
        identity = self._keeper.identity
        if not self._keeper.is_on or queue.is_plain:
            if queue.batches[0].base_sequence >= 0:
                self._outcomes.drop_numbers(queue)
        elif identity is not None and queue.sequences.must_start(queue.batches[0], identity):
            self._outcomes.start_numbers(queue, identity)

    def _is_held(self, queue: PartitionQueue, head: Batch) -> bool:
        """There is no producer id that the batch could be numbered under."""
        if not self._keeper.is_on or queue.is_plain:
            return False
        identity = self._keeper.identity
        return identity is None or (not queue.in_flight and queue.sequences.must_start(head, identity))

    # --- the end of requests and batches ------------------------------------------------------------------------------

    def _queue_of(self, batch: Batch) -> PartitionQueue:
        return self.accumulator.topics[batch.topic].queues[batch.partition]

    def _free(self, batch: Batch, now: float) -> PartitionQueue:
        queue = self._queue_of(batch)
        queue.in_flight.remove(batch)
        queue.waiting_since = now
        return queue

    def _request_ended(self, send: Send) -> None:
        self._lines.request_ended(send.node_id)
        self.wants_poll = True

    def _backoff(self, attempt: int) -> float:
        """Doubling from ``retry_backoff_ms`` to its maximum, 20 % more or less by chance."""
        return pause_after(attempt, self._backoff_base, self._backoff_max, self._chance())

    def _expire(self, now: float) -> None:
        snapshot = self.accumulator.snapshot
        refusal = self._keeper.refusal
        if refusal is not None and self._deadlines.next() is not None:
            self.fail_unsent(refusal, now)
        for batch in self._deadlines.pop_due(now):
            topic = self.accumulator.topics[batch.topic]
            queue = topic.queues[batch.partition] if batch.partition >= 0 else None
            refusal = self.refusals.of(self._waits_for(queue), now)
            self._end_early(batch, expired(snapshot, batch, topic, queue, self._keeper.error, refusal), now)

    def _waits_for(self, queue: PartitionQueue | None) -> list[Broker]:
        """The leader of a partition, or all brokers if it is not known."""
        brokers = self.accumulator.snapshot.brokers
        leader = brokers.get(queue.leader[0]) if queue is not None and queue.leader is not None else None
        return [leader] if leader is not None else list(brokers.values())

    def _end_early(self, batch: Batch, error: KafkaError, now: float) -> None:
        """End it without a broker's word.

        One in flight ends for those who wait; its partition stays taken until the request has ended too.
        """
        topic = self.accumulator.topics[batch.topic]
        if batch.partition < 0:
            topic.parked.remove(batch)
            self._outcomes.fail(batch, error)
            return
        queue = topic.queues[batch.partition]
        if not batch.is_closed:
            queue.close_open()
        self._outcomes.end(queue, batch, in_doubt(error) if queue.may_have_written(batch) else error)
        self._settle(queue, now)
