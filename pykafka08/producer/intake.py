"""The way of a single record into its batch: what ``enqueue`` does, and nothing is done more often.

Checks of what a record is made of stand in ``checks``, which batch it belongs to is found by ``accumulator``; here the
commonest case is written out before all others.  The arguments are the application's, and of any type until checked.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import time_ns
from typing import Any

from pykafka08.affinity import NO_THREAD, Affinity
from pykafka08.config import ProducerConfig
from pykafka08.producer.accumulator import Accumulator
from pykafka08.producer.batch import BATCH_OVERHEAD, RECORD_OVERHEAD, Batch, headers_size
from pykafka08.producer.checks import as_bytes, as_headers, check_partition, check_timestamp, check_topic, too_large
from pykafka08.producer.handle import Delivery
from pykafka08.producer.room import Room
from pykafka08.records.record import Headers

__all__ = ["Intake"]


class Intake:
    """``refuse()`` raises why no records are taken."""

    def __init__(
        self, config: ProducerConfig, accumulator: Accumulator, room: Room, refuse: Callable[[], None]
    ) -> None:
        self._affinity: Affinity | None = None
        self._thread_id = NO_THREAD
        """The id of the thread whose records are accepted; ``NO_THREAD`` while none are."""
        self.largest_seen = 1
        """Size of the largest record that was offered: what ``ready`` waits for."""
        self.now: Callable[[], float]
        """The event loop's clock."""
        self.wake: Callable[[], None]
        """Called when the machine may have to be polled."""
        self._config = config
        self._accumulator = accumulator
        self._room = room
        self._refuse = refuse
        self.largest_record = min(config.max_request_size - BATCH_OVERHEAD, config.buffer_memory)
        """Size of the largest record that ever fits."""
        # The records of a millisecond share its number: one of 32 bytes for each would be a fifth of what is held.
        self._this_ms: Any = 0  # an object, which compiled code does not make anew for each record
        self._next_ms = 0.0

    @property
    def is_open(self) -> bool:
        """True while records are accepted: the producer is open and, if transactional, in a transaction."""
        return self._thread_id != NO_THREAD

    @is_open.setter
    def is_open(self, value: bool) -> None:
        self._thread_id = self._affinity.thread if value and self._affinity is not None else NO_THREAD

    def belongs_to(self, affinity: Affinity) -> None:
        """Accept records only in the thread, event loop and process in which the client was opened."""
        self._affinity = affinity
        affinity.on_fork(self._forked)

    def _forked(self) -> None:
        self._thread_id = NO_THREAD

    def add(
        self,
        topic: Any,
        value: Any,
        key: Any = None,
        partition: Any = None,
        headers: Any = (),
        timestamp_ms: Any = None,
    ) -> Delivery:
        """See :meth:`pykafka08.producer.producer.Producer.enqueue`."""
        # A known topic, bytes, no headers, the time is now, an open batch with room and without headers: the rest goes
        # the long way. So does a partition that is no int: 1.0 and True would find the batch of partition 1.
        if type(value) is bytes and timestamp_ms is None and not headers and type(topic) is str:
            accumulator = self._accumulator
            queues = accumulator.topics.get(topic)
            if queues is not None and get_ident() == self._thread_id:
                size = RECORD_OVERHEAD + len(value)
                queue = queues.sticky
                if key is not None:
                    queue = None
                    if type(key) is bytes:
                        size += len(key)
                        if partition is None:
                            queue = queues.by_key.get(key)
                        elif type(partition) is int:
                            queue = queues.queues.get(partition)
                elif partition is not None:
                    queue = queues.queues.get(partition) if type(partition) is int else None
                batch = queue.open if queue is not None else None
                if (
                    queue is not None
                    and batch is not None
                    and batch.headers is None
                    and batch.size + size <= queue.limit
                    and size <= self.largest_seen
                    and accumulator.buffered_bytes + size <= self._room.bound
                    and (now := self.now()) <= batch.closes_at
                ):
                    if now >= self._next_ms:
                        self._tick(now)
                    index = len(batch.values)
                    batch.values.append(value)
                    batch.timestamps.append(self._this_ms)
                    if batch.keys is not None:
                        batch.keys.append(key)
                    elif key is not None:
                        batch.append_key(key)
                    batch.size += size
                    accumulator.buffered_bytes += size
                    accumulator.enqueued += 1
                    return Delivery(batch, index)
        return self._add_any(topic, value, key, partition, headers, timestamp_ms)

    def _tick(self, now: float) -> None:
        """Another millisecond has begun; when it ends, by the loop's clock."""
        now_ns = time_ns()
        self._this_ms = now_ns // 1_000_000
        self._next_ms = now + (1_000_000 - now_ns % 1_000_000) / 1e9

    def _add_any(self, topic: Any, value: Any, key: Any, partition: Any, headers: Any, timestamp_ms: Any) -> Delivery:
        """The long way, on which everything is checked."""
        self.check_topic(topic)
        size = RECORD_OVERHEAD
        content = None if value is None else as_bytes(value, "value", topic)
        if content is not None:
            size += len(content)
        name = None if key is None else as_bytes(key, "key", topic)
        if name is not None:
            size += len(name)
        checked: Headers = ()
        if headers:
            checked = as_headers(headers, topic)
            size += headers_size(checked)
        if partition is not None:
            check_partition(partition, topic)
        now = self.now()
        if timestamp_ms is not None:
            check_timestamp(timestamp_ms, topic)
        else:
            if now >= self._next_ms:
                self._tick(now)
            timestamp_ms = self._this_ms
        self.saw(size, topic, partition)
        accumulator = self._accumulator
        if accumulator.buffered_bytes + size > self._room.bound:
            raise self._room.full(topic, partition)
        batch: Batch = accumulator.record_added(topic, content, name, checked, partition, timestamp_ms, size, now)
        self.wake()
        return Delivery(batch, len(batch.timestamps) - 1)

    def check_topic(self, topic: Any) -> None:
        """Raise unless records of it can be taken."""
        if get_ident() != self._thread_id:
            self._refuse()
        elif self._affinity is not None:
            self._affinity.check()  # another event loop of the same thread
        if not isinstance(topic, str) or topic not in self._accumulator.topics:
            check_topic(topic)

    def saw(self, size: int, topic: Any, partition: Any) -> None:
        """A record of this size is offered; RecordTooLargeError if it never fits."""
        if size > self.largest_seen:
            if size > self.largest_record:
                raise too_large(size, self._config, topic, partition)
            self.largest_seen = size
