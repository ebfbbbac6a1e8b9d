"""The driver beside the machine of an old group's member: performs its steps on ZooKeeper, feeds it what happens.

Two tasks: one takes in the session's events in their order, the other performs one step at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from pykafka08.driver import Waiter, Wakeup, current_time, library_logger
from pykafka08.errors import (
    ClosedError,
    KafkaError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    ZooKeeperConnectionError,
)
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Event, NodeEvent, SessionLost, Suspended
from pykafka08.zookeeper.legacy.reading import Reading
from pykafka08.zookeeper.machine import LegacyMember, State
from pykafka08.zookeeper.steps import (
    CreateNodes,
    DeleteNodes,
    ListChildren,
    ReadNodes,
    Seen,
    StartReading,
    Step,
    StopReading,
)

__all__ = ["Membership"]

log = library_logger("zookeeper")

T = TypeVar("T")


class Membership:
    """One member of one group, from :meth:`start` to :meth:`leave`."""

    def __init__(self, zk: ZooKeeper, machine: LegacyMember, reading: Reading) -> None:
        self._zk = zk
        self._machine = machine
        self._reading = reading
        self._wakeup = Wakeup()
        self._left: Waiter[None] = Waiter()
        self._told: dict[str, str | None] = {}
        self.news: Waiter[None] = Waiter()
        """Ends when the machine may be elsewhere: take it before looking."""
        self.commits_at_close = True
        self._perform_of: dict[type, Callable[[Any], Awaitable[Any]]] = {
            ListChildren: self._list,
            ReadNodes: self._read,
            CreateNodes: self._create,
            DeleteNodes: self._delete,
            StartReading: self._start_reading,
            StopReading: self._stop_reading,
        }

    # Events

    async def follow_events(self) -> None:
        """Until the session is closed."""
        self._take_connected(is_new=True)
        with suppress(ClosedError):
            while True:
                event = await self._zk.next_event()
                if event is not None:
                    self._take(event)
                    self._wakeup.set()

    def _take(self, event: Event) -> None:
        now = current_time()
        if isinstance(event, NodeEvent):
            if event.path == paths.BROKER_IDS:
                self._reading.brokers_changed()
            self._machine.node_changed(event.path, now)
        elif isinstance(event, Suspended):
            self._tell("connection", f"the connection to ZooKeeper {self._zk.servers} is gone; reading goes on while"
                       " the session lives")  # fmt: skip
            self._machine.suspended(self._unreachable())
        elif isinstance(event, SessionLost):
            self._tell("connection", "the session with ZooKeeper is over, or may be: reading has stopped")
            self._reading.session_lost()
            self._machine.session_lost(self._unreachable())
        elif (
            not event.is_new
            or self._reading.session_number != self._zk.session_number
            or self._machine.state is State.DISCONNECTED  # a loss that lay behind it was of an older session
        ):
            self._take_connected(is_new=event.is_new)

    def _take_connected(self, *, is_new: bool) -> None:
        if self._zk.session_id is None:
            return
        self._reading.session_began(self._zk.session_number)
        self._tell("connection", None)
        self._machine.connected(current_time(), is_new=is_new)
        self._reading.wake()
        self._wakeup.set()

    def _unreachable(self) -> ZooKeeperConnectionError:
        return ZooKeeperConnectionError(self._zk.trouble or "the connection to ZooKeeper is gone")

    # Steps

    async def work(self) -> None:
        """Until this member has left."""
        machine = self._machine
        while not machine.is_done:
            step = machine.poll(anyio.current_time())
            self._tell_state()
            if step is None:
                if not machine.is_done:
                    await self._wakeup.wait(machine.next_wakeup())
                continue
            try:
                answer = await self._perform_of[type(step)](step)
            except KafkaError as error:
                log.debug("step.failed", group_id=machine.profile.group, step=type(step).__name__, cause=str(error))
                machine.step_failed(error, anyio.current_time())
            else:
                machine.step_done(answer)
        self._left.set_result(None)
        self._tell_state()

    async def leave(self) -> None:
        """Stop reading, with a last commit."""
        self._machine.closed()
        self._wakeup.set()
        await self._left

    def _tell_state(self) -> None:
        machine = self._machine
        if machine.state is State.FAILED and machine.failure is not None:
            self._tell("share", str(machine.failure))
        elif machine.state is State.SETTLED:
            self._tell("share", None)
            outcome = machine.outcome
            if outcome is not None:
                missing = ", ".join(outcome.missing)
                self._tell("missing", f"waits for topics that do not exist: {missing}" if missing else None)
                idle = ", ".join(outcome.idle_threads) if not outcome.missing else ""
                self._tell("idle", f"has more threads than partitions; idle: {idle}" if idle else None)
        news, self.news = self.news, Waiter()
        news.set_result(None)

    def _tell(self, topic: str, text: str | None) -> None:
        """One line when something begins to be so, and when it is over."""
        if self._told.get(topic) == text:
            return
        was = self._told.get(topic)
        self._told[topic] = text
        group = self._machine.profile.group
        if text is not None:
            log.warning("group.trouble", group_id=group, what=text)
        elif was is not None:
            log.info("group.recovered", group_id=group, what=topic)

    async def _list(self, step: ListChildren) -> tuple[str, ...]:
        names = await self._if_there(step.path, step.watch, self._zk.children)
        return () if names is None else tuple(names)

    async def _read(self, step: ReadNodes) -> dict[str, Seen]:
        found: dict[str, Seen] = {}
        session_id = self._session()

        async def read(path: str) -> None:
            node = await self._if_there(path, step.watch, self._zk.read)
            if node is not None:
                found[path] = Seen(node.data, node.stat.ephemeral_owner == session_id)

        await self._all(read, step.paths)
        return found

    async def _if_there(self, path: str, watch: bool, read: Callable[..., Awaitable[T]]) -> T | None:
        """What ``read`` gives, None if there is no node; then, with ``watch``, it is told when there is."""
        while True:
            with suppress(NoNodeError):
                return await read(path, watch=watch)
            if not watch or await self._zk.exists(path, watch=True) is None:
                return None

    async def _create(self, step: CreateNodes) -> set[str]:
        made: set[str] = set()

        async def create(path: str) -> None:
            self._session()
            try:
                await self._zk.create(path, step.nodes[path], ephemeral=True, make_parents=True)
            except NodeExistsError:
                return
            made.add(path)

        await self._all(create, tuple(step.nodes))
        return made

    async def _delete(self, step: DeleteNodes) -> None:
        async def delete(path: str) -> None:
            self._session()
            try:
                await self._zk.delete(path)
            except NoNodeError:
                return

        await self._all(delete, step.paths)

    def _session(self) -> int:
        """The id of the session that the machine knows; SessionExpiredError if that may be over."""
        session_id = self._zk.session_id
        if session_id is None or not self._zk.is_session_sure(self._reading.session_number):
            raise SessionExpiredError("the session is over, or may be")
        return session_id

    async def _all(self, do: Callable[[str], Awaitable[None]], each_of: tuple[str, ...]) -> None:
        """For all at the same time; the first error ends the others."""
        failed: list[KafkaError] = []

        async def guarded(path: str) -> None:
            try:
                await do(path)
            except KafkaError as error:
                failed.append(error)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for path in each_of:
                tasks.start_soon(guarded, path)
        if failed:
            raise failed[0]

    async def _start_reading(self, step: StartReading) -> None:
        log.info("group.started", group_id=self._machine.profile.group, partitions=_names(step.partitions))
        self._reading.take_over(step.partitions, step.counts)
        await self._reading.told_of(frozenset(step.partitions))

    async def _stop_reading(self, step: StopReading) -> None:
        log.info(
            "group.stopped",
            group_id=self._machine.profile.group,
            partitions=_names(dict.fromkeys(step.partitions)),
            is_lost=step.is_lost,
        )
        if step.is_lost:
            await self._reading.lose(step.partitions)
        else:
            await self._reading.stop(step.partitions, commits=self.commits_at_close)


def _names(partitions: Mapping[Any, object] | Step) -> str:
    assert isinstance(partitions, Mapping)
    return ",".join(f"{tp.topic}-{tp.partition}" for tp in sorted(partitions))
