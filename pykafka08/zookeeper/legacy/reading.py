"""What an old consumer reads: partitions come and go as its membership says, positions are found.

The brokers are those that ZooKeeper lists; they are connected to when there is something to read.  Records are handed
out only while the session surely lives, under which the partitions were claimed: ``is_sure`` asks the session's clock,
at each hand-over.  Committing is ``commits``'.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

import anyio

from pykafka08.cluster.client import Client
from pykafka08.config import Address
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.in_hand import wait_for_news
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.reader import Reader
from pykafka08.driver import TaskTree, Waiter, Wakeup, current_time, library_logger
from pykafka08.errors import (
    AuthorizationError,
    ClosedError,
    KafkaError,
    MalformedNodeError,
    SecurityError,
)
from pykafka08.group.coordinator import RebalanceListener
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy.brokers import broker_addresses
from pykafka08.zookeeper.legacy.claims import Claims
from pykafka08.zookeeper.legacy.commits import CLOSE_AGE, Commits
from pykafka08.zookeeper.legacy.offsets import LegacyOffsets
from pykafka08.zookeeper.legacy.settings import LegacyConfig
from pykafka08.zookeeper.legacy.streams import LegacyStream

__all__ = ["Reading"]

log = library_logger("zookeeper")

PLACEHOLDER: tuple[Address, ...] = (("brokers-of-zookeeper", 9092),)
"""Until the addresses are known; nothing is connected to with it."""
PATIENCE = 1.0
"""Seconds that a rebalance waits for the application to finish what it has in hand of partitions that go."""
RETRY_SECONDS = 1.0
GATE_SECONDS = 0.05
"""How often a session that was in doubt is looked at, while somebody waits for records."""


class Reading:
    """The streams of one consumer, and all that feeds them."""

    def __init__(
        self, zk: ZooKeeper, config: LegacyConfig, streams: int, tasks: TaskTree, listener: RebalanceListener | None
    ) -> None:
        self._zk = zk
        self._config = config
        self._tasks = tasks
        self._listener = listener
        self._claims = Claims(zk)
        self._stream_of = self._claims.stream_of
        self._listener_seconds = max(PATIENCE, config.rebalance_max_retries * config.backoff)
        self._machine = ConsumerMachine(config.consumer, config.client(PLACEHOLDER), random.random)
        self._assignment = self._machine.assignment
        timeout = None if config.consumer_timeout_ms < 0 else config.consumer_timeout_ms / 1000
        self.streams = tuple(
            LegacyStream(
                number, self._machine, self._owner_is(number), self.is_sure, timeout, partial(self._refusal, number)
            )
            for number in range(streams)
        )
        self.offsets = LegacyOffsets(zk, config)
        self.commits = Commits(config, self._claims, self.offsets, self._reader)
        self.client: Client | None = None
        self.fetcher: Fetcher | None = None
        self.trouble: KafkaError | None = None
        """Why the brokers cannot be read from."""
        self._began_at: dict[TopicPartition, int] = {}
        """Where reading began at the end of a log, of partitions that nobody had committed.

        It outlives the session: found anew, the end would be a later one.
        """
        self._reset: set[TopicPartition] = set()
        """Of such partitions, those whose end is being looked up."""
        self._reset_begun = Wakeup()
        self._brokers_wanted: Waiter[None] = Waiter()
        self._positions_wanted = Wakeup()
        self._gate_closed = Wakeup()
        self.news: Waiter[None] = Waiter()
        """Ends when the brokers were connected to, or could not be."""

    def start(self) -> None:
        """Begin the background tasks."""
        self._tasks.start("brokers", self._open_client)
        self._tasks.start("committed offsets", self._find_positions)
        self._tasks.start("session in doubt", self._watch_gate)
        self._tasks.start("beginnings", self._keep_beginnings)
        if self._config.auto_commit_enable:
            self._tasks.start("auto-commit", self.commits.commit_now_and_then)

    def _owner_is(self, number: int) -> Callable[[TopicPartition], bool]:
        return lambda tp: self._stream_of.get(tp) == number

    def _refusal(self, number: int) -> SecurityError | None:
        """That of a broker which leads a partition of the stream."""
        if self.client is None:
            return None
        leaders = {self.client.metadata.leader(*tp) for tp, each in self._stream_of.items() if each == number}
        return self.client.refusal([each for each in leaders if each is not None] or None)

    # The session

    @property
    def session_number(self) -> int:
        """The session under which partitions are read; 0 before the first."""
        return self._claims.session_number

    def session_began(self, number: int) -> None:
        """What is claimed from now on is claimed under this session."""
        self._claims.session_number = number

    def is_sure(self) -> bool:
        """True while what is claimed is surely still this member's."""
        if self._claims.is_sure():
            return True
        self._gate_closed.set()
        return False

    async def _watch_gate(self) -> None:
        """A session whose signs of life were only late comes back without a word: wake who waits for that."""
        while True:
            await self._gate_closed.wait()
            while not self._claims.is_sure():  # noqa: ASYNC110 - a clock sets no event
                await anyio.sleep(GATE_SECONDS)
            self.wake()

    def wake(self) -> None:
        """Something that readers wait for may have changed."""
        if self.fetcher is not None:
            self.fetcher.pump()
            self.fetcher.wake_readers()

    def session_lost(self) -> None:
        """At once: nothing is this member's any more, nor may it be committed."""
        self.commits.session_lost()
        self._give_up(tuple(self._stream_of))

    # Partitions come and go

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self._stream_of))

    def take_over(self, threads: Mapping[TopicPartition, str], counts: Mapping[str, int]) -> None:
        """These are ours, each its thread's; the listener is told by :meth:`told_of`."""
        for tp, thread in threads.items():
            self._claims.take(tp, int(thread.rpartition("-")[2]))
        self._assignment.topics_counted(counts)
        self._assignment.take_over(threads, is_held=self._listener is not None)
        if self.client is not None:
            self.client.use_topics({tp.topic for tp in threads})
        if not self._brokers_wanted.is_done:
            self._brokers_wanted.set_result(None)
        self._positions_wanted.set()
        self.wake()

    async def told_of(self, partitions: frozenset[TopicPartition]) -> None:
        """The listener hears of them before anything of them is read."""
        if self._listener is None:
            return
        try:
            with anyio.move_on_after(self._listener_seconds):
                await self._listener.partitions_assigned(partitions)
        finally:
            self._assignment.release(tp for tp in partitions if tp in self._assignment.states)
            self.wake()

    async def stop(self, partitions: Iterable[TopicPartition], *, commits: bool = True) -> None:
        """Hand out nothing more of them, commit what is finished, tell the listener, and give them up."""
        going = [tp for tp in partitions if tp in self._assignment.states]
        for tp in going:
            self._assignment.hold(tp)
            self._reader(tp).withhold(tp)
        try:
            await self._finish(going)
            if commits and self._config.auto_commit_enable:
                await self.commits.commit_finished(going, renewal_age=CLOSE_AGE)
            if self._listener is not None and going:
                with anyio.move_on_after(self._listener_seconds):
                    await self._listener.partitions_revoked(frozenset(going))
        finally:
            self._give_up(going)
            for tp in going:
                self._began_at.pop(tp, None)

    async def lose(self, partitions: Iterable[TopicPartition]) -> None:
        """They are gone already."""
        gone = tuple(partitions)
        self._give_up(gone)
        if self._listener is not None and gone:
            with anyio.move_on_after(self._listener_seconds):
                await self._listener.partitions_lost(frozenset(gone))

    async def _finish(self, partitions: Iterable[TopicPartition]) -> None:
        deadline = anyio.current_time() + min(PATIENCE, self._config.backoff / 2)
        by_stream: dict[int, list[TopicPartition]] = {}
        for tp in partitions:
            by_stream.setdefault(self._stream_of[tp], []).append(tp)
        for number, own in by_stream.items():
            await self.streams[number].reader.wait_finished(own, deadline)

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        gone = [tp for tp in partitions if tp in self._stream_of]
        for tp in gone:
            self._reader(tp).forget(tp)
        self._assignment.give_up(gone)
        for tp in gone:
            self._claims.drop(tp)
            self.commits.forget(tp)
            self.offsets.forget(tp)
        if self.client is not None:
            left = {tp.topic for tp in self._stream_of}
            self.client.drop_topics({tp.topic for tp in gone} - left)
        self.wake()

    def _reader(self, tp: TopicPartition) -> Reader:
        return self.streams[self._stream_of[tp]].reader

    # Positions

    async def _find_positions(self) -> None:
        """Where to read on: the group's committed offset of each partition that waits for it."""
        while True:
            wanted = self._assignment.awaiting_commit() if self.client is not None else {}
            if not wanted:
                is_told = any(state.awaits_commit for state in self._assignment.states.values())
                await self._positions_wanted.wait(anyio.current_time() + RETRY_SECONDS if is_told else None)
                continue
            try:
                found = await self.offsets.committed(wanted)
            except ClosedError:
                await anyio.sleep(RETRY_SECONDS)  # this consumer is being closed
                continue
            except KafkaError as error:
                log.warning("committed.late", group_id=self._config.group_id, cause=str(error))
                await anyio.sleep(self._config.offsets_channel_backoff_ms / 1000)
                continue
            is_lasting = self._take_positions(wanted, found)
            if not is_lasting:
                await anyio.sleep(RETRY_SECONDS)

    def _take_positions(
        self, wanted: Mapping[TopicPartition, int], found: Mapping[TopicPartition, int | KafkaError | None]
    ) -> bool:
        """False if some could not be told for now."""
        is_lasting = True
        for tp, offset in found.items():
            if isinstance(offset, (AuthorizationError, MalformedNodeError)):
                if self._assignment.awaiting_commit().get(tp) == wanted[tp]:
                    self._assignment.halt(self._assignment.state(tp), offset)
            elif isinstance(offset, ClosedError):
                is_lasting = False  # this consumer is being closed
            elif isinstance(offset, KafkaError):
                log.warning("committed.late", group_id=self._config.group_id, cause=str(offset))
                is_lasting = False
            else:
                self._take_position(tp, wanted[tp], offset)
        self.wake()
        return is_lasting

    def _take_position(self, tp: TopicPartition, epoch: int, offset: int | None) -> None:
        began_at = self._began_at.get(tp)
        if not self._assignment.committed_found(tp, epoch, began_at if offset is None else offset):
            return
        if offset is not None:
            self._began_at.pop(tp, None)
            self.commits.found(tp, offset)
        elif self._config.consumer.auto_offset_reset == "latest":
            self._reset.add(tp)
            self._reset_begun.set()

    async def _keep_beginnings(self) -> None:
        """Where reading begins at the end of a log is remembered, and with auto-commit it is committed at once."""
        while True:
            news = None if self.fetcher is None else self.fetcher.news
            self._reset &= self._stream_of.keys()
            positions = {tp: self.commits.finished(tp) for tp in self._reset}
            found = {tp: position for tp, position in positions.items() if position is not None}
            if found:
                self._began_at.update(found)
                self._reset -= found.keys()
                if self._config.auto_commit_enable:
                    self._tasks.start("first commit", self.commits.commit_finished, tuple(found))
            elif self._reset and news is not None:
                await wait_for_news(news, anyio.current_time() + RETRY_SECONDS)
            else:
                await self._reset_begun.wait()

    def acknowledge(self, tp: TopicPartition, offset: int) -> None:
        """All before ``offset`` is finished."""
        if tp in self._stream_of:
            self._reader(tp).acknowledge(tp, offset)

    # Brokers

    async def _open_client(self) -> None:
        """Connect when there is something to read, and again until that works."""
        await self._brokers_wanted
        while True:
            try:
                addresses = await broker_addresses(self._zk, self._config.security.security_protocol)
                client = Client(self._config.client(addresses), self._tasks, allow_auto_topic_creation=False)
                await client.__aenter__()
                break
            except KafkaError as error:
                if isinstance(error, ClosedError):
                    raise
                self._config.setting_names.in_error(error)
                self.trouble = error
                log.warning("brokers.not_reached", group_id=self._config.group_id, cause=str(error))
                self._tell()
                if isinstance(error, SecurityError):
                    for stream in self.streams:
                        stream.opened.set_exception(error)
                    return
                await anyio.sleep(RETRY_SECONDS)
        self.trouble = None
        self.client = client
        self.offsets.use(client)
        self.fetcher = Fetcher(client, self._machine, self._config.consumer)
        client.use_topics({tp.topic for tp in self._stream_of})
        for stream in self.streams:
            stream.reader.fetcher = self.fetcher
            self.fetcher.on_start_anew(stream.reader.forget)
        self.fetcher.on_start_anew(self.commits.forget)
        self.fetcher.start()
        for stream in self.streams:
            stream.opened.set_result(None)
        self._positions_wanted.set()
        self._tell()

    def _tell(self) -> None:
        news, self.news = self.news, Waiter()
        news.set_result(None)

    def brokers_changed(self) -> None:
        """Leaders may have moved, and all brokers may listen elsewhere."""
        if self.client is not None:
            self._tasks.start("brokers that came and went", self._refresh_brokers, self.client)

    async def _refresh_brokers(self, client: Client) -> None:
        with suppress(KafkaError):  # none is there now, or ZooKeeper is away: the next change comes
            client.seeds_changed(await broker_addresses(self._zk, self._config.security.security_protocol))
            client.invalidate(client.metadata.generation)

    # Ends

    def is_settled(self) -> bool:
        """Everything that is ours has a position, or something in the way that may last."""
        states = self._assignment.states.values()
        return all(state.lookup is None or state.failures > 0 or state.is_halted for state in states)

    def close(self) -> None:
        """End all waiting; what is in hand stays known until :meth:`aclose`."""
        for stream in self.streams:
            stream.reader.is_leaving = True
            stream.reader.close()
            if not stream.opened.is_done:
                stream.opened.set_result(None)

    async def aclose(self) -> None:
        await self.offsets.aclose()
        for stream in self.streams:
            stream.reader.end()
        if self.client is not None:
            await self.client.aclose()

    # Figures

    def lag(self) -> dict[TopicPartition, int | None]:
        """Offsets between the position and the end of the log; None where either is not known."""
        lags: dict[TopicPartition, int | None] = {}
        for tp, state in self._assignment.states.items():
            position = self._reader(tp).position(tp)
            lags[tp] = None if position is None or state.end_offset < 0 else max(0, state.end_offset - position)
        return lags

    @property
    def buffered_bytes(self) -> int:
        return sum(state.buffered_bytes for state in self._assignment.states.values())

    def partition_trouble(self) -> KafkaError | None:
        trouble = self._machine.trouble.longest(current_time())
        return None if trouble is None else trouble.error
