"""Where records come in: each is put into the open batch of its partition, or parked until its topic has metadata.

Pure.  What becomes of a batch afterwards is decided in ``machine``, which is told of each new batch (:class:`Sending`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ProducerConfig
from pykafka08.errors import KafkaError, broker_error
from pykafka08.producer.batch import BATCH_OVERHEAD, Batch, Span
from pykafka08.producer.failures import is_lasting, no_such_partition
from pykafka08.producer.partitioners import Chooser
from pykafka08.producer.queues import OpenBatches, PartitionQueue, TopicQueues, set_leader
from pykafka08.producer.sizes import bounds_of
from pykafka08.records.record import Headers

__all__ = ["Accumulator", "Sending"]

NEW_PARTITION_S = 1.0
"""How long a partition that metadata does not have is looked for: it may be new, and that broker behind."""

OPEN_BYTES = 1 / 8
"""Open batches may come to this part of ``buffer_memory``: their records are objects, of up to twice the bytes."""

SMALLEST_LIMIT = 4096
"""Batches are not closed for that before they have so many bytes."""

KEYS_KNOWN = 16_384
"""Keys of a topic whose partitions are remembered."""


class Sending(Protocol):
    """What the accumulator tells the machine."""

    def batch_opened(self, batch: Batch) -> None:
        """A batch has come to be, and has a deadline."""

    def queue_changed(self, queue: PartitionQueue, now: float) -> None:
        """Batches of the queue were opened or closed."""

    def metadata_missing(self, topic: TopicQueues, now: float, *, is_new: bool) -> None:
        """Records of the topic were parked; ``is_new`` False: again, since new metadata did not serve either."""

    def batch_failed(self, batch: Batch, error: KafkaError) -> None:
        """Records that cannot go anywhere."""


class Accumulator:
    """Topics, queues and open batches."""

    def __init__(self, config: ProducerConfig, make_chooser: Callable[[], Chooser], sending: Sending) -> None:
        self._delivery_timeout = config.delivery_timeout_ms / 1000
        self._metadata_timeout = min(config.max_block_ms, config.delivery_timeout_ms) / 1000
        self._batch_limit = min(config.batch_size, config.max_request_size)
        self._opened = OpenBatches()
        self._open_bytes = int(config.buffer_memory * OPEN_BYTES)
        self._make_chooser = make_chooser
        self._leaves_idle = config.transactional_id is None
        """True if keyless records move on from a partition that has nothing to send; in a transaction each further
        partition may cost a request."""
        self._sending = sending
        self.snapshot = Snapshot(generation=0)
        self.topics: dict[str, TopicQueues] = {}
        self.new_topics: list[str] = []
        """Topics that nobody has asked metadata for yet."""
        self.enqueued = 0
        self.buffered_bytes = 0
        self.packs_rows = True  # no broker wants a format that rows cannot be packed for, as far as is known
        self.has_freed_room = False

    # --- records come in ----------------------------------------------------------------------------------------------

    def record_added(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp_ms: Any,
        size: int,
        now: float,
    ) -> Batch:
        """Take a record of at most ``size`` encoded bytes; it is the last of the batch that comes back.

        ``timestamp_ms`` is an int that many records share as an object: as such, compiled code does not copy it.
        """
        queues = self.topics.get(topic)
        if queues is None:
            queues = self._add_topic(topic)
        if partition is None:
            queue = queues.sticky if key is None else queues.by_key.get(key)
        else:
            queue = queues.queues.get(partition)
        batch = queue.open if queue is not None else None
        if queue is None or batch is None or batch.size + size > queue.limit or now > batch.closes_at:
            batch = self._batch_for(queues, key, partition, size, now)
        # Batch.append, written out: every single record passes here.
        batch.values.append(value)
        batch.timestamps.append(timestamp_ms)
        if batch.keys is not None:
            batch.keys.append(key)
        elif key is not None:
            batch.append_key(key)
        if headers or batch.headers is not None:
            batch.append_headers(headers)
        batch.size += size
        self.buffered_bytes += size
        self.enqueued += 1
        return batch

    def values_added(
        self, topic: str, values: Sequence[bytes | None], timestamp_ms: int, now: float, size: int = 0
    ) -> list[Span]:
        """Take values without keys, in order; ``size`` is the bound of the encoded bytes of all, where it is known."""
        queues = self.queues_of(topic)
        sticky = queues.sticky
        batch = sticky.open if sticky is not None else None
        if size and sticky is not None and batch is not None and sticky.has_room(batch, size, now):
            first = len(batch.values)
            batch.extend(values, timestamp_ms, size)
            self.buffered_bytes += size
            self.enqueued += len(values)
            return [(batch, first, len(values))]
        bounds = bounds_of(values, None, None)
        spans = []
        start = 0
        while start < len(values):
            first_size = bounds[start + 1] - bounds[start]
            sticky = queues.sticky
            batch = sticky.open if sticky is not None else None
            if sticky is None or batch is None or not sticky.has_room(batch, first_size, now):
                batch = self._batch_for(queues, None, None, first_size, now)
            end = start + 1
            sticky = queues.sticky
            if sticky is not None and batch is sticky.open:
                end = max(end, bisect_right(bounds, bounds[start] + sticky.limit - batch.size, start + 1) - 1)
            spans.append((batch, len(batch), end - start))
            batch.extend(values[start:end], timestamp_ms, bounds[end] - bounds[start])
            # Counted as they are taken: the application's partitioner may raise at any of them.
            self.buffered_bytes += bounds[end] - bounds[start]
            self.enqueued += end - start
            start = end
        return spans

    def columns_added(
        self,
        topic: str,
        partition: int,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps: Sequence[int],
        size: int,
        now: float,
    ) -> list[Span]:
        """Take records for a partition that is known; ``size`` is the bound of the encoded bytes of all."""
        queues = self.queues_of(topic)
        if partition not in queues.partitions:
            raise no_such_partition(queues, partition)
        queue = self.queue(queues, partition)
        spans = []
        batch = queue.open
        if batch is not None and queue.has_room(batch, size, now):
            spans.append((batch, len(batch.values), len(values)))
            batch.extend_columns(values, keys, headers, timestamps, size)
        else:
            bounds = bounds_of(values, keys, headers)
            start = 0
            while start < len(values):
                batch = queue.open
                first_size = bounds[start + 1] - bounds[start]
                if batch is None or not queue.has_room(batch, first_size, now):
                    batch = self.open_batch(queue, first_size, now, now)
                end = start + 1
                if batch is queue.open:
                    end = max(end, bisect_right(bounds, bounds[start] + queue.limit - batch.size, start + 1) - 1)
                spans.append((batch, len(batch), end - start))
                part = slice(start, end)
                batch.extend_columns(
                    values[part],
                    None if keys is None else keys[part],
                    None if headers is None else headers[part],
                    timestamps[part],
                    bounds[end] - bounds[start],
                )
                start = end
        self.buffered_bytes += size
        self.enqueued += len(values)
        return spans

    def keyed_added(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes],
        headers: Sequence[Headers] | None,
        timestamp_ms: int,
        sizes: Sequence[int],
        now: float,
    ) -> list[Span]:
        """Take records whose keys, none of them empty, choose their partitions; ``sizes`` are their encoded bytes.

        The topic has partitions, and a partitioner that keeps keys.  The runs are in the order of the records.
        """
        queues = self.topics[topic]
        known = queues.by_key
        members: dict[int, list[int]] = {}
        for row, key in enumerate(keys):
            queue = known.get(key) or self._choose(queues, key, 0, now)
            rows = members.get(queue.partition)
            if rows is None:
                members[queue.partition] = [row]
            else:
                rows.append(row)
        stamps = [timestamp_ms] * len(values)
        places: list[Span | None] = [None] * len(values)
        for partition, rows in members.items():
            spans = self.columns_added(
                topic,
                partition,
                [values[row] for row in rows],
                [keys[row] for row in rows],
                None if headers is None else [headers[row] for row in rows],
                stamps[: len(rows)],
                sum([sizes[row] for row in rows]),
                now,
            )
            if len(members) == 1:
                return spans
            start = 0
            for batch, first, count in spans:
                for index in range(count):
                    places[rows[start + index]] = (batch, first + index, 1)
                start += count
        return cast("list[Span]", places)

    def released(self, batch: Batch) -> None:
        """The records of ``batch`` no longer take room."""
        self.buffered_bytes -= batch.size - BATCH_OVERHEAD
        self.has_freed_room = True

    def queues_of(self, topic: str) -> TopicQueues:
        return self.topics.get(topic) or self._add_topic(topic)

    # --- which batch --------------------------------------------------------------------------------------------------

    def _add_topic(self, name: str) -> TopicQueues:
        topic = self.topics[name] = TopicQueues(name, self._make_chooser(), self._opened)
        topic.update(self.snapshot)
        self.new_topics.append(name)
        return topic

    def _batch_for(self, topic: TopicQueues, key: bytes | None, partition: int | None, size: int, now: float) -> Batch:
        """The open batch that the next record goes into, made if need be."""
        if not topic.partitions or (partition is not None and partition not in topic.partitions):
            queue = topic.queues.get(partition) if partition is not None else None
            if queue is not None:  # metadata of a broker that is behind: what comes later must not get ahead
                queue.close_open()
                self._sending.queue_changed(queue, now)
            return self._parked_batch(topic, partition, now)
        queue = self._choose(topic, key, size, now) if partition is None else self.queue(topic, partition)
        batch = queue.open
        if batch is None or batch.size + size > queue.limit or now > batch.closes_at:
            batch = self.open_batch(queue, size, now, now)
        return batch

    def _choose(self, topic: TopicQueues, key: bytes | None, size: int, now: float) -> PartitionQueue:
        if key is None:
            return self.queue_without_key(topic, size, now)
        queue = topic.by_key.get(key)
        if queue is None:
            queue = self.queue(topic, topic.chooser.choose(key, topic, now))
            if key and topic.chooser.keeps_keys:
                if len(topic.by_key) >= KEYS_KNOWN:
                    topic.by_key.clear()
                topic.by_key[key] = queue
        return queue

    def queue_without_key(self, topic: TopicQueues, size: int, now: float) -> PartitionQueue:
        stickiness, sticky = topic.chooser.stickiness, topic.sticky
        if sticky is not None:
            # Another partition is chosen only at the end of a batch, so that no batch is cut short.
            if sticky.open is not None or sticky.open_rows is not None:
                self._close_full(sticky)
                self._sending.queue_changed(sticky, now)
            # At a low rate all earlier records are acknowledged by now: staying would not fill batches.
            stays = bool(sticky.batches) or not self._leaves_idle
            if stays and sticky.closed_bytes - topic.sticky_since + BATCH_OVERHEAD + size <= stickiness:
                return sticky
        queue = self.queue(topic, topic.chooser.choose(None, topic, now))
        if stickiness:
            topic.sticky, topic.sticky_since = queue, queue.closed_bytes
        return queue

    def queue(self, topic: TopicQueues, partition: int) -> PartitionQueue:
        queue = topic.queues.get(partition)
        if queue is None:
            queue = topic.queues[partition] = PartitionQueue(topic, partition, self._batch_limit)
            set_leader(queue, self.snapshot)
        return queue

    def _close_full(self, queue: PartitionQueue) -> None:
        """The next record goes into another batch."""
        batch = queue.open
        queue.close_open()
        if batch is not None and self.packs_rows:
            batch.pack()

    def open_batch(self, queue: PartitionQueue, size: int, created: float, now: float) -> Batch:
        self._close_full(queue)
        share = max(SMALLEST_LIMIT, self._open_bytes // (self._opened.count + 1))
        queue.limit = min(queue.largest, share)
        batch = Batch(queue.topic.name, queue.partition, created, created + self._delivery_timeout)
        queue.batches.append(batch)
        if batch.size + size < queue.limit:
            queue.open = batch
            self._opened.count += 1
        else:
            batch.is_closed = True
            queue.closed_bytes += batch.size + size
        self._sending.batch_opened(batch)
        self._sending.queue_changed(queue, now)
        return batch

    def close_batches(self, queues: Iterable[PartitionQueue]) -> None:
        """Let none linger: neither the open batches of these queues nor what waits for metadata."""
        for queue in queues:
            if queue.batches and queue.batches[0] is queue.open:
                queue.close_open()  # it is sent next, and packed then
            else:
                self._close_full(queue)
        for topic in self.topics.values():
            for batch in topic.parked:
                batch.is_closed = True

    # --- records that wait for metadata -------------------------------------------------------------------------------

    def _parked_batch(self, topic: TopicQueues, partition: int | None, now: float) -> Batch:
        batch = topic.parked[-1] if topic.parked else None
        if batch is None or batch.is_closed or now > batch.closes_at:
            batch = Batch(topic.name, -1, now, now + self._metadata_timeout)
            batch.chosen = []
            topic.parked.append(batch)
            self._sending.batch_opened(batch)
            self._sending.metadata_missing(topic, now, is_new=True)
        assert batch.chosen is not None
        batch.chosen.append(partition)
        return batch

    def metadata_changed(self, snapshot: Snapshot, now: float) -> None:
        """Route what was parked, or fail it where the cluster says that it never will have a place."""
        self.snapshot = snapshot
        for topic in self.topics.values():
            topic.update(snapshot)
            if topic.parked:
                self._route_parked(topic, now)

    def _route_parked(self, topic: TopicQueues, now: float) -> None:
        if topic.partitions:
            parked, topic.parked = topic.parked, []
            for batch in parked:
                is_hurried = batch.is_closed
                batch.forward([self._route(topic, batch, index, now) for index in range(len(batch))])
                if is_hurried:
                    self._close_batches(topic, batch.forwarded_to(), now)
            if not topic.parked:
                topic.misses = 0
        elif is_lasting(topic.error):
            self._fail_parked(topic, broker_error(topic.error, api="Metadata", topic=topic.name, needed="WRITE"))

    def _fail_parked(self, topic: TopicQueues, error: KafkaError) -> None:
        parked, topic.parked = topic.parked, []
        for batch in parked:
            self._sending.batch_failed(batch, error)

    def topic_refused(self, name: str, error: KafkaError) -> None:
        """Fail the topic's records, since the cluster does not create it; ignored if the topic exists by now."""
        topic = self.topics[name]
        if not topic.partitions:
            topic.check_at = 0.0  # later records cause another check
            self._fail_parked(topic, error)

    def _close_batches(self, topic: TopicQueues, batches: list[Batch], now: float) -> None:
        for batch in batches:
            queue = topic.queues.get(batch.partition)
            if queue is None:
                batch.is_closed = True
            elif queue.open is batch:
                queue.close_open()
                self._sending.queue_changed(queue, now)

    def _route(self, topic: TopicQueues, parked: Batch, index: int, now: float) -> tuple[Batch, int]:
        assert parked.chosen is not None
        partition, key = parked.chosen[index], parked.keys[index] if parked.keys is not None else None
        size = parked.record_bytes(index)
        try:
            if partition is None:
                queue = self._choose_parked(topic, key, size, now)
            elif partition in topic.partitions:
                queue = self.queue(topic, partition)
            elif now < parked.created + NEW_PARTITION_S:
                again = self._parked_again(topic, parked, partition, now)
                return again, again.take(parked, index, size)
            else:
                raise no_such_partition(topic, partition)
        except KafkaError as error:
            refused = Batch(topic.name, -1 if partition is None else partition, parked.created, parked.deadline)
            refused.take(parked, index, size)
            self._sending.batch_failed(refused, error)
            return refused, 0
        batch = queue.open
        if batch is None or batch.size + size > queue.limit:
            batch = self.open_batch(queue, size, parked.created, now)
        return batch, batch.take(parked, index, size)

    def _parked_again(self, topic: TopicQueues, parked: Batch, partition: int, now: float) -> Batch:
        batch = topic.parked[-1] if topic.parked else None
        if batch is None or batch.created != parked.created:
            batch = Batch(topic.name, -1, parked.created, parked.deadline)
            batch.chosen = []
            topic.parked.append(batch)
            self._sending.batch_opened(batch)
            self._sending.metadata_missing(topic, now, is_new=False)
        assert batch.chosen is not None
        batch.chosen.append(partition)
        return batch

    def _choose_parked(self, topic: TopicQueues, key: bytes | None, size: int, now: float) -> PartitionQueue:
        sticky = topic.sticky if key is None else None
        if sticky is not None and sticky.open is not None and sticky.open.size + size <= sticky.limit:
            return sticky
        return self._choose(topic, key, size, now)
