"""Where a consumer reads, and what the logs hold: seeks, positions, offsets by time, ends of logs, lag.

The other half of the public class is in ``consumer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import anyio
import anyio.lowlevel

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, ConsumerConfig, check_timeout
from pykafka08.consumer.actions import ListedOffset
from pykafka08.consumer.assignment import Assignment
from pykafka08.consumer.checks import check_offset, check_topic, checked, checked_times
from pykafka08.consumer.in_hand import wait_for_news
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.offsets import OffsetAndTimestamp, look_up_offsets
from pykafka08.consumer.partition import EARLIEST, LATEST
from pykafka08.consumer.reader import Reader
from pykafka08.errors import KafkaError, RequestTimeoutError, SecurityError, UnknownTopicError
from pykafka08.errors.deadline import at_deadline
from pykafka08.records.record import TopicPartition

__all__ = ["Positions"]


class Positions:
    """The part of a consumer that needs to know no group."""

    _client: Client | None
    _client_config: ClientConfig
    _config: ConsumerConfig
    _machine: ConsumerMachine
    _assignment: Assignment
    _reader: Reader

    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that are read, sorted."""
        return self._assignment.partitions()

    def paused(self) -> tuple[TopicPartition, ...]:
        """The partitions that were paused, sorted."""
        return self._assignment.paused()

    def pause(self, *partitions: TopicPartition) -> None:
        """Read nothing of these until :meth:`resume`; their positions stay."""
        self._reader.check_affinity()
        for tp in [checked(each) for each in partitions]:
            self._reader.withhold(tp)
            self._assignment.pause(tp, None)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause`."""
        self._reader.check_affinity()
        for tp in [checked(each) for each in partitions]:
            self._assignment.resume(tp)
        self._pump()

    # Positions

    async def seek(self, tp: TopicPartition, offset: int) -> None:
        """Read on at ``offset``; what was fetched of the partition and not read yet is dropped."""
        self._reader.open_fetcher(to_read=False)
        tp = checked(tp)
        check_offset(tp, offset)
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
        self._reader.open_fetcher(to_read=False)
        deadline = anyio.current_time() + self._seconds(timeout)
        wanted = [checked(tp) for tp in partitions] or self.assignment()
        for tp in wanted:
            self._assignment.seek_to_end_of_log(tp, timestamp)
            self._reader.forget(tp)
        for tp in wanted:
            await self._located(tp, deadline)

    async def position(self, tp: TopicPartition, *, timeout: float | None = None) -> int:
        """The offset of the next record to be read; looked up if it is not known yet.

        RequestTimeoutError if it cannot be found in time (``default_api_timeout_ms`` by default), SecurityError if a
        broker refuses this consumer until then, NoOffsetError if ``auto_offset_reset`` is ``"none"`` and there is no
        position.
        """
        return await self._located(checked(tp), anyio.current_time() + self._seconds(timeout))

    async def _located(self, tp: TopicPartition, deadline: float) -> int:
        while True:
            news = self._reader.open_fetcher(to_read=False).news
            position = self._reader.position(tp)
            if position is not None:
                return position
            error = self._machine.take_error(tp, anyio.current_time())
            self._pump()
            if error is not None:
                raise error
            if not news.is_done and not await wait_for_news(news, deadline):
                trouble = self._machine.trouble.of(self._assignment.state(tp), anyio.current_time())
                raise at_deadline(_late(tp, None if trouble is None else trouble.error), self._refusal([tp]))

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
        listed = await self._look_up(checked_times(timestamps), timeout)
        return {
            tp: OffsetAndTimestamp(each.offset, each.timestamp_ms) if each.offset >= 0 else None
            for tp, each in listed.items()
        }

    async def lag(self, tp: TopicPartition, *, timeout: float | None = None) -> int:
        """How many offsets the position is behind the end of the log."""
        tp, deadline = checked(tp), anyio.current_time() + self._seconds(timeout)
        position = await self._located(tp, deadline)
        ends = await self.end_offsets([tp], timeout=max(0.0, deadline - anyio.current_time()))
        return max(0, ends[tp] - position)

    async def partitions_for_topic(self, topic: str, *, timeout: float | None = None) -> tuple[int, ...]:
        """The partition numbers of any topic; UnknownTopicError if the cluster does not have it."""
        check_topic(topic)
        snapshot = await self._open_client().wait_for_topics([topic], timeout=self._seconds(timeout), needed="READ")
        return snapshot.partitions(topic)

    async def _ends(
        self, timestamp: int, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> dict[TopicPartition, int]:
        listed = await self._look_up({checked(tp): timestamp for tp in partitions}, timeout)
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

    @property
    def _coordinator(self) -> int | None:
        """The group's, if there is a group."""
        return None

    def _refusal(self, partitions: Iterable[TopicPartition]) -> SecurityError | None:
        """That of a leader of these partitions, or of the group's coordinator."""
        client = self._open_client()
        nodes = {*(client.metadata.leader(*tp) for tp in partitions), self._coordinator}
        return client.refusal([each for each in nodes if each is not None] or None)

    def _open_client(self) -> Client:
        self._reader.open_fetcher(to_read=False)
        assert self._client is not None
        return self._client

    def _seconds(self, timeout: float | None) -> float:
        check_timeout(timeout)
        return self._client_config.default_api_timeout_ms / 1000 if timeout is None else timeout

    def _pump(self) -> None:
        if self._reader.fetcher is not None:
            self._reader.fetcher.pump()


def _late(tp: TopicPartition, trouble: KafkaError | None) -> KafkaError:
    """What to raise when a position was not found in time."""
    if isinstance(trouble, UnknownTopicError):
        return trouble
    because = f"; the last attempt ended in: {trouble.message}" if trouble is not None else ""
    late = RequestTimeoutError(f"the position was not found in time{because}", topic=tp[0], partition=tp[1])
    late.__cause__ = trouble
    return late
