"""The group's side of a consumer: partitions come and go as its coordinator says, and positions are committed.

In which order.  Assigned: partitions are read from the group's committed offsets, after the application's listener has
heard of them.  Revoked: nothing more of them is handed out, the application has a moment to finish what it has in hand,
what is finished is committed, the listener hears of it, the partitions go.  Lost: they go, then the listener hears.
The group protocol itself is ``pykafka08.group``'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import anyio

from pykafka08.cluster.client import Client
from pykafka08.config import ConsumerConfig
from pykafka08.consumer.assignment import Assignment
from pykafka08.consumer.commits import Commits
from pykafka08.consumer.fetcher import Fetcher
from pykafka08.consumer.left_behind import LeftBehind
from pykafka08.consumer.polling import PollClock
from pykafka08.consumer.reader import Reader
from pykafka08.consumer.renewals import CLOSE_AGE, Renewals
from pykafka08.consumer.sent_offsets import SentOffsets
from pykafka08.consumer.start_positions import StartPositions
from pykafka08.driver import TaskScope, Waiter, library_logger
from pykafka08.errors import (
    ClosedError,
    ConfigError,
    KafkaError,
    PartitionRevokedError,
    PollIntervalExceededError,
    RequestTimeoutError,
)
from pykafka08.group.coordinator import CLOSE_SECONDS, LEAVE_PATIENCE, GroupCoordinator, RebalanceListener
from pykafka08.group.metadata import GroupMetadata
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import State
from pykafka08.records.record import TopicPartition

__all__ = ["CLOSE_SECONDS", "LEAVE_PATIENCE", "ConsumerMember", "Parts"]

log = library_logger("consumer")

MAX_POLL_INTERVAL = "max_poll_interval_ms"

PATIENCE = 3.0
"""Seconds that a rebalance waits for the application to finish what it has in hand of partitions that go."""

CLOSE_RENEWAL_SECONDS = 1.0
"""Seconds that a close spends on committing unchanged offsets again."""

Partitions = frozenset[TopicPartition]


@dataclass(frozen=True)
class Parts:
    """What a consumer is made of, as its member needs it."""

    client: Client
    config: ConsumerConfig
    group: GroupConfig
    assignment: Assignment
    reader: Reader
    fetcher: Fetcher


class ConsumerMember:
    """Joins the group with :meth:`subscribe`; without it offsets are committed and looked up from outside."""

    def __init__(self, parts: Parts, listener: RebalanceListener | None) -> None:
        self._parts = parts
        self._log = log.bind(**parts.client.facts)
        self._assignment = parts.assignment
        self._reader = parts.reader
        self._listener = listener
        self._topics: frozenset[str] = frozenset()
        self._is_in_doubt = False
        self._owned: Partitions = frozenset()
        """The newest assignment that is known to have all that is read."""
        self.coordinator = self._new_coordinator()
        self.commits = Commits(self.coordinator, parts.assignment, parts.reader, parts.client.facts)
        self.sent = SentOffsets(self.commits, parts.reader)
        self._left_behind = LeftBehind(self.commits, parts.reader)
        self._starts = StartPositions(self.coordinator, parts.assignment, self.commits, parts.fetcher)
        self._is_auto = parts.config.enable_auto_commit
        self._renewals = Renewals(
            self.commits,
            is_auto=self._is_auto,
            # A renewal after the offsets of a transaction would replace them when the transaction ends.
            is_allowed=lambda: not self.sent.is_used,
        )
        self._commits_at_close = True
        self._close_by: float | None = None
        self._closing: Waiter[None] | None = None
        self._auto_commits = TaskScope()
        self._offset_renewal = TaskScope()
        self._exceeded: PollIntervalExceededError | None = None
        self._is_heard: Waiter[None] = Waiter()
        self._is_entering = False

    def start(self) -> None:
        """Begin to look up positions, and to commit."""
        tasks = self._parts.client.tasks
        self._reader.on_check(self._check)
        self._reader.may_hand_out = self._is_session_alive
        self._parts.fetcher.on_start_anew(self._topic_made_again)
        self._parts.fetcher.on_cut_off(self.commits.cut)
        tasks.start("committed offsets", self._starts.run)
        if self._is_auto:
            tasks.start("auto-commit", self._commit_now_and_then)
        tasks.start("offset renewal", self._renew_offsets)

    @property
    def is_subscribed(self) -> bool:
        """True if it reads topics as a member of the group."""
        return bool(self._topics)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group, or read these topics as its member from now on."""
        is_first = not self._topics
        self._topics = frozenset(topics)
        self._assignment.count_partitions(self._topics)
        self.coordinator.subscribe(self._topics)
        if is_first:
            self._parts.client.tasks.start("poll interval", self._watch_polls)

    async def wait_settled(self, *, timeout: float) -> None:
        """Until this member has its partitions and their positions; at the deadline it goes on by itself."""
        deadline = anyio.current_time() + timeout
        self._is_entering = True  # the application cannot ask for records yet
        try:
            await self.coordinator.wait_stable(timeout=timeout)
            with anyio.CancelScope(deadline=deadline):
                while not self._assignment.is_settled():
                    await self._reader.open_fetcher().news
        except RequestTimeoutError as error:
            trouble = self.coordinator.trouble
            cause = str(error) if trouble is None else f"{error}; last: {trouble}"
            self._log.warning("group.not_joined_yet", cause=cause)
        finally:
            self._is_entering = False

    def assigned(self) -> None:
        """The application has assigned partitions, to be read from the group's committed offsets."""
        self._starts.look_again()

    def dropped(self, partitions: Iterable[TopicPartition]) -> None:
        """The application is about to assign others in the place of these."""
        offsets = self.commits.finished(partitions) if self._is_auto else {}
        if offsets:
            timeout = self._parts.client.config.default_api_timeout_ms / 1000
            self._parts.client.tasks.start("last commit", self.commits.commit_quietly, offsets, timeout)
        self.commits.forget(partitions)

    @property
    def is_telling_of_close(self) -> bool:
        """True if the listener asks that hears of partitions because the consumer is being closed."""
        return self._closing is not None and self.coordinator.is_listening

    async def aclose(self, *, commits: bool, timeout: float, leave_patience: float = 0.0) -> None:
        """Commit processed records, if wanted, and leave within ``timeout`` seconds; later calls wait for the first.

        While the coordinator is being replaced, LeaveGroup is retried for ``leave_patience`` seconds more.
        """
        if self._closing is not None:
            with anyio.move_on_after(timeout, shield=True):
                await self._closing
            return
        self._closing = Waiter()
        try:
            await self._leave(commits, timeout, leave_patience)
        finally:
            self._closing.set_result(None)

    async def _leave(self, commits: bool, timeout: float, leave_patience: float) -> None:
        self._commits_at_close = commits
        self._close_by = anyio.current_time() + timeout
        self._auto_commits.cancel()
        self._offset_renewal.cancel()
        if not self._topics and self._assignment.states:
            with anyio.move_on_after(timeout, shield=True):
                await self._finish(frozenset(self._assignment.states))
        left = max(0.0, self._close_by - anyio.current_time())
        await self.coordinator.aclose(timeout=left, leave_patience=leave_patience)

    # What the application calls

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, *, timeout: float
    ) -> dict[TopicPartition, KafkaError]:
        """Of these, or all that was handed out: what was refused, and why."""
        went = self._left_behind.untold() if offsets is None else {}
        wanted = self.commits.handed_out() if offsets is None else offsets
        refused: dict[TopicPartition, KafkaError] = {**self._left_behind.stale(wanted)}
        fresh = {tp: each for tp, each in wanted.items() if tp not in refused}
        try:
            refused |= await self.commits.commit(fresh, timeout=timeout)
        except ClosedError:
            if self._closing is not None:
                raise
            # No call asked for records, so the member left its group: other members may own its partitions now.
            setting = self._parts.group.setting_names[MAX_POLL_INTERVAL]
            refused |= {tp: _left(tp, setting) for tp in fresh}
        done = {tp: each.offset for tp, each in fresh.items() if tp not in refused}
        if offsets is not None:
            for tp in done.keys() & self._assignment.states.keys():
                self._reader.acknowledge(tp, done[tp])  # else the next commit by itself would take it back
        self.sent.committed(done)
        self._left_behind.told({*went, *refused})
        self._left_behind.committed(done)
        return {**went, **refused}

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return await self.coordinator.committed(partitions, timeout=timeout)

    async def commit_now(self) -> None:
        """Commit what is finished, if that is done by itself at all."""
        if self._is_auto:
            await self.commits.commit_finished(None, timeout=self._parts.client.config.default_api_timeout_ms / 1000)

    def group_offsets(self) -> tuple[GroupMetadata, dict[TopicPartition, OffsetAndMetadata]]:
        """Who this is, and where it would read on, for a producer's transaction."""
        if self._is_auto:
            auto_commit = self._parts.config.setting_names["enable_auto_commit"]
            raise ConfigError(f"a transaction commits the consumer's offsets itself: set {auto_commit}=False")
        if self._reader.workload is not None:
            raise ConfigError("process() reads ahead of its handlers: read in a loop what a transaction is to commit")
        group, coordinator = self._parts.group, self.coordinator
        offsets = self.sent.take()
        if offsets and self._topics and coordinator.generation < 0:
            error = PartitionRevokedError(
                "this member is rejoining its group: abort the transaction, then continue to read"
            )
            error.group = group.group_id
            raise error
        member = GroupMetadata(group.group_id, coordinator.generation, coordinator.member_id, group.group_instance_id)
        return member, offsets

    def _check(self) -> None:
        """What ends, or ended, the membership is the application's to know."""
        exceeded, self._exceeded = self._exceeded, None
        if exceeded is not None:
            self._is_heard.set_result(None)
            raise exceeded
        self.coordinator.check()

    def _is_session_alive(self) -> bool:
        """An event loop that stood still may come to the reader first, and hear of the lost session after it."""
        if not self._topics:
            return True
        owned = self.coordinator.assignment
        if owned is not self._owned and self._assignment.states.keys() <= owned:
            self._owned = owned
        self._is_in_doubt = owned is not self._owned or self.coordinator.is_overdue
        return not self._is_in_doubt

    # What the coordinator tells

    async def partitions_assigned(self, added: Partitions) -> None:
        if added:
            self._assignment.take_over(added, is_held=self._listener is not None)
            self._starts.look_again()
        if self._listener is None:
            return
        try:
            await self._listener.partitions_assigned(added)
        finally:
            self._assignment.release(added)
            self._pump()

    async def partitions_revoked(self, partitions: Partitions) -> None:
        self._hold(partitions)
        try:
            await self._finish(partitions)
            if self._listener is not None:
                await self._listener.partitions_revoked(partitions)
        finally:
            self._give_up(partitions)

    async def partitions_lost(self, partitions: Partitions) -> None:
        self._give_up(partitions)
        if self._listener is not None:
            await self._listener.partitions_lost(partitions)

    def _hold(self, partitions: Partitions) -> None:
        for tp in partitions:
            self._assignment.hold(tp)
            self._reader.withhold(tp)
            if self._reader.workload is not None:
                self._reader.workload.drop(tp)

    async def _finish(self, partitions: Partitions) -> None:
        """The next member is not to begin what is under way here, whoever commits it."""
        now = anyio.current_time()
        limit = min(self._parts.group.max_poll_interval_ms / 1000, self.coordinator.rebalance_timeout)
        # The coordinator is to hear of a commit, and that we leave, within what is left of a close.
        left = limit if self._close_by is None else max(0.0, self._close_by - now)
        if self._exceeded is None:
            # Handlers are under way for certain; who reads by hand may never come back.
            patience = left / 2 if self._reader.workload is not None else min(PATIENCE, left / 2)
            await self._reader.wait_finished(partitions, now + patience)
            # The application's: refused once the partitions are gone, it would have come in time all the same.
            await self.commits.wait_ended(partitions, now + patience)
            if self._close_by is None:  # else the very block may be closing this
                await self.sent.wait_ended(now + patience)
        if self._is_auto and self._commits_at_close:
            left = limit if self._close_by is None else max(0.0, self._close_by - anyio.current_time())
            await self.commits.commit_finished(partitions, timeout=left / 2)
        if self._close_by is not None and self._commits_at_close:
            left = max(0.0, self._close_by - anyio.current_time())
            timeout = min(left / 2, CLOSE_RENEWAL_SECONDS)
            await self._renewals.renew(partitions, max_age=CLOSE_AGE, timeout=timeout)

    def _give_up(self, partitions: Partitions) -> None:
        self.sent.partitions_go(partitions)
        self._left_behind.partitions_go(partitions)
        for tp in partitions:
            self._reader.forget(tp)
        self._assignment.give_up(partitions)
        self.commits.forget(partitions)
        self._pump()

    def _pump(self) -> None:
        self._parts.fetcher.pump()
        self._parts.fetcher.wake_readers()

    def _topic_made_again(self, tp: TopicPartition) -> None:
        """What was committed in the old one counts for nothing, nor what a look-up under way will say of it."""
        self.commits.forget([tp])
        self._starts.look_again()

    # Background tasks

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self._parts.client, self._parts.group, self)

        def changed(_: Waiter[None]) -> None:
            if coordinator.state is State.ENDED or self._is_in_doubt:
                self._parts.fetcher.wake_readers()
            if coordinator.state is not State.ENDED:
                coordinator.news.add_done_callback(changed)

        coordinator.news.add_done_callback(changed)
        return coordinator

    async def _commit_now_and_then(self) -> None:
        interval = self._parts.config.auto_commit_interval_ms / 1000
        with self._auto_commits.entered():
            while True:
                await anyio.sleep(interval)
                await self.commit_now()

    async def _renew_offsets(self) -> None:
        with self._offset_renewal.entered():
            await self._renewals.run(self._parts.client.config.default_api_timeout_ms / 1000)

    async def _watch_polls(self) -> None:
        """Leave the group if the application does not ask for records any more; join again when it does."""
        clock = PollClock(self._parts.group.max_poll_interval_ms / 1000, anyio.current_time())
        reader = self._reader
        while True:
            await anyio.sleep(clock.interval)
            progress, is_waiting = reader.progress()
            idle = clock.looked(progress, is_waiting=is_waiting or self._is_entering, now=anyio.current_time())
            if idle > clock.limit and not reader.is_closed:
                await self._leave_for_a_while(idle, clock.limit)
                clock.restart(anyio.current_time())

    async def _leave_for_a_while(self, idle: float, limit: float) -> None:
        setting = self._parts.group.setting_names[MAX_POLL_INTERVAL]
        self._exceeded = PollIntervalExceededError(
            f"no call asked for records for {idle:.1f} s, and {setting} allows {limit:g} s: the consumer has left its "
            f"group; the next call rejoins it",
            idle=idle,
            limit=limit,
        )
        self._exceeded.group = self._parts.group.group_id
        self._log.warning("group.poll_interval_exceeded", idle=idle, limit=limit)
        self._is_heard = Waiter()
        await self.coordinator.aclose(timeout=CLOSE_SECONDS, leave_patience=LEAVE_PATIENCE)
        await self._is_heard
        # A call that outlives its member would give up what the next one has by then.
        await self.coordinator.wait_told()
        self._give_up(frozenset(self._assignment.states))  # what there was no time to tell of
        self.coordinator = self.commits.committer = self._starts.coordinator = self._new_coordinator()
        self.coordinator.subscribe(self._topics)
        self._starts.look_again()


def _left(tp: TopicPartition, setting: str) -> PartitionRevokedError:
    text = f"the offset was not committed: the member has left its group, as no call asked for records within {setting}"
    return PartitionRevokedError(text, topic=tp.topic, partition=tp.partition)
