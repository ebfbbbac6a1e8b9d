"""The high-level consumer of Kafka 0.8 to 1.1: a member of a group that ZooKeeper keeps, beside members on the JVM.

What is done on ZooKeeper is decided in ``machine`` and ``rebalance`` and done in ``legacy/membership``; partitions,
positions and commits are in ``legacy/reading``.  Here is the public class, and what an application may pass.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import anyio

from pykafka08.config import SETTING_NAMES, build, check_timeout, names_among
from pykafka08.consumer.checks import check_listener, check_offset, check_topic, checked
from pykafka08.driver import TaskTree, library_logger
from pykafka08.errors import ClosedError, ConfigError, KafkaError, UnknownTopicError
from pykafka08.errors.deadline import raising_refusals
from pykafka08.group.coordinator import RebalanceListener
from pykafka08.kafka_properties import PropertiesSource, guarded, protected, read_client_properties
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition
from pykafka08.security.secret import kind_of
from pykafka08.security.settings import protect
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy.health import LegacyHealth
from pykafka08.zookeeper.legacy.membership import Membership
from pykafka08.zookeeper.legacy.reading import Reading
from pykafka08.zookeeper.legacy.settings import LegacyConfig, settings_of
from pykafka08.zookeeper.legacy.streams import LegacyStream, StreamBatches
from pykafka08.zookeeper.machine import LegacyMember, State
from pykafka08.zookeeper.rebalance import Profile
from pykafka08.zookeeper.settings import without_secrets
from pykafka08.zookeeper.topic_filter import TopicFilter

__all__ = ["LegacyConsumer"]

log = library_logger("zookeeper")

CLOSE_SECONDS = 5.0
API_SECONDS = 60.0
CONNECT = "zookeeper_connect"


class LegacyConsumer:
    """Reads records as a member of an old group.

    ::

        async with LegacyConsumer("flights", zookeeper="zk1:2181/kafka", group_id="planes") as consumer:
            async for record in consumer:
                print(record.offset, record.value)

    Topics, or a ``white_list`` or ``black_list`` of names as a regular expression of Java's, which is followed as
    topics come and go.  ``streams`` are the threads that share this member's partitions, each an iterator of its own in
    :attr:`streams`; the consumer itself iterates over its one stream.  ``settings`` are those of :class:`LegacyConfig`:
    the old consumer's own names in snake_case; ``properties`` is a Java properties file, or a mapping, that gives
    others.  Entering the block connects to ZooKeeper, registers, and takes this member's share of the group:
    ConsumerRebalanceFailedError if others do not give it up.

    A record is finished when the next one is asked for; what is finished is committed every
    ``auto_commit_interval_ms``, before partitions go to others, and at the end.  Nothing is handed out once the session
    with ZooKeeper may be over; when it is back, the member takes its share anew.
    """

    def __init__(
        self,
        *topics: str | Iterable[str],
        zookeeper: str | None = None,
        white_list: str | None = None,
        black_list: str | None = None,
        streams: int = 1,
        listener: RebalanceListener | None = None,
        properties: PropertiesSource | None = None,
        **settings: Any,
    ) -> None:
        protect(settings)
        properties = guarded(properties) if properties is not None else None
        if "zookeeper_settings" in settings:
            settings = {**settings, "zookeeper_settings": without_secrets(settings["zookeeper_settings"])}
        given = _of_properties(properties)
        servers = zookeeper if zookeeper is not None else given.pop(CONNECT, None)
        given.pop(CONNECT, None)
        if not isinstance(servers, str) or not servers:
            setting = "zookeeper" if properties is None else CONNECT.replace("_", ".")
            raise ConfigError(
                f"{setting}='host:2181/chroot' is needed: the servers, and where the cluster's nodes begin"
            )
        if not isinstance(streams, int) or isinstance(streams, bool) or not 1 <= streams <= 10_000:
            raise ConfigError(f"streams={streams!r} is not a number of streams from 1 up")
        own = {"group_id": None, **given, **settings}
        own[SETTING_NAMES] = names_among(given).without(settings.keys())
        elsewhere = ("zookeeper", "white_list", "black_list", "streams")
        (self._config,) = build(own, LegacyConfig, elsewhere=elsewhere, page="docs/zookeeper.md")
        names, wildcard = _subscription(topics, white_list, black_list)
        if listener is not None:
            check_listener(listener)
        self._profile = Profile(
            group=self._config.group_id,
            member=f"{self._config.group_id}_{self._config.consumer_id or _unique_id()}",
            topics=dict.fromkeys(names, streams),
            wildcard=wildcard,
            streams=streams,
            strategy=self._config.partition_assignment_strategy,
            round_robin_order=self._config.roundrobin_order,
            excludes_internal=self._config.exclude_internal_topics,
            watches_brokers=self._config.rebalance_on_broker_change,
        )
        session: dict[str, Any] = {
            "session_timeout_ms": self._config.zookeeper_session_timeout_ms,
            "connection_timeout_ms": self._config.zookeeper_connection_timeout_ms,
            **self._config.zookeeper_settings,
        }
        self._zk = ZooKeeper(servers, **session)
        self._tasks = TaskTree()
        self._machine = LegacyMember(
            self._profile,
            self._profile.registration(int(time.time() * 1000)).encode(),
            max_retries=self._config.rebalance_max_retries,
            backoff=self._config.backoff,
            session_timeout=self._zk.session_timeout_ms / 1000,
        )
        self._reading = Reading(self._zk, self._config, streams, self._tasks, listener)
        self._membership = Membership(self._zk, self._machine, self._reading)
        self._is_entered = self._is_closed = False

    @classmethod
    def from_properties(cls, properties: PropertiesSource, *topics: str, **settings: Any) -> LegacyConsumer:
        """A consumer with the settings of a properties file, or a mapping, by the names of Kafka's Java clients."""
        protect(settings)
        properties = guarded(properties)
        return cls(*topics, properties=properties, **settings)

    # Life

    async def __aenter__(self) -> LegacyConsumer:
        if self._is_entered:
            raise ClosedError("a consumer cannot be reused; create a new one")
        self._is_entered = True
        await self._tasks.__aenter__()
        try:
            await self._zk.__aenter__()
            self._reading.start()
            self._tasks.start("session events", self._membership.follow_events)
            self._tasks.start("membership", self._membership.work)
            await self._wait_share()
            await self._wait_positions()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _wait_share(self) -> None:
        while not self._machine.has_settled:
            self._tasks.check()
            news = self._membership.news
            if self._machine.failure is not None:
                raise self._machine.failure
            with anyio.move_on_after(1):
                await news

    async def _wait_positions(self) -> None:
        """So that what is produced from now on is read, also by a group that has committed nothing yet."""
        with anyio.move_on_after(API_SECONDS):
            while self._reading.partitions and self._reading.client is None:
                news = self._reading.news
                if self._reading.trouble is not None:
                    raise self._reading.trouble
                await news
            if self._reading.client is not None:
                topics = {tp.topic for tp in self._reading.partitions}
                with suppress(UnknownTopicError):  # deleted by now: a rebalance follows
                    await self._reading.client.wait_for_topics(sorted(topics), timeout=API_SECONDS, needed="READ")
            while self._reading.fetcher is not None and not self._reading.is_settled():
                self._tasks.check()
                with anyio.move_on_after(1):
                    await self._reading.fetcher.news

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            await self.aclose()
        finally:
            await self._tasks.aclose()  # also where another task has begun to close it

    async def aclose(self, *, commit: bool = True, timeout: float = CLOSE_SECONDS) -> None:
        """End reading in every task, commit processed records, leave the group, close connections and background tasks.

        Waits at most ``timeout`` seconds for the commit.  Iterators end; other calls that wait raise ClosedError.
        """
        check_timeout(timeout)
        self._tasks.check_affinity()
        if self._is_closed:
            return
        self._is_closed = True
        self._reading.close()
        self._membership.commits_at_close = commit
        try:
            with anyio.move_on_after(timeout, shield=True):
                if self._machine.state is not State.DISCONNECTED and self._tasks.failure is None:
                    await self._membership.leave()
        finally:
            self._machine.closed()
            self._reading.commits.close()  # before others can own what they are for
            with anyio.CancelScope(shield=True):
                await self._zk.aclose()
                await self._reading.aclose()
                await self._tasks.aclose()

    # Reading

    @property
    def streams(self) -> tuple[LegacyStream, ...]:
        """The iterators over records, one for each thread."""
        return self._reading.streams

    def __aiter__(self) -> LegacyStream:
        return self._one_stream()

    def batches(self) -> StreamBatches:
        """The batches of the one stream, as ``async for batch in consumer.batches()``."""
        return self._one_stream().batches()

    async def getone(self, *, timeout: float | None = None) -> Record:
        """The next record of the one stream; ConsumerTimeoutError if none comes within ``timeout`` seconds."""
        check_timeout(timeout)
        return await self._one_stream().next(timeout=timeout)

    async def getmany(self, *, max_records: int = 500, timeout: float | None = None) -> list[Record]:
        """The next records of the one stream: those that are there, else the first that come; empty at the timeout."""
        check_timeout(timeout)
        return await self._one_stream().many(max_records=max_records, timeout=timeout)

    def _one_stream(self) -> LegacyStream:
        if len(self.streams) != 1:
            raise ConfigError(f"this consumer has {len(self.streams)} streams: read each of consumer.streams")
        if not self._is_entered:
            raise ClosedError("use the consumer with 'async with'")
        self._tasks.check_affinity()
        return self.streams[0]

    # Offsets

    def acknowledge(self, what: Record | FetchedBatch) -> None:
        """This record or batch, and all before it in its partition, is finished, though nothing more is asked for.

        Without effect once the partition has gone to another member.
        """
        if not isinstance(what, (Record, FetchedBatch)):
            raise ConfigError(f"{what!r:.100} is neither a record nor a batch")
        offset = what.next_offset if isinstance(what, FetchedBatch) else what.offset + 1
        self._reading.acknowledge(TopicPartition(what.topic, what.partition), offset)

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, KafkaError]:
        """Commit where to read on, or these offsets; the answer has what was refused, and why.

        Without ``offsets`` all that was handed out is committed, also the record in hand.  PartitionRevokedError is the
        outcome of a partition that is not, or may not be, this member's any more.
        """
        check_timeout(timeout)
        self._check_open()
        wanted = None if offsets is None else {checked(tp): offset for tp, offset in offsets.items()}
        for tp, offset in (wanted or {}).items():
            check_offset(tp, offset)
        with raising_refusals():
            return await self._reading.commits.commit(wanted, timeout=API_SECONDS if timeout is None else timeout)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """The group's committed offsets, None where there is none."""
        self._check_open()
        with raising_refusals():
            found = await self._reading.offsets.committed([checked(tp) for tp in partitions])
        for each in found.values():
            if isinstance(each, KafkaError):
                raise each
        return {tp: each for tp, each in found.items() if not isinstance(each, KafkaError)}

    def assignment(self) -> tuple[TopicPartition, ...]:
        """What is read, sorted."""
        return self._reading.partitions

    @property
    def member_id(self) -> str:
        """The consumer id in the group; a thread's is this, a dash and its number."""
        return self._profile.member

    def _check_open(self) -> None:
        self._tasks.check()
        if self._is_closed:
            raise ClosedError("the consumer is closed")

    def health(self) -> LegacyHealth:
        """How it is doing, from what is known here; cheap enough for every second."""
        outcome = self._machine.outcome
        return LegacyHealth(
            trouble=self._trouble(),
            state=self._machine.state.name.lower(),
            group_id=self._profile.group,
            member_id=self._profile.member,
            session_id=self._zk.session_id,
            is_connected=self._zk.is_connected,
            assignment=dict(self._machine.share.reading),
            idle_threads=() if outcome is None else outcome.idle_threads,
            missing_topics=() if outcome is None else outcome.missing,
            rebalances=self._machine.rebalances,
            buffered_bytes=self._reading.buffered_bytes,
            lag=self._reading.lag(),
        )

    def _trouble(self) -> str | None:
        if self._tasks.failure is not None:
            return str(self._tasks.failure)
        if self._is_closed or not self._is_entered:
            return None
        own = self._zk.trouble or self._machine.failure or self._machine.trouble
        found = own or self._reading.trouble or self._reading.partition_trouble()
        if found is None and self._machine.outcome is not None and self._machine.outcome.missing:
            return f"topics that do not exist are waited for: {', '.join(self._machine.outcome.missing)}"
        return None if found is None else str(found)


def _of_properties(properties: PropertiesSource | None) -> dict[str, Any]:
    if properties is None:
        return {}
    if isinstance(properties, (str, os.PathLike)):
        given = read_client_properties(properties)
    elif isinstance(properties, Mapping):
        given = protected(properties)
    else:
        raise ConfigError(f"properties of the type {kind_of(properties)} are neither a file nor a mapping")
    settings, notes = settings_of(given, (CONNECT,))
    for each in notes:
        log.warning("property.unknown", what=each)
    return settings


def _subscription(
    topics: Iterable[str | Iterable[str]], white_list: str | None, black_list: str | None
) -> tuple[list[str], TopicFilter | None]:
    """Topics, or a wildcard."""
    names: list[str] = []
    for each in topics:
        names += [each] if isinstance(each, str) else list(each)
    for name in names:
        check_topic(name)
    if bool(names) + (white_list is not None) + (black_list is not None) != 1:
        raise ConfigError("give topics, or a white_list, or a black_list, and one of them only")
    for pattern, text in (("white_list", white_list), ("black_list", black_list)):
        if text is not None:
            if not isinstance(text, str):
                raise ConfigError(f"{pattern}={text!r:.100} is not a string")
            return [], TopicFilter(pattern, text)
    return list(dict.fromkeys(names)), None


def _unique_id() -> str:
    """As the JVM makes it: host, milliseconds, and eight hexadecimal digits of a random number."""
    return f"{socket.gethostname()}-{int(time.time() * 1000)}-{uuid.uuid4().hex[:8]}"
