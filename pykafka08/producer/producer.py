"""The producer that applications use: checks, back-pressure, and the calls that wait.

What happens to a record after it was enqueued is decided in ``machine`` and performed by ``sender``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import anyio
import anyio.lowlevel

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, ProducerConfig, build, check_timeout
from pykafka08.driver import TaskTree, clock, library_logger
from pykafka08.errors import (
    BufferFullError,
    ClosedError,
    KafkaError,
    RecordTypeError,
    RequestTimeoutError,
    SecurityError,
)
from pykafka08.errors.deadline import at_deadline
from pykafka08.group.metadata import OffsetSource
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.kafka_properties import PropertiesSource, built_from, guarded
from pykafka08.producer.actions import Counters
from pykafka08.producer.arrow import Columns
from pykafka08.producer.batch import RECORD_OVERHEAD, Batch, Span, headers_size
from pykafka08.producer.checks import as_bytes, as_headers, check_keys
from pykafka08.producer.columns import CHUNK, ColumnProducing, columns_of_records
from pykafka08.producer.delivery import Delivery, RecordMetadata, SentRecords, add_span, ended, wait_until_ended
from pykafka08.producer.health import ProducerHealth, producer_health
from pykafka08.producer.intake import Intake
from pykafka08.producer.partitioners import chooser_factory
from pykafka08.producer.request import encoding_of
from pykafka08.producer.room import Room
from pykafka08.producer.sender import Sender
from pykafka08.producer.sizes import measured
from pykafka08.producer.transactions.block import TransactionBlock, Transactions
from pykafka08.producer.transactions.handed_over import OpenTransaction
from pykafka08.producer.transactions.sending import machine_of
from pykafka08.producer.waits import metadata_of, wait_for_room, waiter_of
from pykafka08.records.record import NewRecord, TopicPartition
from pykafka08.security.settings import protect
from pykafka08.short_names import only_name

__all__ = ["Producer"]

log = library_logger("producer")

Bytes = bytes | bytearray | memoryview

TURN = 1024
"""Records after which ``ready`` lets others run."""
GRACE_S = 5.0
"""When the ``async with`` block is left by an exception, for records; for a transaction when it is closed."""


class Producer(ColumnProducing):
    """Writes records to topics: ``async with Producer(bootstrap_servers="host:9092") as producer``.

    Settings are those of :class:`pykafka08.config.ClientConfig` and :class:`pykafka08.config.ProducerConfig`, under
    Kafka's own names.  Records gather in batches per partition (``linger_ms``, ``batch_size``) and every record ends
    within ``delivery_timeout_ms``: acknowledged, or raised to whoever awaits it.  Order is kept within a partition.
    With a ``transactional_id`` records are written in :meth:`transaction` blocks, and nowhere else.
    Leaving the block delivers what is enqueued; left by an exception, it waits for no longer than five seconds.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str], **settings: Any) -> None:
        protect(settings)
        client, config = build({"bootstrap_servers": bootstrap_servers, **settings}, ClientConfig, ProducerConfig)
        self._config: ProducerConfig = config
        names = config.setting_names
        self._encoding = encoding_of(client, config)
        chance = random.Random()  # noqa: S311 - spreads records
        chooser = chooser_factory(config.partitioner, chance, config.batch_size)
        self._machine = machine_of(config, client, make_chooser=chooser, chance=random.random)
        self._transactions = Transactions(self._machine, config, self.flush, self._check_open, self._allow_records)
        self._accumulator = accumulator = self._machine.accumulator
        self._room = Room(config.buffer_memory, lambda: accumulator.buffered_bytes, names["buffer_memory"])
        self._client_config: ClientConfig = client
        self._intake = Intake(config, accumulator, self._room, self._check)
        if type(self).enqueue is Producer.enqueue:
            self.enqueue = self._intake.add  # type: ignore[method-assign]  # one call less for each record
        # No longer than a record may be: one that never fits is alone in its chunk, and those before it are taken.
        self._largest_chunk = self._intake.largest_record
        # Cutting a list costs more than its packing: one that fits well is taken whole.
        self._largest_list = max(self._largest_chunk, min(2 * self._largest_chunk, config.buffer_memory // 8))
        self._max_block = config.max_block_ms / 1000
        self._tasks = TaskTree()
        self._client: Client
        self._sender: Sender
        self._now: Callable[[], float]
        self._check_affinity: Callable[[], None] = self._tasks.check_affinity
        self._failure: KafkaError | None = None
        self._is_open = False
        self._yielded_at = 0

    @classmethod
    def from_properties(cls, properties: PropertiesSource, **settings: Any) -> Producer:
        """A producer with the settings of a properties file, or a mapping, by the names of Kafka's Java clients.

        ``settings`` override the file.  ConfigError for a property that cannot be honoured.
        """
        protect(settings)
        properties = guarded(properties)
        return built_from(cls, properties, settings, ProducerConfig)

    # --- life -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Producer:
        """NoBrokersError if no address of ``bootstrap_servers`` answers as Kafka.

        Producers that had the same ``transactional_id`` are fenced; UnsupportedVersionError for one below Kafka 0.11.
        """
        await self._start()
        return self

    async def _start(self) -> None:
        if self._is_open or self._failure is not None:
            raise ClosedError("a producer cannot be reused; create a new one")
        await self._tasks.__aenter__()
        try:
            self._client = Client(
                self._client_config,
                self._tasks,
                allow_auto_topic_creation=True,
                facts={"transactional_id": self._config.transactional_id},
            )
            self._log = log.bind(**self._client.facts)
            await self._client.__aenter__()
        except BaseException:
            await self._tasks.aclose()
            raise
        self._now = clock()
        self._sender = Sender(self._machine, self._client, self._room, self._encoding, self._now)
        assert self._tasks.affinity is not None
        self._check_affinity = self._tasks.affinity.check
        self._intake.belongs_to(self._tasks.affinity)
        self._intake.now, self._intake.wake = self._now, self._sender.wake_if_wanted
        self._tasks.start("producer", self._sender.run)
        self._is_open = self._intake.is_open = True
        self._tasks.on_failure(self._abort)
        try:
            await self._transactions.open(self._client, self._sender, self._now)
        except BaseException as error:
            await self.__aexit__(type(error), error, None)
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                await self.aclose()
            elif issubclass(kind, Exception):
                try:
                    await self.aclose(timeout=GRACE_S)
                except KafkaError as failure:  # the block's own exception is the one to raise
                    self._log.warning("producer.failed_on_close", cause=str(failure))
            elif self._is_open:
                await self._close()  # cancelled: nothing can be waited for
        finally:
            await self._tasks.aclose()

    async def aclose(self, timeout: float | None = None) -> None:
        """Deliver enqueued records, then close connections and background tasks.  Any task may call it.

        Records that are left after ``timeout`` seconds fail with ClosedError.

        Without a ``timeout`` the records' own deadlines end it.  A transaction that is open is aborted, and the end of
        its block raises ClosedError; one whose block ends is waited for, without a ``timeout`` for five seconds.
        """
        check_timeout(timeout)
        self._tasks.check_affinity()
        try:
            if self._is_open:
                await self._drain(timeout)
        finally:
            await self._tasks.aclose()

    async def _drain(self, timeout: float | None) -> None:
        try:
            with anyio.CancelScope(deadline=math.inf if timeout is None else self._now() + timeout):
                await self._transactions.drain(GRACE_S if timeout is None else timeout)
        finally:
            await self._close()

    async def _close(self) -> None:
        self._is_open = False
        if left := self._machine.counters.in_buffer:
            self._log.warning("producer.closed_with_records", records=left)
        self._abort(ClosedError("the producer was closed before the record was acknowledged"))
        self._transactions.fail(ClosedError("the producer is closed"))
        await self._client.aclose()

    def _abort(self, error: KafkaError) -> None:
        """Nothing can be delivered any more: end all that waits."""
        self._intake.is_open = False
        self._failure = self._failure or error
        self._sender.close(error)
        self._room.fail(error)

    @property
    def counters(self) -> Counters:
        """What became of all records so far."""
        return self._machine.counters

    def health(self) -> ProducerHealth:
        """How it is doing, from what is known here; cheap enough for every second.  ClosedError before it is open."""
        if not (self._is_open or self._failure):
            raise ClosedError("the producer is not open; use it with 'async with'")
        return producer_health(self._client.health(), self._machine, self._transactions.state, self._now())

    # --- producing --------------------------------------------------------------------------------------------------

    def enqueue(
        self,
        topic: str,
        value: Bytes | None,
        key: Bytes | None = None,
        partition: int | None = None,
        headers: Iterable[tuple[str, Bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Put a record into its batch and return at once; await the delivery for its outcome, or never.

        The log warns of each batch that failed, awaited or not.  ``value`` None deletes the key in a compacted topic;
        ``partition`` None leaves the choice to the partitioner; ``timestamp_ms`` None is now.  Headers need Kafka 0.11.
        BufferFullError while ``buffer_memory`` is used up: await :meth:`ready` and try again.  RecordTypeError,
        RecordTooLargeError: the record was not taken.  ConfigError: nor was one that the ``partitioner`` function
        refused; its delivery raises that where the topic was not known yet.
        """
        return self._intake.add(topic, value, key, partition, headers, timestamp_ms)

    async def send(
        self,
        topic: str,
        value: Bytes | None,
        key: Bytes | None = None,
        partition: int | None = None,
        headers: Iterable[tuple[str, Bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Write one record and wait until it is acknowledged; arguments and errors as :meth:`enqueue`.

        Waits for room up to ``max_block_ms``, then for the outcome up to ``delivery_timeout_ms``.  Cancelling it stops
        only the wait: an enqueued record is delivered all the same.
        """
        self._check_affinity()
        # Without headers and with room, which is nearly always so, the record needs no coroutine of its own.
        if headers or self._room.has_line:
            return await (await self._enqueue_soon(topic, value, key, partition, headers, timestamp_ms))
        try:
            delivery = self._intake.add(topic, value, key, partition, (), timestamp_ms)
        except BufferFullError:
            delivery = await self._enqueue_soon(topic, value, key, partition, (), timestamp_ms)
        batch, index, _ = delivery.place
        if not batch.is_done:
            await waiter_of(batch)  # here and not in the delivery: a coroutine less for each record
        return await delivery if batch.is_forwarded else metadata_of(batch, index)

    async def send_many(
        self,
        topic: str,
        records: Iterable[Bytes | NewRecord | None],
        keys: Sequence[Bytes | None] | None = None,
    ) -> SentRecords:
        """Write many records, values or :class:`NewRecord`, and wait until all of them have ended.

        ``keys`` are those of the records, where these are values: a list of as many.  RecordTypeError where it is not,
        before anything is taken if ``records`` has a length too.  Returns where each was written, in the given order;
        raises what the first that failed ended with, when all have ended.  Any other error of an argument is raised at
        once: the records before it are delivered.  Waits for room as :meth:`send` does, for some thousand records at a
        time.
        """
        self._check()
        if keys is not None:
            check_keys(keys, records, topic)
        spans: list[Span] = []
        is_checked = isinstance(records, (list, tuple))  # by check_keys
        try:
            source: Iterator[Any] = iter(records)
        except TypeError as error:
            raise RecordTypeError(
                f"topic {topic!r}: records are a list or other iterable: {error}", topic=topic
            ) from error
        done = 0
        while chunk := records[done : done + CHUNK] if type(records) is list else list(islice(source, CHUNK)):
            if keys is not None:
                names: Any = keys[done : done + len(chunk)]
                if len(names) != len(chunk) or (not is_checked and NewRecord in set(map(type, chunk))):
                    raise RecordTypeError(f"topic {topic!r}: keys are given for as many values", topic=topic)
                await self._enqueue_columns(topic, Columns(chunk, names if type(names) is list else list(names)), spans)
            elif (sizes := measured(chunk, None)) is not None:
                await self._enqueue_values(topic, chunk, sizes, spans)
            elif (columns := columns_of_records(chunk)) is not None:
                await self._enqueue_columns(topic, columns, spans)
            else:
                for record in chunk:
                    value, key, headers, timestamp_ms, partition = (
                        record if isinstance(record, NewRecord) else (record, None, (), None, None)
                    )
                    delivery = await self._enqueue_soon(topic, value, key, partition, headers, timestamp_ms)
                    add_span(spans, *delivery.place)
            done += len(chunk)
            await anyio.lowlevel.checkpoint()
        if keys is not None and len(keys) != done:
            raise RecordTypeError(f"topic {topic!r}: {len(keys)} keys are given for {done} values", topic=topic)
        return await ended(spans)

    async def _enqueue_soon(
        self,
        topic: str,
        value: Bytes | None,
        key: Bytes | None,
        partition: int | None,
        headers: Iterable[tuple[str, Bytes | None]],
        timestamp_ms: int | None,
    ) -> Delivery:
        """:meth:`enqueue`, when there is room and those who came before have theirs."""
        value = None if value is None else as_bytes(value, "value", topic)
        key = None if key is None else as_bytes(key, "key", topic)
        checked = as_headers(headers, topic) if headers else ()
        if not self._room.has_line:
            try:
                return self.enqueue(topic, value, key, partition, checked, timestamp_ms)
            except BufferFullError:
                pass  # wait, below
        size = RECORD_OVERHEAD + len(key or b"") + len(value or b"") + headers_size(checked)
        self._intake.saw(size, topic, partition)
        await self._wait_for_room(size, topic)
        return self.enqueue(topic, value, key, partition, checked, timestamp_ms)

    async def ready(self) -> None:
        """Return when there is room for a record; BufferFullError if there is none within ``max_block_ms``.

        In a loop around :meth:`enqueue` it also lets other tasks run, once in a thousand records.
        """
        enqueued = self._accumulator.enqueued
        if enqueued - self._yielded_at >= TURN:
            self._yielded_at = enqueued
            await anyio.lowlevel.checkpoint()
        if not self._intake.is_open or not self._room.is_free(self._intake.largest_seen):
            await self._wait_for_room(self._intake.largest_seen, None)

    async def _wait_for_room(self, size: int, topic: str | None) -> None:
        """Return when ``size`` bytes fit; the caller takes them before it awaits anything else."""
        self._check()
        if self._room.is_free(size):
            return
        now = self._now()
        self._machine.release_all(now)  # what lingers takes room that is wanted
        self._sender.wake()
        if not await wait_for_room(self._room, size, now + self._max_block):
            full = self._room.full(
                topic, None, f", for {self._max_block:g} s ({self._config.setting_names['max_block_ms']})"
            )
            raise at_deadline(full, self._refusal(self._machine.under_way()))

    def _refusal(self, batches: Iterable[Batch]) -> SecurityError | None:
        """The refusal of a broker that leads a partition of these batches."""
        metadata = self._client.metadata
        leaders = {metadata.leader(each.topic, each.partition) for each in batches}
        return self._client.refusal([each for each in leaders if each is not None] or None)

    async def flush(self, timeout: float | None = None) -> None:
        """Send what lingers, and return when every record enqueued before has ended.

        How each ended is told by its delivery, and by :attr:`counters`.  RequestTimeoutError after ``timeout`` seconds,
        or the SecurityError of a broker that refuses this producer: the records stay under way, and end by their own
        deadlines.
        """
        check_timeout(timeout)
        self._check_open()
        now = self._now()
        self._machine.release_all(now)
        pending = self._machine.under_way()
        self._sender.wake()
        with anyio.CancelScope(deadline=math.inf if timeout is None else now + timeout) as scope:
            for batch in pending:
                await wait_until_ended(batch)
        if scope.cancelled_caught:
            left = self._machine.counters.in_buffer
            text = f"{left} records were not acknowledged within {timeout:g} s; they are under way"
            topics = {batch.topic for batch in pending if not batch.is_done}
            late = RequestTimeoutError(text, topic=only_name(topics))
            raise at_deadline(late, self._refusal(batch for batch in pending if not batch.is_done))
        self._check_open()

    # --- transactions -----------------------------------------------------------------------------------------------

    def transaction(self) -> TransactionBlock:
        """A block that is a transaction, one at a time: its end commits; an exception, also a cancellation, aborts.

        TransactionAbortedError where another cause aborts it: the next block can begin.  ProducerFencedError and others
        end the producer.  RequestTimeoutError after ``max_block_ms``: the next block waits for the outcome.
        """
        return self._transactions.block()

    async def send_offsets(
        self, source: OffsetSource | Mapping[TopicPartition, int | OffsetAndMetadata], group_id: str | None = None
    ) -> None:
        """Commit, with the transaction, how far a consumer has read: all that it has handed out so far.

        The consumer is a member of a group, with ``enable_auto_commit=False``; TransactionAbortedError once it is not.
        UnsupportedVersionError before Kafka 2.5, which could not fence it: there it reads assigned partitions.
        A mapping of offsets needs a ``group_id``, and is taken whoever the group's members are.
        """
        await self._transactions.send_offsets(source, group_id)

    async def hand_over_transaction(self) -> OpenTransaction:
        """Wait until all of the transaction is acknowledged, and leave it open beyond its block and this producer.

        Whoever has the answer ends it, in another process too (``producer.transactions.handed_over``), within
        ``transaction_timeout_ms``.  This producer can only be closed then.
        """
        return await self._transactions.hand_over()

    def _allow_records(self) -> None:
        self._intake.is_open = self._is_open and self._failure is None and self._transactions.accepts
        if not self._intake.is_open and self._room.has_line:
            self._room.fail(self._transactions.refusal())  # whoever waits for room must not get it in the next block

    # --- checks -----------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        self._tasks.check_affinity()
        if isinstance(self._failure, ClosedError):
            raise ClosedError("the producer is closed")
        if not self._is_open or self._failure is not None:
            raise self._failure or ClosedError("the producer is not open; use it with 'async with'")

    def _check(self) -> None:
        self._tasks.check_affinity()
        if not self._intake.is_open:
            self._check_open()
            raise self._transactions.refusal()
