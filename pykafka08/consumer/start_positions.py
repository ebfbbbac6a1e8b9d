"""Where a group's partitions begin: a task looks up the committed offset of each that waits for it.

What no answer comes for does not hold up the others, and a look-up that is overtaken (a topic made again, partitions
that came or went) is begun anew: an answer counts only for the state of the partition in which it was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from pykafka08.consumer.assignment import Assignment
from pykafka08.consumer.commits import Commits
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.driver import Wakeup, current_time, library_logger
from pykafka08.errors import AuthorizationError, ClosedError, KafkaError, RequestTimeoutError
from pykafka08.group.coordinator import GroupCoordinator
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition

__all__ = ["StartPositions"]

log = library_logger("consumer")

RETRY_SECONDS = 1.0
"""Between look-ups of committed offsets that end in an error which the application is told."""


class StartPositions:
    """``coordinator`` may be replaced, with a :meth:`look_again`."""

    def __init__(
        self, coordinator: GroupCoordinator, assignment: Assignment, commits: Commits, fetcher: Fetcher
    ) -> None:
        self.coordinator = coordinator
        self._assignment = assignment
        self._commits = commits
        self._fetcher = fetcher
        self._log = commits.log
        self._changed = Wakeup()
        self._resting: dict[TopicPartition, float] = {}
        """When to ask again for partitions that may not be read; the application knows it already."""

    def look_again(self) -> None:
        """There may be other partitions that wait, or the same for another answer."""
        self._changed.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            wanted = self._awaiting()
            if wanted:
                await self._look_up(wanted)
                continue
            # Those whose look-up ended in an error wait until the application has seen it.
            is_told = any(state.awaits_commit for state in self._assignment.states.values())
            await self._changed.wait(anyio.current_time() + RETRY_SECONDS if is_told else None)

    def _awaiting(self) -> dict[TopicPartition, int]:
        if self._resting:
            now = current_time()
            self._resting = {tp: until for tp, until in self._resting.items() if until > now}
        return {tp: epoch for tp, epoch in self._assignment.awaiting_commit().items() if tp not in self._resting}

    async def _look_up(self, wanted: Mapping[TopicPartition, int]) -> None:
        """Until all are found, or something has changed."""
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                while self._awaiting().items() <= wanted.items():
                    await self._changed.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch, name="a look-up that is overtaken")
            await self._ask(wanted)
            tasks.cancel_scope.cancel()

    async def _ask(self, wanted: Mapping[TopicPartition, int]) -> None:
        def found(tp: TopicPartition, committed: OffsetAndMetadata | None) -> None:
            self._take(tp, wanted[tp], committed)

        try:
            await self.coordinator.committed(wanted, on_found=found)
        except ClosedError:
            await self._changed.wait()  # this member has left: the next one asks again
        except RequestTimeoutError as error:
            self._log.warning("committed.late", cause=str(error))
        except KafkaError as error:
            self._refuse(wanted, error)

    def _take(self, tp: TopicPartition, epoch: int, committed: OffsetAndMetadata | None) -> None:
        offset, leader_epoch = (committed.offset, committed.leader_epoch) if committed else (None, -1)
        if self._assignment.committed_found(tp, epoch, offset, leader_epoch):
            self._commits.found(tp, offset)
            self._pump()
        else:
            self.look_again()

    def _refuse(self, wanted: Mapping[TopicPartition, int], error: KafkaError) -> None:
        """The application is told by each partition that cannot be read."""
        refused = wanted.keys() & self._assignment.awaiting_commit().keys()
        if isinstance(error, AuthorizationError) and error.topic is not None:
            refused = {tp for tp in refused if tp.topic == error.topic}
            is_news = [self._assignment.deny(tp) for tp in sorted(refused)]
            self._resting.update(dict.fromkeys(refused, current_time() + RETRY_SECONDS))
            refused = {tp for tp, is_first in zip(sorted(refused), is_news, strict=True) if is_first}
        for tp in refused:
            self._assignment.halt(self._assignment.state(tp), error)
        self._pump()

    def _pump(self) -> None:
        self._fetcher.pump()
        self._fetcher.wake_readers()
