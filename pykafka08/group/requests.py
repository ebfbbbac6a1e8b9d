"""The requests of a group member, in the version a broker serves, and their answers.

Each call is made when the broker's versions are known: that is what ``Client.submit`` takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import NamedTuple, TypedDict
from uuid import UUID

from pykafka08.errors import UnsupportedVersionError
from pykafka08.group.actions import Heartbeat, Join, Leave, Membership, Sync
from pykafka08.group.answers import CONSUMER, committed_fault
from pykafka08.group.reactions import Api, group_error, invalid_answer_error
from pykafka08.group.settings import SESSION_TIMEOUT_MS, GroupConfig
from pykafka08.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka08.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykafka08.protocol.messages.heartbeat import HeartbeatRequest
from pykafka08.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka08.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from pykafka08.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from pykafka08.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from pykafka08.protocol.schema import ZERO_UUID, VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = ["CommitCall", "FetchedOffset", "JoinCall", "MemberCalls", "OffsetAndMetadata", "OffsetFetchCall"]

OLD_SESSION_TIMEOUT_MS = 30_000
LONGEST_REASON = 255

FIRST_JOIN_WITH_REBALANCE_TIMEOUT = 1
FIRST_JOIN_OF_STATIC_MEMBERS = 5
FIRST_FIND_WITH_MANY_KEYS = 4
FIRST_LEAVE_WITH_MANY_MEMBERS = 3
FIRST_FETCH_WITH_STABILITY = 7
FIRST_FETCH_WITH_MANY_GROUPS = 8
FIRST_WITH_TOPIC_IDS = 10
"""OffsetCommit and OffsetFetch alike."""


class OffsetAndMetadata(NamedTuple):
    """``offset`` is that of the next record to read; ``leader_epoch`` is -1 if unknown (always before 2.1)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class FetchedOffset(NamedTuple):
    """``fault`` says which value is impossible; None if the answer is valid."""

    tp: TopicPartition
    error_code: int
    committed: OffsetAndMetadata | None
    fault: str | None = None


class JoinCall:
    """``session_timeout`` (seconds) is what was asked for, and how, once the request is made."""

    __slots__ = ("_action", "_config", "is_v0", "session_timeout")

    def __init__(self, config: GroupConfig, action: Join) -> None:
        self._config = config
        self._action = action
        self.session_timeout = 0.0
        self.is_v0 = False
        """It has no rebalance time-out: the session is that, too."""

    def __call__(self, versions: BrokerVersions) -> JoinGroupRequest:
        config = self._config
        if config.group_instance_id is not None and versions.pick(JoinGroupRequest) < FIRST_JOIN_OF_STATIC_MEMBERS:
            raise UnsupportedVersionError(
                f"group_instance_id={config.group_instance_id!r} makes a static member, and those need Kafka 2.3; "
                f"the broker is Kafka {versions.release_guess} by its versions",
                api=JoinGroupRequest.name,
            )
        session_ms = config.session_timeout_ms
        self.is_v0 = versions.pick(JoinGroupRequest) < FIRST_JOIN_WITH_REBALANCE_TIMEOUT
        if session_ms is None:
            session_ms = OLD_SESSION_TIMEOUT_MS if self.is_v0 else SESSION_TIMEOUT_MS
        self.session_timeout = session_ms / 1000
        return JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=self._action.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=CONSUMER,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self._action.protocols],
            reason=self._action.reason[:LONGEST_REASON],
        )


class MemberCalls:
    """The other requests of one member, by what the machine wants."""

    def __init__(self, config: GroupConfig) -> None:
        self._group_id = config.group_id
        self._instance_id = config.group_instance_id

    def sync(self, action: Sync) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=action.membership.generation,
            member_id=action.membership.member_id,
            group_instance_id=self._instance_id,
            protocol_type=CONSUMER,
            protocol_name=action.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id, data in action.assignments
            ],
        )

    def heartbeat(self, action: Heartbeat) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self._group_id,
            generation_id=action.membership.generation,
            member_id=action.membership.member_id,
            group_instance_id=self._instance_id,
        )

    def look(self) -> DescribeGroupsRequest:
        return DescribeGroupsRequest(groups=[self._group_id])

    def leave(self, action: Leave, versions: BrokerVersions) -> LeaveGroupRequest:
        member_id = action.membership.member_id
        if versions.pick(LeaveGroupRequest) < FIRST_LEAVE_WITH_MANY_MEMBERS:
            return LeaveGroupRequest(group_id=self._group_id, member_id=member_id)
        member = MemberIdentity(member_id=member_id, reason="the consumer is being closed")
        return LeaveGroupRequest(group_id=self._group_id, members=[member])


class FoundCoordinator(NamedTuple):
    """``broker`` is the coordinator's name for error texts."""

    node_id: int
    broker: str


class FindCall:
    """FindCoordinator for one group; ``needed`` as in :func:`group_error`."""

    def __init__(self, group_id: str, needed: str | None = "READ") -> None:
        self._group_id = group_id
        self._needed = needed
        self._has_many = False

    def __call__(self, versions: BrokerVersions) -> FindCoordinatorRequest:
        self._has_many = versions.pick(FindCoordinatorRequest) >= FIRST_FIND_WITH_MANY_KEYS
        if self._has_many:
            return FindCoordinatorRequest(coordinator_keys=[self._group_id])
        return FindCoordinatorRequest(key=self._group_id)

    def read(self, response: FindCoordinatorResponse, broker: str | None) -> FoundCoordinator:
        """The coordinator; BrokerError for an error code, RemoteProtocolError for impossible values."""
        found: FindCoordinatorResponse | Coordinator | None = response
        if self._has_many:
            found = next((each for each in response.coordinators if each.key == self._group_id), None)
        place: _Place = {"api": Api.FIND_COORDINATOR, "group": self._group_id, "broker": broker}
        if found is None:
            raise invalid_answer_error("the answer leaves the group out", **place)
        if found.error_code:
            raise group_error(found.error_code, found.error_message, needed=self._needed, **place)
        if found.node_id < 0:
            raise invalid_answer_error(f"the coordinator is broker {found.node_id}", **place)
        return FoundCoordinator(found.node_id, f"{found.host}:{found.port} (id {found.node_id})")


class _Place(TypedDict):
    """Of an error."""

    api: Api
    group: str
    broker: str | None


def left_code(response: LeaveGroupResponse) -> int:
    """The error code of the whole answer, or of its one member (from version 3 on)."""
    return response.error_code or next((each.error_code for each in response.members if each.error_code), 0)


class CommitByName(OffsetCommitRequest):
    """OffsetCommit of topics whose ids are not known."""

    __slots__ = ()
    versions = VersionRange(OffsetCommitRequest.versions.min, FIRST_WITH_TOPIC_IDS - 1)


class FetchByName(OffsetFetchRequest):
    """OffsetFetch of topics whose ids are not known."""

    __slots__ = ()
    versions = VersionRange(OffsetFetchRequest.versions.min, FIRST_WITH_TOPIC_IDS - 1)


class CommitCall:
    """One OffsetCommit; ``topic_ids`` has those that are known."""

    def __init__(
        self,
        config: GroupConfig,
        membership: Membership,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        topic_ids: Mapping[str, UUID],
    ) -> None:
        self._config = config
        self._membership = membership
        self._offsets = offsets
        self._topic_ids = topic_ids
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}

    def __call__(self, versions: BrokerVersions) -> OffsetCommitRequest:
        has_ids = all(tp.topic in self._topic_ids for tp in self._offsets)
        kind = OffsetCommitRequest if has_ids else CommitByName
        is_member = self._membership.generation >= 0
        return kind(
            group_id=self._config.group_id,
            generation_id_or_member_epoch=self._membership.generation,
            member_id=self._membership.member_id if is_member else "",
            group_instance_id=self._config.group_instance_id if is_member else None,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self._topic_ids.get(topic, ZERO_UUID),
                    partitions=[self._partition(tp) for tp in partitions],
                )
                for topic, partitions in _by_topic(self._offsets)
            ],
        )

    def _partition(self, tp: TopicPartition) -> OffsetCommitRequestPartition:
        committed = self._offsets[tp]
        return OffsetCommitRequestPartition(
            partition_index=tp.partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )

    def read(self, response: OffsetCommitResponse) -> dict[TopicPartition, int]:
        """Partition to error code."""
        return {
            TopicPartition(self._names.get(answer.topic_id) or answer.name, each.partition_index): each.error_code
            for answer in response.topics
            for each in answer.partitions
        }


class OffsetFetchCall:
    """One OffsetFetch; ``topic_ids`` has those that are known."""

    def __init__(self, config: GroupConfig, wanted: Iterable[TopicPartition], topic_ids: Mapping[str, UUID]) -> None:
        self._group_id = config.group_id
        self._topics = _by_topic(wanted)
        self._topic_ids = topic_ids
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}

    def __call__(self, versions: BrokerVersions) -> OffsetFetchRequest:
        kind = OffsetFetchRequest if all(topic in self._topic_ids for topic, _ in self._topics) else FetchByName
        version = versions.pick(kind)
        request = kind(require_stable=version >= FIRST_FETCH_WITH_STABILITY)
        if version < FIRST_FETCH_WITH_MANY_GROUPS:
            request.group_id = self._group_id
            request.topics = [
                OffsetFetchRequestTopic(name=topic, partition_indexes=[tp.partition for tp in partitions])
                for topic, partitions in self._topics
            ]
            return request
        topics = [
            OffsetFetchRequestTopics(
                name=topic,
                topic_id=self._topic_ids.get(topic, ZERO_UUID),
                partition_indexes=[tp.partition for tp in partitions],
            )
            for topic, partitions in self._topics
        ]
        request.groups = [OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)]
        return request

    def read(self, response: OffsetFetchResponse) -> tuple[int, list[FetchedOffset]]:
        """The error code of the whole group, and each partition's."""
        fetched = [
            _fetched(TopicPartition(one.name, each.partition_index), each)
            for one in response.topics
            for each in one.partitions
        ]
        code = response.error_code
        for group in response.groups:
            code = code or group.error_code
            fetched += [
                _fetched(TopicPartition(self._names.get(many.topic_id) or many.name, each.partition_index), each)
                for many in group.topics
                for each in many.partitions
            ]
        return code, fetched


class _Position(NamedTuple):
    """What both forms of an answer's partition have."""

    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int


def _fetched(tp: TopicPartition, each: object) -> FetchedOffset:
    found = _Position(*(getattr(each, name) for name in _Position._fields))
    if not found.error_code and (fault := committed_fault(found.committed_offset, found.committed_leader_epoch)):
        return FetchedOffset(tp, 0, None, fault)
    if found.error_code or found.committed_offset < 0:
        return FetchedOffset(tp, found.error_code, None)
    committed = OffsetAndMetadata(found.committed_offset, found.committed_leader_epoch, found.metadata or "")
    return FetchedOffset(tp, 0, committed)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    return [(topic, list(run)) for topic, run in groupby(sorted(partitions), key=lambda tp: tp.topic)]
