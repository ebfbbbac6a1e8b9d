"""The consumer as applications use it: records and batches out of topics or assigned partitions, alone or in a group.

What is fetched when is decided in ``machine`` and done in ``fetcher``; records are taken out in ``reader``; positions
and ends of logs are in ``positions``, commits in ``committing``, the group's side in ``member``.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from pykafka08.cluster.client import Client
from pykafka08.config import ConsumerConfig, check_timeout
from pykafka08.consumer.batches import Batches, Tables
from pykafka08.consumer.checks import check_count, check_listener, check_topic, checked
from pykafka08.consumer.committing import Committing
from pykafka08.consumer.cursor import Records
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.health import ConsumerHealth, consumer_health
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.member import CLOSE_SECONDS, LEAVE_PATIENCE, ConsumerMember, Parts
from pykafka08.consumer.processing import Handler, Processing, schedule_of
from pykafka08.consumer.reader import Reader
from pykafka08.consumer.settings import consumer_settings
from pykafka08.consumer.topic_rights import TopicRights
from pykafka08.consumer.topics import PatternTopics
from pykafka08.consumer.trouble import Trouble
from pykafka08.driver import TaskTree, current_time
from pykafka08.errors import AuthorizationError, ClosedError, ConfigError, KafkaError, RequestTimeoutError
from pykafka08.errors.deadline import at_deadline
from pykafka08.group.coordinator import RebalanceListener
from pykafka08.group.pattern import SubscriptionPattern
from pykafka08.group.settings import GroupConfig
from pykafka08.kafka_properties import PropertiesSource, built_from, guarded
from pykafka08.records.batch_records import is_prepared, prepare
from pykafka08.records.record import Record, TopicPartition
from pykafka08.security.settings import protect
from pykafka08.short_names import only_name

__all__ = ["Consumer"]


class Consumer(Committing):
    """Reads records.

    ::

        async with Consumer("flights", bootstrap_servers="localhost:9092", group_id="planes") as consumer:
            async for record in consumer:
                print(record.offset, record.value)

    With topics, or a ``pattern`` that their whole names match, all their partitions are read, also those added later;
    a SubscriptionPattern is matched by the broker.
    Without, :meth:`assign` says what to read.  ``settings`` are those of :class:`ConsumerConfig`, :class:`ClientConfig`
    and :class:`GroupConfig`.  Entering the block connects (NoBrokersError), finds the topics (UnknownTopicError) and
    the positions to start at.  One task at a time reads: a second one gets ConcurrentReadError while the first waits.

    With a ``group_id`` the consumers of that group share the partitions of their topics, each reads on where the group
    has committed, and what is *finished* is committed every ``auto_commit_interval_ms``, before partitions go to
    others, and at the end.  A record is finished when the next one is asked for, or by :meth:`acknowledge`: the last
    one before a ``break`` is not.  ``listener`` hears of partitions that come and go.  A consumer that asks for no
    record in ``max_poll_interval_ms`` leaves its group; its next call raises PollIntervalExceededError, and the one
    after that joins again.

    While no broker can be reached, reading waits and tries again; give a ``timeout``, or cancel, to bound it.  What one
    partition suffers is raised at that point of its records, and the others go on: after an error the same call, or the
    same ``async for``, can be made again.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Iterable[str] = (),
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        listener: RebalanceListener | None = None,
        **settings: Any,
    ) -> None:
        protect(settings)
        if any(isinstance(topic, Mapping) for topic in topics):
            raise ConfigError(
                "a mapping is not a topic: give settings as keyword arguments, or a mapping by Kafka's names to "
                "from_properties(...)"
            )
        for topic in topics:
            if not isinstance(topic, SubscriptionPattern):
                check_topic(topic)
        if topics and pattern is not None:
            raise ConfigError("give topics or a pattern, not both")
        settings["bootstrap_servers"] = bootstrap_servers
        self._client_config, self._config, self._group_config = consumer_settings(settings)
        if listener is not None and self._group_config is None:
            raise ConfigError("a listener hears of a group's partitions: give a group_id too")
        if listener is not None:
            check_listener(listener)
        is_brokers = any(isinstance(each, SubscriptionPattern) for each in (pattern, *topics))
        if is_brokers and (self._group_config is None or not self._group_config.prefers_new_protocol):
            raise ConfigError("a SubscriptionPattern needs a group_id and group_protocol='consumer'")
        self._topics = (pattern,) if isinstance(pattern, SubscriptionPattern) else tuple(dict.fromkeys(topics))
        self._pattern = PatternTopics(pattern) if pattern is not None and not is_brokers else None
        self._listener = listener
        self._machine = ConsumerMachine(self._config, self._client_config, random.random)
        self._assignment = self._machine.assignment
        self._reader = Reader(self._machine)
        is_subscribed = bool(topics) or pattern is not None
        self._reader.has_source = lambda: is_subscribed or bool(self._assignment.states)
        self._client: Client | None = None
        self._member: ConsumerMember | None = None
        self._rights: TopicRights | None = None
        self._tasks = TaskTree()

    @classmethod
    def from_properties(cls, properties: PropertiesSource, *topics: str, **settings: Any) -> Consumer:
        """A consumer with the settings of a properties file, or a mapping, by the names of Kafka's Java clients.

        ``settings`` are those of the constructor, and override the file.  ConfigError for a property
        that cannot be honoured.
        """
        protect(settings)
        properties = guarded(properties)
        return built_from(partial(cls, *topics), properties, settings, ConsumerConfig, GroupConfig)

    # Life

    async def __aenter__(self) -> Consumer:
        await self._start()
        return self

    async def _start(self) -> None:
        if self._client is not None:
            raise ClosedError("a consumer cannot be reused; create a new one")
        client = self._client = Client(
            self._client_config, self._tasks, allow_auto_topic_creation=False, facts={"group_id": self._group_id}
        )
        await self._tasks.__aenter__()
        try:
            if not is_prepared():
                # Now, rather than in the middle of a stream that first has a large batch after hours.
                await anyio.to_thread.run_sync(prepare)
            await client.__aenter__()
            fetcher = self._reader.fetcher = Fetcher(client, self._machine, self._config)
            fetcher.on_start_anew(self._reader.forget)
            fetcher.on_cut_off(self._reader.cut)
            if self._group_config is not None:
                parts = Parts(client, self._config, self._group_config, self._assignment, self._reader, fetcher)
                self._member = ConsumerMember(parts, self._listener)
            if self._topics:
                self._assignment.count_partitions(self._named_topics)
                client.on_metadata(self._assignment.look_for_topics)  # before the fetcher uses the metadata
                await self._wait_for_topics(client)
                client.off_metadata(self._assignment.look_for_topics)
            self._use_topics()
            fetcher.start()
            if self._member is not None:
                self._member.start()
            self._rights = TopicRights(
                client,
                self._assignment,
                self._named_topics,
                on_error=self._refused,
                on_change=self._rights_changed,
            )
            self._rights.start()
            await self._subscribe(client)
        except BaseException:
            await self.__aexit__()
            raise

    @property
    def _group_id(self) -> str | None:
        return None if self._group_config is None else self._group_config.group_id

    @property
    def _named_topics(self) -> list[str]:
        return [topic for topic in self._topics if not isinstance(topic, SubscriptionPattern)]

    async def _wait_for_topics(self, client: Client) -> None:
        """Wait for those that the user may see; AuthorizationError if there are none."""
        wanted = self._named_topics
        while refused := await self._first_refusal(client, wanted):
            wanted = [topic for topic in wanted if topic != refused.topic]
            if not wanted:
                raise refused

    async def _first_refusal(self, client: Client, topics: list[str]) -> AuthorizationError | None:
        try:
            await client.wait_for_topics(topics, needed="READ")
        except AuthorizationError as error:
            return error
        return None

    def _refused(self, error: KafkaError) -> None:
        self._reader.tell(error)
        if self._reader.fetcher is not None:
            self._reader.fetcher.wake_readers()

    def _rights_changed(self) -> None:
        """A group's members may not name hidden topics in the new protocol."""
        if self._member is not None and self._member.is_subscribed and self._readable_topics:
            self._member.subscribe(self._readable_topics)

    @property
    def _readable_topics(self) -> tuple[str, ...]:
        hidden = frozenset() if self._rights is None else self._rights.hidden
        return tuple(topic for topic in self._topics if topic not in hidden)

    async def _subscribe(self, client: Client) -> None:
        """Begin to read the topics, and wait for positions, so that what is produced from now on is read."""
        subscribe = self._member.subscribe if self._member is not None else self._assignment.subscribe
        if self._pattern is not None:
            client.use_all_topics()
            may_be_none = self._member is None
            self._pattern.follow(client, subscribe, self._assignment.topics_came, may_be_none=may_be_none)
            await client.refresh()
        if self._topics:
            subscribe(self._topics if self._member is None else self._readable_topics)
        if not self._topics and (self._pattern is None or not self._pattern.names):
            return
        timeout = self._client_config.default_api_timeout_ms / 1000
        if self._member is not None:
            await self._member.wait_settled(timeout=timeout)
            return
        self._pump()
        with anyio.move_on_after(timeout):
            while not self._assignment.is_settled():
                await self._reader.open_fetcher().news

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self, *, commit: bool = True, timeout: float | None = None) -> None:
        """End reading in every task, leave the group, close all connections and end all background tasks.

        Any task may call it, also after a direct call of ``__aenter__``.

        Waits at most ``timeout`` seconds for handlers, which are then cancelled, and for the coordinator.  None: 5
        seconds, and up to 15 more for LeaveGroup while the group gets a new coordinator and brokers answer.  A
        cancelled caller does not wait for that coordinator.
        ``commit=False`` skips the last auto-commit.  Loops and :meth:`process` end; other calls that wait
        raise ClosedError.
        """
        check_timeout(timeout)
        self._tasks.check_affinity()
        seconds = CLOSE_SECONDS if timeout is None else timeout
        if self._member is not None and self._member.is_telling_of_close:
            return
        self._reader.close()
        try:
            if self._member is not None:
                self._reader.is_leaving = True
                patience = LEAVE_PATIENCE if timeout is None else 0.0
                await self._member.aclose(commits=commit, timeout=seconds, leave_patience=patience)
            else:
                await self._reader.wait_finished(self._assignment.states, anyio.current_time() + seconds)
        finally:
            self._reader.end()
            try:
                if self._client is not None:
                    await self._client.aclose()
            finally:
                await self._tasks.aclose()

    def health(self) -> ConsumerHealth:
        """How it is doing, from what is known here; cheap enough for every second.  ClosedError before it is open."""
        if self._client is None:
            raise ClosedError("use the consumer with 'async with'")
        coordinator = None if self._member is None else self._member.coordinator
        states, now = self._assignment.states, current_time()
        return consumer_health(self._client.health(), self._reader, states, coordinator, self._trouble(now), now)

    def _trouble(self, now: float) -> Trouble | None:
        """The longest trouble of partitions that cannot be read or whose committed offsets cannot be looked up."""
        found = [self._machine.trouble.longest(now)]
        if self._member is not None and self._assignment.awaiting_commit():
            why = self._member.coordinator.fetch_trouble
            found.append(None if why is None else Trouble(*why))
        return min((each for each in found if each is not None), key=lambda each: each.since, default=None)

    # Reading

    def __aiter__(self) -> AsyncIterator[Record]:
        """Records without end, until the consumer is closed; ClosedError if it is already.

        Left with ``break``, the loop can be taken up again where it was left.
        """
        self._tasks.check_affinity()
        self._reader.check_open()
        self._reader.check_alone()
        self._reader.held.clear()
        return Records(self._reader.cursor, self._reader.next_record)

    def batches(self) -> Batches:
        """Whole batches, as ``async for batch in consumer.batches()``: cheaper than records, the more so by values.

        A batch has ``topic``, ``partition``, ``base_offset``, ``next_offset``, ``len()`` and ``values()``, and is
        iterated for its records.  Handed out, it counts as read; it is finished when the next one is asked for.
        """
        self._reader.check_open()
        return Batches(self._reader)

    def arrow(self, *, max_rows: int = 100_000) -> Tables:
        """pyarrow RecordBatches, as ``async for table in consumer.arrow()``; needs the extra ``arrow`` (ConfigError).

        Each has columns ``offset``, ``timestamp``, ``key``, ``value``, ``headers``, ``topic`` and ``partition``, and
        rows of one topic: of as many batches as are there, up to ``max_rows`` rows and a 32nd of
        ``fetch_buffer_bytes``, of which one batch may be more.  What is too many comes with the next one.  Handed out,
        a row counts as read; it is finished when the next table is asked for.  CorruptRecordError stands behind all
        rows before the damaged batch: seek to its ``next_offset`` to go on behind it.
        """
        check_count("max_rows", max_rows)
        self._reader.check_open()
        return Tables(self._reader, max_rows, self._config.fetch_buffer_bytes)

    async def getone(self, *, timeout: float | None = None) -> Record:
        """The next record; RequestTimeoutError, which is a TimeoutError, if none comes within ``timeout`` seconds.

        SecurityError if a broker refuses this consumer at the end of that time.
        """
        reader = self._reader
        reader.open_fetcher()
        reader.check_alone()
        if reader.held:
            reader.finish()
        for record in reader.cursor.records:
            return record  # most calls: the records of a batch are there
        deadline = _deadline(timeout)
        while await reader.load(deadline):
            for record in reader.cursor.records:
                return record
        raise self._no_record(timeout)

    async def getmany(self, *, max_records: int = 500, timeout: float | None = None) -> list[Record]:
        """The next records: those that are there, at most ``max_records``, else the first that come.

        Empty if none comes within ``timeout`` seconds.
        """
        check_count("max_records", max_records)
        self._reader.open_fetcher()
        self._reader.check_alone()
        return await self._reader.take(max_records, _deadline(timeout))

    async def process(self, handler: Handler, *, concurrency: int = 1, order: str = "partition") -> None:
        """Call ``await handler(record)`` for every record, ``concurrency`` at a time, until the consumer is closed.

        Records of one partition are handled in their order, one after the other; with ``order="key"`` only those that
        have the same key are.  A record is finished when its handler returns, and auto-commit commits each partition
        up to the first one that is not.  An error of a handler cancels the others and is raised; then, as when this
        call is cancelled, reading goes on at the first records that are not finished.  Partitions that go to another
        member wait for their handlers, at most half of ``max_poll_interval_ms``.
        """
        schedule = schedule_of(concurrency, order)
        self._reader.open_fetcher()
        self._reader.check_alone()
        processing = Processing(self._reader, schedule, handler, concurrency)
        try:
            await processing.run()
        except Exception:
            if self._member is not None and not self._reader.is_closed:
                await self._member.commit_now()
            raise

    def _no_record(self, timeout: float | None) -> KafkaError:
        now = current_time()
        trouble, age = self._trouble(now), ""
        cause = None if trouble is None else trouble.error
        if trouble is not None:
            age = f" (for {now - trouble.since:.1f} s)"
        elif self._member is not None:
            cause = self._member.coordinator.trouble
        because = "" if cause is None else f"; last: {cause}{age}"
        topics = {tp.topic for tp in self.assignment()}
        late = RequestTimeoutError(f"no record came within {timeout} seconds{because}", topic=only_name(topics))
        late.group = self._group_id
        late.__cause__ = cause
        return at_deadline(late, self._refusal(self.assignment()))

    # Assignment

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others; those read before go on where they are.

        New ones begin where the group has committed, else at ``auto_offset_reset``, or where :meth:`seek` says.
        """
        if self._topics or self._pattern is not None:
            raise ConfigError("this consumer reads all partitions of its topics; leave the topics out to assign some")
        self._tasks.check_affinity()
        before, wanted = self.assignment(), [checked(tp) for tp in partitions]
        dropped = set(before) - set(wanted)
        if self._member is not None:
            self._member.dropped(dropped)
        self._assignment.assign(wanted, from_committed=self._group_config is not None)
        for tp in dropped:
            self._reader.forget(tp)
        self._use_topics(before)
        if self._member is not None:
            self._member.assigned()
        self._pump()

    def _use_topics(self, before: Iterable[TopicPartition] = ()) -> None:
        if self._client is not None:
            topics = {tp.topic for tp in self._assignment.states}
            self._client.drop_topics({tp.topic for tp in before} - topics)
            self._client.use_topics(topics)


def _deadline(timeout: float | None) -> float | None:
    check_timeout(timeout)
    return None if timeout is None else current_time() + timeout
