"""What a consumer has committed, and commits next: finished offsets by itself, any offsets for the application.

What is finished is ``reader``'s to say; when to commit is ``member``'s.  Commits may overlap: ``group.offsets`` sees to
it that the one that began last counts.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

import anyio

from pykafka08.consumer.assignment import Assignment
from pykafka08.consumer.in_hand import wait_for_news
from pykafka08.consumer.reader import Reader
from pykafka08.driver import Waiter, library_logger
from pykafka08.errors import KafkaError
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["Commits"]

log = library_logger("consumer")


class Committer(Protocol):
    """Who sends commits; answers with the partitions that were refused."""

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout: float | None = None
    ) -> dict[TopicPartition, KafkaError]: ...

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...


class Commits:
    """The commits of one consumer; ``committer`` may be replaced, ``facts`` are in each log line."""

    def __init__(
        self, committer: Committer, assignment: Assignment, reader: Reader, facts: Mapping[str, str] | None = None
    ) -> None:
        self.committer = committer
        self.log = log.bind(**(facts or {}))
        self._assignment = assignment
        self._reader = reader
        self._known: dict[TopicPartition, int] = {}
        self._starts: dict[TopicPartition, int] = {}
        self._newest: dict[TopicPartition, object] = {}
        """What began last of what is sent for a partition: it alone says what is known."""
        self._ends: Waiter[None] = Waiter()
        self._written: dict[TopicPartition, OffsetAndMetadata] = {}
        """The last committed offset of each partition."""
        self._checked_at: dict[TopicPartition, float] = {}
        """The time of that commit, or of the last look-up for a renewal."""

    def found(self, tp: TopicPartition, offset: int | None) -> None:
        """The group's committed offset of a partition, as it was looked up."""
        if offset is None:
            self._known.pop(tp, None)
        else:
            self._known[tp] = self._starts[tp] = offset

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Others may commit for these from now on."""
        for tp in partitions:
            self._known.pop(tp, None)
            self._starts.pop(tp, None)
            self._newest.pop(tp, None)
            self._written.pop(tp, None)
            self._checked_at.pop(tp, None)

    def cut(self, tp: TopicPartition, end_offset: int) -> None:
        """The log was cut at ``end_offset``, or is that of another topic: offsets behind it are not renewed."""
        written = self._written.get(tp)
        if written is not None and written.offset > end_offset:
            del self._written[tp]

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout: float
    ) -> dict[TopicPartition, KafkaError]:
        """Commit these offsets: what was refused, and why."""
        return await self._send(offsets, timeout)

    def handed_out(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit without being told; all of it is finished by that.

        What handlers share is read ahead of them: of that only what is finished counts.
        """
        if self._reader.workload is not None:
            return self._found(self._reader.finished)
        offsets = self.positions()
        for tp, each in offsets.items():
            self._reader.acknowledge(tp, each.offset)
        return offsets

    async def commit_finished(self, partitions: Iterable[TopicPartition] | None, *, timeout: float) -> None:
        """Commit what is finished of these partitions, or all, and not committed yet; failures go to the log."""
        await self.commit_quietly(self.finished(partitions), timeout)

    async def commit_quietly(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float) -> None:
        """Commit these; failures go to the log."""
        await self._quietly(self._send(offsets, timeout), len(offsets))

    async def renew(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float) -> None:
        """Commit unchanged offsets again; failures are logged."""
        await self._quietly(self._send(offsets, timeout, is_renewal=True), len(offsets))

    async def _quietly(self, sending: Coroutine[Any, Any, dict[TopicPartition, KafkaError]], count: int) -> None:
        try:
            refused = await sending
        except KafkaError as error:
            self.log.warning("commit.failed", partitions=count, cause=str(error))
            return
        for tp, why in refused.items():
            self.log.warning("commit.refused", topic=tp.topic, partition=tp.partition, cause=str(why))

    async def _send(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float, *, is_renewal: bool = False
    ) -> dict[TopicPartition, KafkaError]:
        if not offsets:
            return {}
        this, sent_at = object(), anyio.current_time()
        for tp in offsets:
            if not is_renewal:  # a renewal leaves the offset as it is, whatever its outcome
                self._known.pop(tp, None)  # until the outcome is known
            self._newest[tp] = this
        refused: dict[TopicPartition, KafkaError] | None = None
        try:
            refused = await self.committer.commit(offsets, timeout=timeout)
        finally:
            for tp, each in offsets.items():
                if self._newest.get(tp) is this:
                    del self._newest[tp]
                    if refused is not None and tp not in refused and tp in self._assignment.states:
                        self._known[tp] = each.offset
                        self._written[tp] = each
                        self._checked_at[tp] = sent_at
            self._ends.set_result(None)
        return refused

    async def wait_ended(self, partitions: Iterable[TopicPartition], deadline: float) -> None:
        """Until no commit of these is under way, or the deadline."""
        wanted = set(partitions)
        while not wanted.isdisjoint(self._newest):
            self._ends = Waiter() if self._ends.is_done else self._ends
            if not await wait_for_news(self._ends, deadline):
                return

    def known(self, tp: TopicPartition) -> int | None:
        """The committed offset, as far as this consumer knows."""
        return self._known.get(tp)

    def started_at(self, tp: TopicPartition) -> int | None:
        """The committed offset with which the partition came, None if there was none."""
        return self._starts.get(tp)

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read on."""
        return self._found(self._reader.position)

    def _found(self, offset_of: Callable[[TopicPartition], int | None]) -> dict[TopicPartition, OffsetAndMetadata]:
        found = {tp: offset_of(tp) for tp in self._assignment.states}
        return {tp: self._described(tp, offset) for tp, offset in found.items() if offset is not None}

    def finished(self, partitions: Iterable[TopicPartition] | None) -> dict[TopicPartition, OffsetAndMetadata]:
        """What is finished of these, or all, and not committed yet."""
        states = self._assignment.states
        wanted = states.keys() if partitions is None else states.keys() & set(partitions)
        found = {tp: self._reader.finished(tp) for tp in wanted}
        return {
            tp: self._described(tp, offset)
            for tp, offset in found.items()
            if offset is not None and offset != self._known.get(tp)
        }

    def renewable(self, *, is_auto: bool) -> dict[TopicPartition, tuple[OffsetAndMetadata, float | None]]:
        """Committed offsets that may be committed again, each with the time of its last commit or look-up.

        With auto-commit these are the positions that are committed, without it what :meth:`commit` has written.
        """
        known, states = self._known, self._assignment.states
        offsets = self._found(self._reader.finished) if is_auto else self._written
        return {
            tp: (each, self._checked_at.get(tp))
            for tp, each in offsets.items()
            if tp in states and each.offset == known.get(tp) and tp not in self._newest
        }

    def checked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """Note that the committed offsets of ``partitions`` were looked up for a renewal."""
        self._checked_at.update(dict.fromkeys(partitions, now))

    def _described(self, tp: TopicPartition, offset: int) -> OffsetAndMetadata:
        state = self._assignment.states[tp]
        return OffsetAndMetadata(offset, state.position_epoch if offset == state.position else -1)
