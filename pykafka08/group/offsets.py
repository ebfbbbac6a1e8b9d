"""Committing offsets and looking them up, with retries up to a deadline; with a group membership or without.

Brokers before 0.9 have no groups but keep offsets: 0.8.2 in Kafka, 0.8.1 in ZooKeeper, through any broker.  What is
retried, refused or raised stands in ``reactions``.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar
from uuid import UUID

import anyio

from pykafka08.backoff import Backoff
from pykafka08.cluster.client import Client
from pykafka08.cluster.metadata import Snapshot
from pykafka08.driver import current_time
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    ClosedError,
    ConfigError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    SecurityError,
    TransportError,
    UnsupportedVersionError,
)
from pykafka08.errors.deadline import refusal_of, with_refusal
from pykafka08.group.actions import Membership
from pykafka08.group.commit import LOSSES, Commit, Objection
from pykafka08.group.contract import MemberMachine
from pykafka08.group.old_releases import UNCERTAIN, versions_of_0_8
from pykafka08.group.reactions import (
    Api,
    Reaction,
    group_error,
    invalid_answer_error,
    reaction_to,
    reaction_to_failure,
)
from pykafka08.group.requests import CommitCall, FindCall, FoundCoordinator, OffsetAndMetadata, OffsetFetchCall
from pykafka08.group.settings import GroupConfig
from pykafka08.group.trouble import OffsetRequests
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.schema import Request, Response
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = ["GroupOffsets", "OnFound"]

R = TypeVar("R", bound=Response)
OnFound = Callable[[TopicPartition, "OffsetAndMetadata | None"], None]


class GroupOffsets:
    """The committed offsets of one group, as one client sees them; ``wake`` tells the driver of ``machine`` of news."""

    def __init__(
        self,
        client: Client,
        config: GroupConfig,
        machine: MemberMachine,
        wake: Callable[[], None],
        *,
        needed: str | None = "READ",
    ) -> None:
        self._needed = needed
        self._client = client
        self._config = config
        self.machine = machine
        self._wake = wake
        self.requests = OffsetRequests(config.group_id)
        self._node: int | None = None
        self._has_coordinators = True
        self._is_closed = False
        self._old: BrokerVersions | None = None
        self._last_ids: dict[str, UUID] = {}
        self._under_way: dict[TopicPartition, list[Commit]] = {}
        """The commits of each partition in the order in which they began."""

    def metadata_changed(self, snapshot: Snapshot) -> None:
        """Note the ids of topics, for when they are missing."""
        ids = {name: topic.topic_id for name, topic in snapshot.topics.items()}
        self._last_ids.update({name: topic_id for name, topic_id in ids.items() if topic_id is not None})

    def close(self) -> None:
        """Calls that wait for another attempt raise ClosedError instead."""
        self._is_closed = True

    async def find_coordinator(self, *, timeout: float) -> FoundCoordinator:
        """The coordinator that one broker names now; BrokerError if the answer has an error code."""
        call = FindCall(self._config.group_id, self._needed)
        if self._old is None:
            node, response = await self._client.ask_any(call, timeout=timeout)
        else:
            node = self._any_node()
            response = await self._ask(node, call, anyio.current_time() + timeout)
        return call.read(response, self._name_of(node))

    async def is_in_kafka(self, *, timeout: float) -> bool:
        """False where the brokers keep offsets in ZooKeeper alone, or none: before 0.8.2."""
        deadline = anyio.current_time() + timeout
        found: list[int | None] = []

        async def once() -> bool | KafkaError:
            found.append(await self._coordinator(deadline))
            return True

        try:
            await self._repeat(Api.FIND_COORDINATOR, deadline, once)
        except UnsupportedVersionError:
            return False
        return found[-1] is not None

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        is_member: bool,
        timeout: float,
        objection: Objection | None = None,
    ) -> dict[TopicPartition, KafkaError]:
        """Commit; the answer has the partitions that were refused, and why.  Raises where nothing can be committed.

        Where commits overlap, the one that began last counts: those before it are done with when it is acknowledged,
        and go on by themselves if it ends without that; with its offsets, if these may be written all the same.
        ``objection`` says of a partition why it must not be sent, and is asked before each attempt.
        """
        for tp, each in offsets.items():
            if each.offset < 0:
                raise ConfigError(f"offset {each.offset} does not exist", topic=tp[0], partition=tp[1])
        attempt = Commit(
            self.machine,
            offsets,
            is_member=is_member,
            topic_id=self._topic_id,
            now=current_time,
            objection=objection,
        )
        for tp in offsets:
            self._under_way.setdefault(tp, []).append(attempt)
        deadline = anyio.current_time() + timeout
        try:
            await self._repeat(Api.OFFSET_COMMIT, deadline, lambda: self._commit_once(attempt, deadline))
        finally:
            for tp in offsets:
                for older in self._before(attempt, tp):
                    attempt.leave_to(older)
                self._under_way[tp].remove(attempt)
                if not self._under_way[tp]:
                    del self._under_way[tp]
            attempt.ended.set_result(None)
        return attempt.refused

    async def _commit_once(self, attempt: Commit, deadline: float) -> bool | KafkaError:
        """True if all partitions have an outcome, else the error in the answer, or False without one."""
        attempt.refuse_strangers()
        node = await self._coordinator(deadline) if attempt.pending else None
        # From here to the sending nothing awaits: an older commit is never sent after a newer one.
        attempt.refuse_strangers()
        newer = {tp: self._newest(tp) for tp in attempt.pending}
        offsets = {tp: each for tp, each in attempt.pending.items() if newer[tp] is attempt}
        if not offsets:
            for each in set(newer.values()):
                with anyio.CancelScope(deadline=deadline):
                    await each.ended
            return not attempt.pending
        membership = attempt.membership()
        call = CommitCall(self._config, membership, offsets, _ids_of(offsets, self._topic_id))
        attempt.sent(offsets)
        codes = call.read(await self._ask_noted(Api.OFFSET_COMMIT, node, call, deadline))
        broker = self._name_of(node)
        answered = [tp for tp in offsets if tp in codes and tp in attempt.pending]
        reactions = [self._take(attempt, tp, codes[tp], membership, broker) for tp in answered]
        self._wake()
        self._mind(reactions, node)
        self._check_complete(Api.OFFSET_COMMIT, offsets.keys() - codes.keys(), broker)
        return not attempt.pending or attempt.trouble or False

    def _newest(self, tp: TopicPartition) -> Commit:
        """Of the commits that have no outcome for the partition yet."""
        return next(each for each in reversed(self._under_way[tp]) if tp in each.pending)

    def _take(
        self, attempt: Commit, tp: TopicPartition, code: int, membership: Membership, broker: str | None
    ) -> Reaction:
        reaction = attempt.take(tp, code, membership, broker)
        if reaction is Reaction.PROCEED:
            for older in self._before(attempt, tp):
                older.pending.pop(tp, None)
        return reaction

    def _before(self, attempt: Commit, tp: TopicPartition) -> list[Commit]:
        """Those that began before it."""
        every = self._under_way[tp]
        return every[: every.index(attempt)]

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float, on_found: OnFound | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offset of each partition, None where there is none; ``on_found`` hears of each at once."""
        wanted = frozenset(TopicPartition(*tp) for tp in partitions)
        found: dict[TopicPartition, OffsetAndMetadata | None] = {}

        def take(tp: TopicPartition, committed: OffsetAndMetadata | None) -> None:
            found[tp] = committed
            if on_found is not None:
                on_found(tp, committed)

        async def once() -> bool | KafkaError:
            missing = wanted - found.keys()
            trouble = await self._fetch_once(missing, take, deadline) if missing else None
            return trouble or not wanted - found.keys()

        deadline = anyio.current_time() + timeout
        await self._repeat(Api.OFFSET_FETCH, deadline, once)
        return found

    async def _fetch_once(
        self, missing: frozenset[TopicPartition], take: OnFound, deadline: float
    ) -> KafkaError | None:
        """The reason why partitions have no answer yet; None if all have one."""
        node = await self._coordinator(deadline)
        call = OffsetFetchCall(self._config, missing, _ids_of(missing, self._client.metadata.topic_id))
        code, fetched = call.read(await self._ask_noted(Api.OFFSET_FETCH, node, call, deadline))
        broker, group = self._name_of(node), self._config.group_id
        if code:
            raise group_error(code, api=Api.OFFSET_FETCH, group=group, broker=broker, needed=self._needed)
        for each in fetched:
            if each.fault is not None:
                raise invalid_answer_error(each.fault, api=Api.OFFSET_FETCH, group=group, broker=broker, tp=each.tp)
        reactions = [(each, reaction_to(Api.OFFSET_FETCH, each.error_code)) for each in fetched if each.tp in missing]
        troubles: dict[Reaction, KafkaError] = {}
        for each, reaction in reactions:
            if reaction is Reaction.PROCEED:
                take(each.tp, each.committed)
            else:
                error = group_error(
                    each.error_code,
                    api=Api.OFFSET_FETCH,
                    group=group,
                    broker=broker,
                    tp=each.tp,
                    needed=self._needed,
                )
                troubles.setdefault(reaction, error)
        if Reaction.FAIL in troubles:
            raise troubles[Reaction.FAIL]
        self._mind(troubles, node)
        self._check_complete(Api.OFFSET_FETCH, missing - {each.tp for each in fetched}, broker)
        return next(iter(troubles.values()), None)

    # --- what both do -----------------------------------------------------------------------------------------------

    def _check_complete(self, api: Api, left_out: Iterable[TopicPartition], broker: str | None) -> None:
        """RemoteProtocolError if an answer says nothing about partitions that were in the request."""
        for tp in left_out:
            fault = "the answer leaves the partition out"
            raise invalid_answer_error(fault, api=api, group=self._config.group_id, broker=broker, tp=tp)

    def _name_of(self, node: int | None) -> str | None:
        """``"host:port (id N)"`` of a broker."""
        broker = None if node is None else self._client.metadata.brokers.get(node)
        return None if broker is None else broker.name

    async def _repeat(self, api: Api, deadline: float, once: Callable[[], Awaitable[bool | KafkaError]]) -> None:
        """Call ``once`` until it returns True, with pauses; errors that a retry may fix are raised at the deadline.

        ``once`` returns an error where an answer asks for another attempt.
        """
        config = self._client.config
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, random.random)
        self.requests.call_began(api)
        try:
            await self._repeat_noted(api, deadline, once, backoff)
        finally:
            self.requests.call_ended(api)

    async def _repeat_noted(
        self, api: Api, deadline: float, once: Callable[[], Awaitable[bool | KafkaError]], backoff: Backoff
    ) -> None:
        cause: KafkaError | None = None
        refusal: SecurityError | None = None
        while True:
            self._client.tasks.check()
            if self._is_closed:
                raise ClosedError("the group's member is closed", api=api.value)
            began_at = anyio.current_time()
            try:
                outcome = await once()
                if outcome is True:
                    self.requests.succeeded(api)
                    return
                if isinstance(outcome, KafkaError):
                    self._note_outcome(api, outcome, began_at)
                cause, refusal = outcome or cause, None
            except KafkaError as error:
                reaction = reaction_to_failure(Api(error.api) if error.api in _APIS else api, error)
                if reaction in (Reaction.FAIL, Reaction.REFUSE) or reaction in LOSSES:  # the last: an outsider's commit
                    self.requests.succeeded(api)  # the caller gets the error
                    raise
                told: KafkaError = error
                if isinstance(error, RemoteProtocolError) and error.api is None:  # the connection's, for all requests
                    told = invalid_answer_error(
                        error.message, api=api, group=self._config.group_id, broker=error.broker
                    )
                self.requests.failed(api, told, began_at, anyio.current_time())
                refusal = refusal_of(error) or refusal
                if cause is None or not isinstance(error, RequestTimeoutError):
                    cause = error  # what the brokers said tells more than that the time was over then
                self._mind([reaction], None)
            pause = backoff.failed()
            if anyio.current_time() + pause >= deadline:
                raise self._late(api, cause) from (None if cause is None else with_refusal(cause, refusal))
            await anyio.sleep(pause)

    def _note_outcome(self, api: Api, error: KafkaError, began_at: float) -> None:
        """Note an answer that asks for another attempt; a commit that waits for a rebalance is no trouble."""
        is_rebalance = isinstance(error, BrokerError) and (
            error.code in REBALANCES or reaction_to(api, error.code) in LOSSES
        )
        if api is Api.OFFSET_COMMIT and is_rebalance:
            self.requests.succeeded(api)
        else:
            self.requests.failed(api, error, began_at, current_time())

    def _late(self, api: Api, cause: KafkaError | None) -> KafkaError:
        """The error at the deadline; ``cause`` is the last failure other than a time-out."""
        broker = cause.broker if cause is not None else None
        if isinstance(cause, RemoteProtocolError):
            text = f"the coordinator sent no valid answer before the deadline: {cause.message}"
            has_place = cause.topic is not None and cause.partition is not None
            tp = TopicPartition(cause.topic or "", cause.partition or 0) if has_place else None
            return invalid_answer_error(text, api=api, group=self._config.group_id, broker=broker, tp=tp)
        if isinstance(cause, BrokerError):
            said_by = "the brokers" if cause.api == Api.FIND_COORDINATOR.value else "the coordinator"
            text = f"{said_by} still answered with an error at the deadline: {cause.message}"
        else:
            why = f"; the last attempt ended in: {cause.message}" if cause is not None else ""
            text = f"the coordinator did not answer in time{why}"
        late = RequestTimeoutError(text, broker=broker, api=api.value)
        late.group = self._config.group_id
        return late

    async def _coordinator(self, deadline: float) -> int | None:
        """Node id; None where any broker will do (0.8.1)."""
        known = self.machine.coordinator if self.machine.coordinator is not None else self._node
        if known is not None:
            return known
        if not self._has_coordinators:
            return None
        now = anyio.current_time()
        request = self.requests.sent(Api.FIND_COORDINATOR, None, now)
        try:
            found = await self.find_coordinator(timeout=max(0.0, deadline - now))
            self._node = found.node_id
        except UnsupportedVersionError:
            await self._learn_release(deadline)
            return await self._coordinator(deadline)
        finally:
            self.requests.ended(request)
        return self._node

    async def _learn_release(self, deadline: float) -> None:
        """What a broker without FindCoordinator does have: 0.8 does not say."""
        node = self._any_node()
        versions = await self._client.versions(node, timeout=max(0.0, deadline - anyio.current_time()))
        if versions.release_guess == UNCERTAIN:
            versions = self._old = await versions_of_0_8(self._client, node, self._config.group_id, deadline)
        self._has_coordinators = versions.serves(FindCoordinatorRequest)

    def _any_node(self) -> int:
        nodes = sorted(self._client.metadata.brokers)
        if not nodes:
            raise TransportError("the cluster's metadata names no broker; it is asked for again")
        return random.choice(nodes)  # noqa: S311 - spreads load

    async def _ask_noted(
        self, api: Api, node: int | None, call: Callable[[BrokerVersions], Request[R]], deadline: float
    ) -> R:
        request = self.requests.sent(api, self._name_of(node), anyio.current_time())
        try:
            return await self._ask(node, call, deadline)
        finally:
            self.requests.ended(request)

    async def _ask(self, node: int | None, call: Callable[[BrokerVersions], Request[R]], deadline: float) -> R:
        left = max(0.0, deadline - anyio.current_time())
        if self._old is None and node is None:
            return await self._client.request_any(call, timeout=left)
        most = min(left, self._client.config.request_timeout_ms / 1000)
        target = node if node is not None else self._any_node()
        if self._old is None:
            return await self._client.request(target, call, timeout=most)
        request = call(self._old)
        return await self._client.request(target, request, timeout=most, version=self._old.pick(type(request)))

    def _mind(self, reactions: Iterable[Reaction], node: int | None) -> None:
        """Forget what was wrong about the cluster."""
        wrong = set(reactions)
        if not wrong.isdisjoint((Reaction.FIND_COORDINATOR, Reaction.FIND_THEN_FAIL)):
            stale = node if node is not None else self.machine.coordinator
            self._node = None
            if stale is not None:
                self.machine.coordinator_lost(stale)
                self._wake()
        if Reaction.REFRESH in wrong:
            self._client.invalidate(self._client.metadata.generation)

    def _topic_id(self, topic: str) -> UUID | None:
        """While metadata misses the topic, the id that it had last: what was read is of that one."""
        return self._client.metadata.topic_id(topic) or self._last_ids.get(topic)


def _ids_of(partitions: Iterable[TopicPartition], topic_id: Callable[[str], UUID | None]) -> dict[str, UUID]:
    """Of the topics whose ids are known."""
    ids = {tp.topic: topic_id(tp.topic) for tp in partitions}
    return {topic: known for topic, known in ids.items() if known is not None}


REBALANCES = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH)
"""Answers to OffsetCommit that are part of a rebalance."""

_APIS = frozenset(api.value for api in Api)
