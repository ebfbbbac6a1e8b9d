"""The driver of a group member: does what ``machine`` says, tells the application, and leaves in bounded time.

The requests of the group protocol are ``exchange``'s.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol
from uuid import uuid4

import anyio

from pykafka08.backoff import Backoff
from pykafka08.cluster.client import Client
from pykafka08.cluster.metadata import Snapshot
from pykafka08.driver import Driver, TaskScope, Waiter, clock, current_task, library_logger
from pykafka08.errors import (
    BrokerError,
    ClosedError,
    ConfigError,
    KafkaError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from pykafka08.errors.deadline import at_deadline
from pykafka08.group.actions import (
    Action,
    Assign,
    FallBack,
    FindCoordinator,
    ListenerCall,
    Lost,
    Note,
    Revoke,
    UseTopics,
)
from pykafka08.group.commit import Objection
from pykafka08.group.contract import Exchange, MemberMachine
from pykafka08.group.exchange import ClassicExchange
from pykafka08.group.loop_lag import watch_loop
from pykafka08.group.machine import GroupMachine
from pykafka08.group.modern.exchange import ModernExchange
from pykafka08.group.modern.machine import ModernMachine
from pykafka08.group.offsets import GroupOffsets, OnFound
from pykafka08.group.old_releases import no_groups_before_0_9
from pykafka08.group.pattern import SubscriptionPattern
from pykafka08.group.reactions import Api
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import SILENT, State
from pykafka08.group.trouble import Trouble, TroubleWatch
from pykafka08.records.record import TopicPartition

__all__ = ["CLOSE_SECONDS", "LEAVE_PATIENCE", "GroupCoordinator", "OffsetAndMetadata", "RebalanceListener"]

log = library_logger("group")

CLOSE_SECONDS = 5.0
"""How long :meth:`GroupCoordinator.aclose` takes at most, unless told otherwise."""
LEAVE_PATIENCE = 15.0
"""Further seconds that a close waits for a new coordinator: a cluster replaces a dead one after 9 s by default."""
ANSWERED_FOR = 5.0
"""Seconds for which an answer to FindCoordinator counts as a sign that some broker is running."""

LOOK_SECONDS = 1.0
"""Seconds between two looks for trouble."""

Partitions = frozenset[TopicPartition]


class RebalanceListener(Protocol):
    """Hears of partitions that come and go, one call at a time; each is cancelled after ``max_poll_interval_ms``.

    What it raises ends the client (ClientFailedError).
    """

    async def partitions_assigned(self, added: Partitions) -> None:
        """These are new; may be none."""

    async def partitions_revoked(self, partitions: Partitions) -> None:
        """Give these up.  They are this member's until it returns: their offsets can still be committed."""

    async def partitions_lost(self, partitions: Partitions) -> None:
        """These are gone already: others may read them, commits for them are refused."""


class GroupCoordinator:
    """One member of one group, on a client that its owner opens and closes.

    Without :meth:`subscribe` it joins nothing, and commits and looks up offsets as an outsider (all that 0.8 has).
    """

    def __init__(self, client: Client, config: GroupConfig, listener: RebalanceListener) -> None:
        self._client = client
        self._config = config
        self._log = log.bind(**{**client.facts, "group_id": config.group_id})
        self._listener = listener
        self._driver: Driver[Action] = Driver(self, self._perform)
        self._machine, self._exchange = self._new_machine(is_modern=config.prefers_new_protocol)
        self._topics: frozenset[str] = frozenset()
        self._offsets = GroupOffsets(client, config, self._machine, self._driver.wake)
        self._offsets.metadata_changed(client.metadata)
        client.on_metadata(self._offsets.metadata_changed)
        self._news: Waiter[None] = Waiter()
        self._now = clock()
        self._answered_at = 0.0
        """The time of the last answer to FindCoordinator."""
        self._state_since = (self._machine.state, self._now())
        self._scope = TaskScope()
        self._watch_scope = TaskScope()
        self._trouble_scope = TaskScope()
        self._trouble = TroubleWatch(self._offsets.requests)
        self._is_watched = False
        self._is_member = False
        self._listening: object = None
        self._call_scope: TaskScope | None = None
        """The task in which the listener is being called, and the call's scope."""
        self._perform_of: dict[type, Callable[[Any], object]] = {
            **self._exchange.perform_of,
            FallBack: self._fall_back,
            FindCoordinator: lambda action: client.tasks.start("group coordinator look-up", self._find, action),
            UseTopics: lambda action: client.use_topics(action.names),
            Note: lambda action: self._log.info(action.event, **action.facts),
            Revoke: self._call,
            Assign: self._call,
            Lost: self._call,
        }

    def _new_machine(self, *, is_modern: bool) -> tuple[MemberMachine, Exchange]:
        client, config, wake = self._client, self._config, self._driver.wake
        settings = client.config
        backoff = Backoff(settings.retry_backoff_ms / 1000, settings.retry_backoff_max_ms / 1000, random.random)
        patience = settings.default_api_timeout_ms / 1000
        if is_modern:
            modern = ModernMachine(config, backoff, str(uuid4()), patience)
            return modern, ModernExchange(client, config, modern, wake)
        classic = GroupMachine(config, backoff, patience)
        return classic, ClassicExchange(client, config, classic, wake)

    def _fall_back(self, action: FallBack) -> None:
        """The machine of the new protocol has ended: one of the classic protocol goes on."""
        self._log.info("group.protocol", protocol="classic", cause=str(action.cause))
        self._machine, self._exchange = self._new_machine(is_modern=False)
        self._offsets.machine = self._machine
        self._perform_of.update(self._exchange.perform_of)
        self._machine.subscribe(self._topics)
        self._exchange.metadata_changed(self._client.metadata)

    # --- what it is -------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._machine.state

    @property
    def state_since(self) -> float:
        """When that state began, in seconds of the event loop's clock."""
        return self._state_since[1]

    @property
    def trouble(self) -> KafkaError | None:
        """The error that ended the membership, the last error that is being retried, or a late answer."""
        if self._machine.error is not None:
            return self._machine.error
        trouble = self._trouble.of(self._joined_machine, self._now())
        return None if trouble is None else trouble.error

    @property
    def fetch_trouble(self) -> Trouble | None:
        """Why the committed offsets cannot be looked up."""
        return self._offsets.requests.trouble(self._now(), Api.OFFSET_FETCH)

    @property
    def _joined_machine(self) -> MemberMachine | None:
        """None outside of the group."""
        return self._machine if self._is_member else None

    @property
    def assignment(self) -> Partitions:
        """The partitions that are this member's now."""
        return self._machine.assigned

    @property
    def member_id(self) -> str:
        return self._machine.membership.member_id

    @property
    def generation(self) -> int:
        """-1 outside of the group."""
        return self._machine.membership.generation

    @property
    def node_id(self) -> int | None:
        """The broker that coordinates the group, None if unknown."""
        return self._machine.coordinator

    @property
    def broker(self) -> str | None:
        """``"host:port (id N)"`` of that broker."""
        broker = None if self.node_id is None else self._client.metadata.brokers.get(self.node_id)
        return None if broker is None else broker.name

    @property
    def group_id(self) -> str:
        return self._config.group_id

    @property
    def rebalance_timeout(self) -> float:
        """Seconds that a rebalance waits for this member: the session's before Kafka 0.10.1."""
        return self._machine.rebalance_timeout

    @property
    def is_leader(self) -> bool:
        return self._machine.is_leader

    @property
    def last_heartbeat(self) -> float | None:
        """When the newest heartbeat with a good answer was sent, in seconds of the event loop's clock."""
        return self._machine.heartbeats.heard_at if self.generation >= 0 else None

    @property
    def is_overdue(self) -> bool:
        """True if the session is over by our own clock, though nobody was told yet: others may have the partitions."""
        machine = self._machine
        is_beating = machine.membership.generation >= 0 and machine.state not in SILENT
        return is_beating and self._now() >= machine.heartbeats.expires_at

    def check(self) -> None:
        """Raise if the membership has ended with an error, or a background task has."""
        self._client.tasks.check()
        if self._machine.error is not None:
            raise self._machine.error

    @property
    def news(self) -> Waiter[None]:
        """Ends when something may have changed: take it before looking, await it after."""
        return self._news

    # --- life -------------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group, or change what this member reads in it: topics by name, and one SubscriptionPattern."""
        every = tuple(topics)
        wanted = frozenset(topic for topic in every if not isinstance(topic, SubscriptionPattern))
        patterns = {str(topic) for topic in every if isinstance(topic, SubscriptionPattern)}
        if not every or len(patterns) > 1:
            raise ConfigError("a member of a group reads at least one topic, and has at most one pattern")
        if isinstance(self._machine, ModernMachine):
            self._machine.subscribe_pattern("".join(patterns))
        elif patterns:
            protocol = self._config.setting_names["group_protocol"]
            raise ConfigError(f"a SubscriptionPattern, whose topics the broker finds, needs {protocol}='consumer'")
        self._topics = wanted
        self._client.use_topics(wanted)
        self._machine.subscribe(wanted)
        if not self._is_member:
            self._is_member = True
            self._metadata_changed(self._client.metadata)
            self._client.on_metadata(self._metadata_changed)
            self._client.tasks.on_failure(self._client_failed)
            self._client.tasks.start("group", self._run)
            self._client.tasks.start("event loop watch", self._watch_loop)
            self._start_watch()
        self._driver.wake()

    async def wait_stable(self, *, timeout: float) -> None:
        """Until this member has its assignment and nothing is being changed; raises what :meth:`check` does.

        RequestTimeoutError at the deadline, or the SecurityError of a broker that refuses this member.
        """
        with anyio.CancelScope(deadline=self._now() + timeout):
            while True:
                news = self._news
                self.check()
                if self._machine.is_settled:
                    return
                if self._scope.is_cancelled:
                    raise ClosedError("the group's member is closed")
                await news
        late = RequestTimeoutError(
            f"group {self._config.group_id!r} was not joined within {timeout} seconds: "
            f"this member is {self._machine.state.value}"
        )
        raise at_deadline(late, self._client.refusal(None if self.node_id is None else [self.node_id]))

    async def aclose(self, *, timeout: float = CLOSE_SECONDS, leave_patience: float = 0.0) -> None:
        """Give up the partitions, leave the group (static members stay in it) and end, within ``timeout`` seconds.

        LeaveGroup is retried for ``leave_patience`` seconds more while brokers answer FindCoordinator: otherwise the
        other members wait until this member's session ends.

        Called by the listener, it is the end of that call: what it would give up goes at once.  A call that still
        runs after that time is cancelled.
        """
        try:
            if self._is_member and not self._scope.is_cancelled:
                if self.is_listening:
                    self._listener_ended()
                self._machine.leave()
                self._driver.wake()
                with anyio.move_on_after(timeout, shield=True):
                    while not self._machine.is_idle and self._client.tasks.failure is None:
                        await self._news
                began = self._now()
                with anyio.move_on_after(leave_patience):  # not shielded: a caller that is cancelled has waited enough
                    while self._machine.is_leave_pending and self._client.tasks.failure is None:
                        with anyio.CancelScope(deadline=max(began, self._answered_at) + ANSWERED_FOR) as silence:
                            await self._news
                        if silence.cancelled_caught:
                            break
        finally:
            self._offsets.close()
            if self._call_scope is not None:
                self._log.warning("group.listener_late", limit=timeout)
                self._call_scope.cancel()
            self._scope.cancel()
            self._watch_scope.cancel()
            self._trouble_scope.cancel()
            self._tell_news()
            # The client may see many members, one after the other.
            self._client.off_metadata(self._metadata_changed)
            self._client.off_metadata(self._offsets.metadata_changed)
            self._client.tasks.off_failure(self._client_failed)

    async def wait_told(self) -> None:
        """Until no call of the listener is under way, also after :meth:`aclose`."""
        while self._call_scope is not None:
            await self._news

    @property
    def is_listening(self) -> bool:
        """True if it is the listener who asks, in the task in which it is called."""
        return self._listening is not None and self._listening is current_task()

    def _client_failed(self, _: KafkaError) -> None:
        self._tell_news()

    async def _run(self) -> None:
        with self._scope.entered():
            await self._driver.run()

    async def _watch_loop(self) -> None:
        def session_timeout() -> float:
            return self._machine.heartbeats.session_timeout if self.generation >= 0 else 0.0

        with self._watch_scope.entered():
            await watch_loop(self._log, session_timeout)

    def _start_watch(self) -> None:
        if not self._is_watched and not self._trouble_scope.is_cancelled:
            self._is_watched = True
            self._client.tasks.start("trouble of the group", self._watch_trouble)

    async def _watch_trouble(self) -> None:
        """Warn of a coordinator that is not there or does not answer."""
        with self._trouble_scope.entered():
            while True:
                await anyio.sleep(LOOK_SECONDS)
                now = self._now()
                trouble = self._trouble.look(self._joined_machine, now)
                if trouble is not None:
                    facts = {"coordinator": self.broker or trouble.error.broker, "seconds": now - trouble.since}
                    self._log.warning("group.in_trouble", **facts, error=str(trouble.error))

    # --- offsets ----------------------------------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout: float | None = None,
        objection: Objection | None = None,
    ) -> dict[TopicPartition, KafkaError]:
        """Commit offsets; the answer has the partitions that were refused, and why: empty if all were committed.

        PartitionRevokedError is the outcome of a partition that is not, or no longer, this member's.  A rebalance is
        waited for.  RequestTimeoutError, AuthorizationError and the like are raised, and then any may be committed.
        ``objection`` is asked before each attempt why a partition's offset must not be sent.
        """
        seconds = self._seconds(timeout)
        self._start_watch()
        return await self._offsets.commit(offsets, is_member=self._is_member, timeout=seconds, objection=objection)

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None, on_found: OnFound | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offsets, None where there is none; ``on_found`` hears of each at once."""
        self._start_watch()
        return await self._offsets.committed(partitions, timeout=self._seconds(timeout), on_found=on_found)

    def _seconds(self, timeout: float | None) -> float:
        return self._client.config.default_api_timeout_ms / 1000 if timeout is None else timeout

    # --- the loop of the driver -------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Action]:
        actions = self._machine.poll(now)
        if self._machine.state is not self._state_since[0]:
            self._state_since = (self._machine.state, now)
            self._log.info("group.state", state=self._machine.state.value)
        self._tell_news()
        return actions

    def next_wakeup(self) -> float | None:
        return self._machine.next_wakeup()

    def _tell_news(self) -> None:
        news, self._news = self._news, Waiter()
        news.set_result(None)

    def _metadata_changed(self, snapshot: Snapshot) -> None:
        self._exchange.metadata_changed(snapshot)
        self._driver.wake()

    def _perform(self, action: Action) -> None:
        self._perform_of[type(action)](action)

    # --- requests ---------------------------------------------------------------------------------------------------

    @property
    def _request_timeout(self) -> float:
        return self._client.config.request_timeout_ms / 1000

    async def _find(self, action: FindCoordinator) -> None:
        machine = self._machine
        try:
            found = await self._offsets.find_coordinator(timeout=self._request_timeout)
        except KafkaError as error:
            if isinstance(error, BrokerError):
                self._answered_at = self._now()
            if isinstance(error, UnsupportedVersionError):
                error = no_groups_before_0_9(error)
            machine.request_failed(action.attempt, Api.FIND_COORDINATOR, error, self._now())
        else:
            self._answered_at = self._now()
            machine.coordinator_found(action.attempt, found.node_id, found.broker)
        self._driver.wake()

    # --- the application --------------------------------------------------------------------------------------------

    def _call(self, call: ListenerCall) -> None:
        partitions = len(call.added if isinstance(call, Assign) else call.partitions)
        self._log.info(f"group.{type(call).__name__.lower()}", partitions=partitions)
        self._call_scope = TaskScope()
        self._client.tasks.start("group listener", self._tell, call, self._call_scope)

    async def _tell(self, call: ListenerCall, call_scope: TaskScope) -> None:
        limit = self._config.max_poll_interval_ms / 1000
        self._listening = current_task()
        try:
            with call_scope.entered(self._now() + limit) as scope:
                if isinstance(call, Assign):
                    await self._listener.partitions_assigned(call.added)
                elif isinstance(call, Revoke):
                    await self._listener.partitions_revoked(call.partitions)
                else:
                    await self._listener.partitions_lost(call.partitions)
            if scope.cancelled_caught and not self._scope.is_cancelled:
                self._log.warning("group.listener_late", limit=limit)
        finally:
            if self.is_listening:  # it has not closed this member
                self._listener_ended()

    def _listener_ended(self) -> None:
        self._listening = self._call_scope = None
        self._machine.listener_ended()
        self._driver.wake()
        self._tell_news()  # the driver may have ended
