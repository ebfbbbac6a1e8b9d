"""The consumer as applications use it: records and batches out of topics or assigned partitions.

What is fetched when is decided in ``machine`` and done in ``fetcher``; records are taken out in ``reader``.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, ConsumerConfig, build
from pykafka08.consumer.actions import ListedOffset
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.offsets import OffsetAndTimestamp, look_up_offsets
from pykafka08.consumer.partition import EARLIEST, LATEST
from pykafka08.consumer.reader import Reader, wait_for_news
from pykafka08.driver import TaskTree
from pykafka08.errors import ClosedError, ConfigError, RequestTimeoutError
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

if TYPE_CHECKING:
    from types import AsyncGeneratorType

__all__ = ["Batches", "Consumer"]


class Consumer:
    """Reads records.

    ::

        async with Consumer("flights", bootstrap_servers="localhost:9092", auto_offset_reset="earliest") as consumer:
            async for record in consumer:
                print(record.offset, record.value)

    With topics, all their partitions are read, also those added later.  Without, :meth:`assign` says what to read.
    ``settings`` are those of :class:`ConsumerConfig` and :class:`ClientConfig`.  Entering the block connects
    (NoBrokersError), finds the topics (UnknownTopicError) and the positions to start at.  One task at a time reads.

    While no broker can be reached, reading waits and tries again; give a ``timeout``, or cancel, to bound it.  What one
    partition suffers is raised at that point of its records, and the others go on: after an error the same call, or the
    same ``async for``, can be made again.
    """

    def __init__(self, *topics: str, bootstrap_servers: str | Iterable[str], **settings: Any) -> None:
        for topic in topics:
            if not isinstance(topic, str) or not topic:
                raise ConfigError(f"a topic is a string, not {topic!r}; give several as Consumer('a', 'b', ...)")
        self._client_config: ClientConfig
        self._config: ConsumerConfig
        settings["bootstrap_servers"] = bootstrap_servers
        self._client_config, self._config = build(settings, ClientConfig, ConsumerConfig)
        if self._config.group_id is not None:
            raise ConfigError(
                "group_id is not served by this release: leave it out to read all partitions of the topics, "
                "or share them out with assign(), and keep positions with position() and seek()"
            )
        self._topics = tuple(dict.fromkeys(topics))
        self._machine = ConsumerMachine(self._config, self._client_config, random.random)
        self._assignment = self._machine.assignment
        self._reader = Reader(self._machine)
        self._client: Client | None = None
        self._tasks = TaskTree()
        self._stream: AsyncGeneratorType[Record, None] | None = None

    # Life

    async def __aenter__(self) -> Consumer:
        if self._client is not None:
            raise ClosedError("a consumer is entered once; make a new one")
        client = self._client = Client(self._client_config, self._tasks, allow_auto_topic_creation=False)
        await self._tasks.__aenter__()
        try:
            await client.__aenter__()
            fetcher = self._reader.fetcher = Fetcher(client, self._machine, self._config)
            if self._topics:
                await client.wait_for_topics(self._topics)
                self._assignment.subscribe(self._topics)
            self._use_topics()
            fetcher.start()
            if self._topics:
                await self._wait_settled()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        try:
            await self.aclose()
        finally:
            await self._tasks.__aexit__()

    async def aclose(self) -> None:
        """End reading in every task, and close all connections; waits for no broker.  Any task may call it.

        ``async for`` loops end; other calls that wait raise ClosedError.
        """
        self._reader.close()
        stream, self._stream = self._stream, None
        try:
            if stream is not None and not stream.ag_running:
                await stream.aclose()
        finally:
            if self._client is not None:
                await self._client.aclose()

    async def _wait_settled(self) -> None:
        """Until the positions to start at are known, so that what is produced from now on is read."""
        with anyio.move_on_after(self._client_config.default_api_timeout_ms / 1000):
            while not self._assignment.is_settled():
                await self._reader.open_fetcher().news

    # Reading

    def __aiter__(self) -> AsyncIterator[Record]:
        """Records without end, until the consumer is closed.

        Left with ``break``, the loop can be taken up again where it was left.
        """
        if self._stream is None:
            # One for all loops: one that was left in its midst would be closed by the garbage collector.
            self._stream = cast("AsyncGeneratorType[Record, None]", self._stream_records())
        return self._stream

    async def _stream_records(self) -> AsyncGenerator[Record, None]:
        reader = self._reader
        try:
            while await reader.load(None):
                for record in reader.cursor.records:
                    yield record
        except ClosedError:
            if not reader.is_closed:
                raise
        finally:
            self._stream = None

    def batches(self) -> Batches:
        """Whole batches, as ``async for batch in consumer.batches()``: cheaper than records, the more so by values.

        A batch has ``topic``, ``partition``, ``base_offset``, ``next_offset``, ``len()`` and ``values()``, and is
        iterated for its records.  Handed out, it counts as read.
        """
        return Batches(self._reader)

    async def getone(self, *, timeout: float | None = None) -> Record:
        """The next record; RequestTimeoutError, which is a TimeoutError, if none comes within ``timeout`` seconds."""
        reader = self._reader
        reader.open_fetcher()
        for record in reader.cursor.records:
            return record  # most calls: the records of a batch are there
        deadline = _deadline(timeout)
        while await reader.load(deadline):
            for record in reader.cursor.records:
                return record
        raise RequestTimeoutError(f"no record came within {timeout} seconds")

    async def getmany(self, *, max_records: int = 500, timeout: float | None = None) -> list[Record]:
        """The next records: those that are there, at most ``max_records``, else the first that come.

        Empty if none comes within ``timeout`` seconds.
        """
        if max_records < 1:
            raise ConfigError(f"max_records={max_records!r} is not a number of records")
        return await self._reader.take(max_records, _deadline(timeout))

    # Assignment

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others; those read before go on where they are.

        New ones begin at ``auto_offset_reset``, or where :meth:`seek` says.
        """
        if self._topics:
            raise ConfigError("this consumer reads all partitions of its topics; leave the topics out to assign some")
        before = self.assignment()
        self._assignment.assign([_checked(tp) for tp in partitions])
        for tp in set(before) - self._assignment.states.keys():
            self._reader.forget(tp)
        self._use_topics(before)
        self._pump()

    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that are read, sorted."""
        return self._assignment.partitions()

    def paused(self) -> tuple[TopicPartition, ...]:
        """The partitions that were paused, sorted."""
        return self._assignment.paused()

    def pause(self, *partitions: TopicPartition) -> None:
        """Read nothing of these until :meth:`resume`; their positions stay."""
        for tp in partitions:
            offset = self._reader.position(tp)
            self._reader.forget(tp)
            self._assignment.pause(tp, offset)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause`."""
        for tp in partitions:
            self._assignment.resume(tp)
        self._pump()

    # Positions

    async def seek(self, tp: TopicPartition, offset: int) -> None:
        """Read on at ``offset``; what was fetched of the partition and not read yet is dropped."""
        self._reader.open_fetcher()
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise ConfigError(f"offset {offset!r} does not exist", topic=tp[0], partition=tp[1])
        self._assignment.seek(tp, offset)
        self._reader.forget(tp)
        self._pump()
        await anyio.lowlevel.checkpoint()

    async def seek_to_beginning(self, *partitions: TopicPartition, timeout: float | None = None) -> None:
        """Read on at the first offset of these partitions, of all if none is given."""
        await self._seek_to_end_of_log(EARLIEST, partitions, timeout)

    async def seek_to_end(self, *partitions: TopicPartition, timeout: float | None = None) -> None:
        """Read on with what is produced from now on, in these partitions or all."""
        await self._seek_to_end_of_log(LATEST, partitions, timeout)

    async def _seek_to_end_of_log(
        self, timestamp: int, partitions: tuple[TopicPartition, ...], timeout: float | None
    ) -> None:
        self._reader.open_fetcher()
        deadline = anyio.current_time() + self._seconds(timeout)
        wanted = partitions or self.assignment()
        for tp in wanted:
            self._assignment.seek_to_end_of_log(tp, timestamp)
            self._reader.forget(tp)
        for tp in wanted:
            await self._located(tp, deadline)

    async def position(self, tp: TopicPartition, *, timeout: float | None = None) -> int:
        """The offset of the next record to be read; looked up if it is not known yet.

        RequestTimeoutError if it cannot be found in time (``default_api_timeout_ms`` by default), NoOffsetError if
        ``auto_offset_reset`` is ``"none"`` and there is no position.
        """
        return await self._located(tp, anyio.current_time() + self._seconds(timeout))

    async def _located(self, tp: TopicPartition, deadline: float) -> int:
        while True:
            news = self._reader.open_fetcher().news
            position = self._reader.position(tp)
            if position is not None:
                return position
            error = self._machine.take_error(tp, anyio.current_time())
            self._pump()
            if error is not None:
                raise error
            if not news.is_done and not await wait_for_news(news, deadline):
                raise RequestTimeoutError("the position was not found in time", topic=tp[0], partition=tp[1])

    # What the log holds

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return await self._ends(EARLIEST, partitions, timeout)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset that the next record of each partition will have."""
        return await self._ends(LATEST, partitions, timeout)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time (milliseconds since 1970), None where there is none.

        Brokers before 0.10.1 know times of segment files only: their offset may be earlier, never later, than asked.
        """
        wanted = {_checked(tp): timestamp for tp, timestamp in timestamps.items()}
        for tp, timestamp in wanted.items():
            if isinstance(timestamp, bool) or not isinstance(timestamp, int) or timestamp < 0:
                text = f"timestamp {timestamp!r} is no number of milliseconds since 1970"
                raise ConfigError(text, topic=tp.topic, partition=tp.partition)
        listed = await self._look_up(wanted, timeout)
        return {
            tp: OffsetAndTimestamp(each.offset, each.timestamp_ms) if each.offset >= 0 else None
            for tp, each in listed.items()
        }

    async def lag(self, tp: TopicPartition, *, timeout: float | None = None) -> int:
        """How many offsets the position is behind the end of the log."""
        deadline = anyio.current_time() + self._seconds(timeout)
        position = await self._located(tp, deadline)
        ends = await self.end_offsets([tp], timeout=max(0.0, deadline - anyio.current_time()))
        return max(0, ends[_checked(tp)] - position)

    async def partitions_for_topic(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """The partition numbers of any topic; UnknownTopicError if the cluster does not have it."""
        snapshot = await self._open_client().wait_for_topics([topic], timeout=self._seconds(timeout))
        return snapshot.partitions(topic)

    async def _ends(
        self, timestamp: int, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> dict[TopicPartition, int]:
        listed = await self._look_up({_checked(tp): timestamp for tp in partitions}, timeout)
        return {tp: each.offset for tp, each in listed.items()}

    async def _look_up(
        self, wanted: Mapping[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, ListedOffset]:
        return await look_up_offsets(
            self._open_client(),
            wanted,
            timeout=self._seconds(timeout),
            is_committed_only=self._config.isolation_level == "read_committed",
        )

    # Small things

    def _open_client(self) -> Client:
        self._reader.open_fetcher()
        assert self._client is not None
        return self._client

    def _seconds(self, timeout: float | None) -> float:
        return self._client_config.default_api_timeout_ms / 1000 if timeout is None else timeout

    def _use_topics(self, before: Iterable[TopicPartition] = ()) -> None:
        if self._client is not None:
            topics = {tp.topic for tp in self._assignment.states}
            self._client.drop_topics({tp.topic for tp in before} - topics)
            self._client.use_topics(topics)

    def _pump(self) -> None:
        if self._reader.fetcher is not None:
            self._reader.fetcher.pump()


class Batches:
    """The batches of a consumer, without end, until it is closed."""

    __slots__ = ("_reader",)

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __aiter__(self) -> Batches:
        return self

    async def __anext__(self) -> FetchedBatch:
        try:
            return await self._reader.next_batch()
        except ClosedError:
            if not self._reader.is_closed:
                raise
        raise StopAsyncIteration


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else anyio.current_time() + timeout


def _checked(tp: TopicPartition) -> TopicPartition:
    """``tp`` as a TopicPartition, if it is one: a pair of a topic and a number."""
    try:
        topic, partition = tp
    except (TypeError, ValueError):
        raise ConfigError(f"{tp!r} is not a TopicPartition(topic, partition)") from None
    if not isinstance(topic, str) or isinstance(partition, bool) or not isinstance(partition, int) or partition < 0:
        raise ConfigError(f"{tp!r} is not a TopicPartition(topic, partition)")
    return TopicPartition(topic, partition)
