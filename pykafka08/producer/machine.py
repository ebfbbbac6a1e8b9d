"""What the producer does next: linger, leaders, requests in flight, retries, deadlines.  Pure.

A queue whose oldest batch is full, or has lingered long enough, stands in line at its leader's broker; :meth:`poll
<ProducerMachine.poll>` makes one request of the heads of a line.  What an answer leads to stands in ``reactions``.
Every batch has one deadline from its creation, and ends as acknowledged or failed whatever happens to brokers.

Not here: how records get into batches (``accumulator``), bytes (``request``), the network (``sender``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence

from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ClientConfig, ProducerConfig
from pykafka08.errors import KafkaError
from pykafka08.producer.accumulator import Accumulator
from pykafka08.producer.actions import Action, Counters, RefreshMetadata, RoomFreed, Send, UseTopics
from pykafka08.producer.batch import Batch
from pykafka08.producer.failures import expired, left_out, placed, produce_error, refused_as_too_large
from pykafka08.producer.partitioners import Chooser
from pykafka08.producer.queues import Deadlines, PartitionQueue, QueueState, Timers, TopicQueues
from pykafka08.producer.reactions import Outcome, Reaction, is_repeated, reaction_to_code, reaction_to_error

__all__ = ["ProducerMachine"]


class ProducerMachine:
    """See the module.  Times are monotonic seconds; ``chance`` gives floats from 0 up to 1, for the jitter."""

    def __init__(
        self,
        config: ProducerConfig,
        client: ClientConfig,
        *,
        make_chooser: Callable[[], Chooser],
        chance: Callable[[], float],
    ) -> None:
        self.accumulator = Accumulator(config, make_chooser, self)
        self.wants_poll = False
        """Something is to be done before the wake-up that the driver knows of."""
        self._linger = config.linger_ms / 1000
        self._max_request_size = config.max_request_size
        self._max_in_flight = config.max_in_flight_requests_per_connection
        self._backoff_base = client.retry_backoff_ms / 1000
        self._backoff_max = client.retry_backoff_max_ms / 1000
        self._chance = chance
        self._active: dict[PartitionQueue, None] = {}
        """Queues that hold batches."""
        self._lines: dict[int, deque[PartitionQueue]] = {}
        """READY queues by broker.  One that has left for another line, or has nothing to send, is passed over."""
        self._in_flight: dict[int, int] = {}
        """Requests by broker."""
        self._deadlines = Deadlines()
        self._timers = Timers()
        self._is_refresh_wanted = False
        self._acknowledged = self._failed = self._requests = self._retries = 0

    @property
    def counters(self) -> Counters:
        enqueued, ended = self.accumulator.enqueued, self._acknowledged + self._failed
        return Counters(
            enqueued,
            self._acknowledged,
            self._failed,
            enqueued - ended,
            self.accumulator.buffered_bytes,
            self._requests,
            self._retries,
        )

    # --- told by the accumulator --------------------------------------------------------------------------------------

    def batch_opened(self, batch: Batch) -> None:
        self._deadlines.add(batch)
        self.wants_poll = True

    def queue_changed(self, queue: PartitionQueue, now: float) -> None:
        self._settle(queue, now)
        self.wants_poll = True

    def metadata_missing(self, topic: TopicQueues, now: float) -> None:
        if topic.due is None:
            self._timers.set(topic, now + self._backoff(1))
        # A topic just added is asked for anyway; with a known one, the metadata is too old for the partition.
        self._is_refresh_wanted |= bool(topic.partitions)

    def batch_failed(self, batch: Batch, error: KafkaError) -> None:
        self._fail(batch, error)

    # --- what happened ------------------------------------------------------------------------------------------------

    def metadata_changed(self, snapshot: Snapshot, now: float) -> None:
        self.accumulator.metadata_changed(snapshot, now)
        for queue in list(self._active):
            if queue.failed_leader is not None and queue.leader not in (None, queue.failed_leader):
                queue.backoff_until = now  # another leader: it has not refused yet
                queue.failed_leader = None
            self._settle(queue, now)
        self.wants_poll = True

    def request_answered(self, send: Send, outcomes: Sequence[Outcome | None], now: float) -> None:
        """The broker answered; ``outcomes`` stand in the order of ``send.batches``, None for one it left out."""
        self._request_ended(send)
        for batch, outcome in zip(send.batches, outcomes, strict=True):
            queue = self._free(batch)
            if batch.is_done:
                pass  # its deadline has passed meanwhile
            elif outcome is None:
                error = left_out(self.accumulator.snapshot, send.node_id, batch)
                self._react(queue, batch, reaction_to_error(error), error, send, now)
            else:
                self._react_to_outcome(queue, batch, outcome, send, now)
            self._settle(queue, now)

    def request_failed(self, send: Send, error: KafkaError, now: float) -> None:
        """The request ended without an answer, or could not be made."""
        self._request_ended(send)
        for batch in send.batches:
            queue = self._free(batch)
            if not batch.is_done:
                self._react(queue, batch, reaction_to_error(error), placed(error, batch), send, now)
            self._settle(queue, now)

    def records_refused(
        self, send: Send, batch: Batch, indices: Collection[int], error: KafkaError, now: float
    ) -> Batch | None:
        """The broker's release cannot carry these records of a batch that is about to be sent.

        The others stay in ``send`` as the batch that comes back; None if there are none.
        """
        kept, refused = (Batch(batch.topic, batch.partition, batch.created, batch.deadline) for _ in range(2))
        routes = []
        for index in range(len(batch)):
            target = refused if index in indices else kept
            routes.append((target, target.take(batch, index, batch.record_bytes(index))))
        place = send.batches.index(batch)
        kept.is_closed = True
        kept.attempts, kept.last_error = batch.attempts, batch.last_error
        batch.forward(routes)
        self._fail(refused, error)
        if len(kept):
            self._deadlines.add(kept)
            send.batches[place] = self._queue_of(batch).in_flight = kept
            return kept
        del send.batches[place]
        self._settle(self._free(batch), now)
        self.wants_poll = True
        return None

    def release_all(self, now: float) -> list[Batch]:
        """Let nothing linger any more; all batches that have not ended."""
        self.accumulator.close_batches(self._active)
        for queue in list(self._active):
            self._settle(queue, now)
        self.wants_poll = True
        return self._deadlines.alive()

    def close(self, error: KafkaError) -> None:
        """Fail all records that are left."""
        for batch in self._deadlines.alive():
            self._fail(batch, error)
        for topic in self.accumulator.topics.values():
            topic.parked.clear()
        for queue in self._active:
            queue.batches.clear()
            queue.open = None
            queue.state = QueueState.EMPTY
        self._active.clear()
        self._lines.clear()
        self._is_refresh_wanted = False

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
                self._is_refresh_wanted = True
                self._timers.set(item, now + self._backoff(item.misses))
        actions: list[Action] = []
        if self.accumulator.new_topics:
            actions.append(UseTopics(tuple(self.accumulator.new_topics)))
            self.accumulator.new_topics.clear()
        for node_id, line in self._lines.items():
            while line and self._in_flight.get(node_id, 0) < self._max_in_flight:
                send = self._take(node_id, line)
                if send is not None:
                    actions.append(send)
        if self._is_refresh_wanted:
            self._is_refresh_wanted = False
            actions.append(RefreshMetadata(self.accumulator.snapshot.generation))
        if self.accumulator.has_freed_room:
            self.accumulator.has_freed_room = False
            actions.append(RoomFreed())
        return actions

    def next_wakeup(self) -> float | None:
        times = [time for time in (self._timers.next(), self._deadlines.next()) if time is not None]
        return min(times, default=None)

    def _take(self, node_id: int, line: deque[PartitionQueue]) -> Send | None:
        """One request of the heads of the queues in line, as many as fit."""
        batches: list[Batch] = []
        size = 0
        while line:
            queue = line[0]
            if queue.state is not QueueState.READY or queue.ready_at != node_id:
                line.popleft()
                continue
            batch = queue.batches[0]
            if batches and size + batch.size > self._max_request_size:
                break
            line.popleft()
            if batch is queue.open:
                queue.close_open()
            queue.batches.popleft()
            queue.in_flight = batch
            queue.state = QueueState.IN_FLIGHT
            queue.ready_at = None
            size += batch.size
            batches.append(batch)
        if not batches:
            return None
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        self._requests += 1
        return Send(node_id, self.accumulator.snapshot.generation, batches)

    # --- the state of a queue -----------------------------------------------------------------------------------------

    def _settle(self, queue: PartitionQueue, now: float) -> None:
        """The state of a queue follows from what it holds; this is the one place that decides it."""
        line, queue.ready_at = queue.ready_at, None
        if queue.in_flight is None and not queue.batches:
            self._active.pop(queue, None)
            queue.state = QueueState.EMPTY
            queue.due = None
            return
        self._active[queue] = None
        if queue.in_flight is not None:
            queue.state = QueueState.IN_FLIGHT
        elif queue.backoff_until > now:
            queue.state = QueueState.BACKING_OFF
            self._timers.set(queue, queue.backoff_until)
        else:
            self._settle_head(queue, queue.batches[0], line, now)

    def _settle_head(self, queue: PartitionQueue, head: Batch, line: int | None, now: float) -> None:
        lingers_until = head.created + self._linger
        if not head.is_closed and len(queue.batches) == 1 and lingers_until > now:
            queue.state = QueueState.LINGERING
            self._timers.set(queue, lingers_until)
        elif queue.leader is None:
            if queue.state is not QueueState.NO_LEADER or queue.due is None:
                queue.state = QueueState.NO_LEADER
                queue.misses += 1
                self._is_refresh_wanted = True
                self._timers.set(queue, now + self._backoff(queue.misses))
        else:
            queue.state = QueueState.READY
            queue.due = None
            queue.misses = 0
            node_id = queue.ready_at = queue.leader[0]
            if line != node_id:
                self._lines.setdefault(node_id, deque()).append(queue)

    # --- outcomes -----------------------------------------------------------------------------------------------------

    def _queue_of(self, batch: Batch) -> PartitionQueue:
        return self.accumulator.topics[batch.topic].queues[batch.partition]

    def _free(self, batch: Batch) -> PartitionQueue:
        queue = self._queue_of(batch)
        queue.in_flight = None
        return queue

    def _request_ended(self, send: Send) -> None:
        self._in_flight[send.node_id] -= 1
        self.wants_poll = True

    def _react_to_outcome(self, queue: PartitionQueue, batch: Batch, outcome: Outcome, send: Send, now: float) -> None:
        reaction = reaction_to_code(outcome.code)
        if reaction is Reaction.ACKNOWLEDGE:
            self._acknowledged += len(batch)
            self.accumulator.released(batch)
            batch.acknowledge(outcome.base_offset, outcome.log_append_time_ms)
            queue.failed_leader = None
            return
        snapshot, node_id = self.accumulator.snapshot, send.node_id
        error = produce_error(snapshot, node_id, batch, outcome.code, outcome.message)
        if outcome.record_errors and reaction is Reaction.FAIL:
            errors: dict[int, KafkaError] = {
                index: produce_error(snapshot, node_id, batch, outcome.code, text or outcome.message)
                for index, text in outcome.record_errors
            }
            self._fail(batch, error, errors)
        else:
            self._react(queue, batch, reaction, error, send, now)

    def _react(
        self, queue: PartitionQueue, batch: Batch, reaction: Reaction, error: KafkaError, send: Send, now: float
    ) -> None:
        """To anything but an acknowledgement."""
        if reaction is Reaction.SPLIT:
            self._split(queue, batch, error)
        elif reaction is Reaction.FAIL or (reaction is Reaction.RETRY_ONCE and is_repeated(error, batch.last_error)):
            self._fail(batch, error)
        else:
            self._retry(queue, batch, error, now)
            if reaction is Reaction.REFRESH_AND_RETRY:
                self._suspect_leader(queue, send, now)

    def _retry(self, queue: PartitionQueue, batch: Batch, error: KafkaError, now: float) -> None:
        batch.attempts += 1
        batch.last_error = error
        queue.batches.appendleft(batch)
        queue.backoff_until = now + self._backoff(batch.attempts)
        queue.failed_leader = None
        self._retries += 1

    def _suspect_leader(self, queue: PartitionQueue, send: Send, now: float) -> None:
        if queue.leader is not None and queue.leader[0] != send.node_id:
            queue.backoff_until = now  # metadata has named another one while the request was under way
            return
        queue.failed_leader = queue.leader
        if send.generation == self.accumulator.snapshot.generation:
            self._is_refresh_wanted = True

    def _split(self, queue: PartitionQueue, batch: Batch, error: KafkaError) -> None:
        """Send it again as two halves, in order; later batches of the queue are made no larger than these."""
        if len(batch) == 1:
            self._fail(batch, refused_as_too_large(batch, error))
            return
        halves = [Batch(batch.topic, batch.partition, batch.created, batch.deadline) for _ in range(2)]
        middle = len(batch) // 2
        routes = []
        for index in range(len(batch)):
            half = halves[index >= middle]
            routes.append((half, half.take(batch, index, batch.record_bytes(index))))
        for half in reversed(halves):
            half.is_closed = True
            half.attempts, half.last_error = batch.attempts, error
            self._deadlines.add(half)
            queue.batches.appendleft(half)
        queue.limit = min(queue.limit, max(half.size for half in halves))
        batch.forward(routes)

    def _fail(self, batch: Batch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None) -> None:
        self._failed += len(batch)
        self.accumulator.released(batch)
        batch.fail(error, record_errors)

    def _backoff(self, attempt: int) -> float:
        """Doubling from ``retry_backoff_ms`` to its maximum, 20 % more or less by chance."""
        delay = min(self._backoff_max, self._backoff_base * 2.0 ** min(attempt - 1, 30))
        return delay * (0.8 + 0.4 * self._chance())

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def _expire(self, now: float) -> None:
        for batch in self._deadlines.pop_due(now):
            topic = self.accumulator.topics[batch.topic]
            if batch.partition < 0:
                topic.parked.remove(batch)
                self._fail(batch, expired(self.accumulator.snapshot, batch, topic, None))
                continue
            queue = topic.queues[batch.partition]
            # One in flight ends now for those who wait; its partition stays taken until the request has ended too.
            if queue.in_flight is not batch:
                queue.batches.remove(batch)
                if queue.open is batch:
                    queue.close_open()
            self._fail(batch, expired(self.accumulator.snapshot, batch, topic, queue))
            self._settle(queue, now)
