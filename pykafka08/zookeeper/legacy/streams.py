"""The streams of an old consumer: each reads the partitions of one thread, one record after the other.

All streams share what is fetched; a :class:`Turn` shows each only its own.  Before every record, not every batch, the
session is looked at: an application that stood still between two may have lost its partitions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import anyio

from pykafka08.consumer.handing import HandedOut
from pykafka08.consumer.in_hand import wait_for_news
from pykafka08.consumer.machine import ConsumerMachine
from pykafka08.consumer.partition import PartitionState
from pykafka08.consumer.reader import Reader
from pykafka08.driver import Waiter
from pykafka08.errors import ClosedError, ConsumerTimeoutError, KafkaError, SecurityError
from pykafka08.errors.deadline import at_deadline
from pykafka08.records.reader import FetchedBatch
from pykafka08.records.record import Record, TopicPartition

if TYPE_CHECKING:
    from pykafka08.consumer.assignment import Assignment
    from pykafka08.errors import CorruptRecordError

__all__ = ["LegacyStream", "StreamBatches", "Turn"]


class Turn:
    """The part of a consumer's machine that one stream hands out from."""

    def __init__(self, machine: ConsumerMachine, owns: Callable[[TopicPartition], bool]) -> None:
        self._machine = machine
        self._owns = owns

    @property
    def assignment(self) -> Assignment:
        return self._machine.assignment

    def next_batch(self, now: float) -> HandedOut | None:
        """Of its own partitions; those of the others keep their places."""
        assignment = self._machine.assignment
        own: deque[PartitionState] = deque()
        others: deque[PartitionState] = deque()
        for state in assignment.ready:
            (own if self._owns(state.tp) else others).append(state)
        if not own:
            return None
        assignment.ready = own
        try:
            return self._machine.next_batch(now)
        finally:
            assignment.ready = deque([*others, *assignment.ready])

    def position(self, tp: TopicPartition) -> int | None:
        return self._machine.position(tp)

    def records_damaged(self, tp: TopicPartition, offset: int, error: CorruptRecordError, now: float) -> None:
        self._machine.records_damaged(tp, offset, error, now)


class LegacyStream:
    """One thread of a :class:`LegacyConsumer`: an iterator over records, without end, until the consumer is closed.

    A record is finished when the next one is asked for.  One task at a time reads a stream.
    """

    def __init__(
        self,
        number: int,
        machine: ConsumerMachine,
        owns: Callable[[TopicPartition], bool],
        is_sure: Callable[[], bool],
        timeout: float | None,
        refusal: Callable[[], SecurityError | None],
    ) -> None:
        self.number = number
        self._refusal = refusal
        self.reader = Reader(cast("ConsumerMachine", Turn(machine, owns)))
        self.reader.may_hand_out = is_sure
        self.opened: Waiter[None] = Waiter()
        """Ends when there is something to read from, or nothing more to wait for."""
        self._is_sure = is_sure
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"LegacyStream({self.number})"

    def __aiter__(self) -> LegacyStream:
        return self

    async def __anext__(self) -> Record:
        try:
            return await self.next(timeout=self._timeout)
        except ClosedError:
            if not self.reader.is_closed:
                raise
        raise StopAsyncIteration

    async def next(self, *, timeout: float | None = None) -> Record:
        """The next record; ConsumerTimeoutError if none comes within ``timeout`` seconds.

        SecurityError if a broker refuses this consumer at the end of that time.
        """
        reader = self.reader
        if self._is_sure() and not reader.is_closed:
            for record in reader.cursor.records:
                if reader.held:
                    reader.finish()
                return record
        deadline = None if timeout is None else anyio.current_time() + timeout
        while await self._wait_opened(deadline) and await reader.load(deadline):
            if self._is_sure():
                for record in reader.cursor.records:
                    return record
        raise self._late(timeout)

    async def many(self, *, max_records: int = 500, timeout: float | None = None) -> list[Record]:
        """The next records: those that are there, at most ``max_records``, else the first that come.

        Empty if none comes within ``timeout`` seconds.
        """
        deadline = None if timeout is None else anyio.current_time() + timeout
        if not await self._wait_opened(deadline):
            return []
        return await self.reader.take(max_records, deadline)

    def batches(self) -> StreamBatches:
        """Whole batches, cheaper than records; each is finished when the next one is asked for."""
        return StreamBatches(self, self._timeout)

    async def next_batch(self, timeout: float | None) -> FetchedBatch:
        """The next batch; ConsumerTimeoutError or SecurityError."""
        deadline = None if timeout is None else anyio.current_time() + timeout
        if await self._wait_opened(deadline):
            if deadline is None:
                return await self.reader.next_batch()
            with anyio.CancelScope(deadline=deadline):
                return await self.reader.next_batch()
        raise self._late(timeout)

    async def _wait_opened(self, deadline: float | None) -> bool:
        if (self.opened.is_done and self.opened.error is None) or self.reader.is_closed:
            return True
        return await wait_for_news(self.opened, deadline)

    def _late(self, timeout: float | None) -> KafkaError:
        text = f"no record came in stream {self.number} within {timeout:g} s; it can be read on"
        return at_deadline(ConsumerTimeoutError(text), self._refusal())


class StreamBatches:
    """The batches of a stream."""

    __slots__ = ("_stream", "_timeout")

    def __init__(self, stream: LegacyStream, timeout: float | None) -> None:
        self._stream = stream
        self._timeout = timeout

    def __aiter__(self) -> StreamBatches:
        return self

    async def __anext__(self) -> FetchedBatch:
        try:
            return await self._stream.next_batch(self._timeout)
        except ClosedError:
            if not self._stream.reader.is_closed:
                raise
        raise StopAsyncIteration
