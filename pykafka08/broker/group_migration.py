"""Groups that change their protocol while they run, and members of both protocols in one group.

A group of the classic protocol becomes one of the new protocol when the first such member joins, if its own members are
consumers; they go on with JoinGroup, SyncGroup and Heartbeat, and the coordinator assigns to them too.  When the last
member of the new protocol has gone, the rest is a classic group again, and rebalances.  A group without members is
whatever the next one makes of it.

Source: KIP-848 ("online migration", policy ``bidirectional``); ``GroupMetadataManager``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pykafka08.broker.consumer_group import ConsumerGroup
from pykafka08.broker.consumer_groups import Refusal
from pykafka08.broker.consumer_member import ConsumerMember, MemberState, Partitions
from pykafka08.broker.group import Group
from pykafka08.broker.group_member import JoinResult, Member, SyncResult
from pykafka08.broker.state import Topics
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RemoteProtocolError
from pykafka08.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_with_version,
    encode_with_version,
)

__all__ = ["CONSUMER", "classic_rest", "heartbeat", "join", "leave", "subscribed_topics", "sync", "upgrade"]

CONSUMER = "consumer"


def upgrade(classic: Group, group: ConsumerGroup, topics: Topics) -> None:
    """Fill ``group`` with the members of ``classic``, which is closed; Refusal if they are no consumers."""
    if classic.protocol_type != CONSUMER:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"group {classic.group_id} is not one of consumers")
    try:
        subscriptions = [_subscription(each) for each in classic.members.values()]
        shares = [_share(each.assignment, topics) for each in classic.members.values()]
    except RemoteProtocolError as error:
        text = f"a subscription in group {classic.group_id} cannot be read: {error}"
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, text) from error
    group.epoch = group.assignment_epoch = classic.generation
    for each, told, share in zip(classic.members.values(), subscriptions, shares, strict=True):
        member = ConsumerMember(each.member_id, each.instance_id)
        member.epoch = classic.generation
        member.assigned = member.target = share
        _take(member, each, told)
        group.add(member)
        group.expect_heartbeat(member, each.session_timeout)
        each.answer_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, each.member_id))
        each.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
    group.bump()
    classic.close()


def subscribed_topics(member: Member) -> list[str]:
    """The topics that a classic consumer reads; none if its metadata cannot be read."""
    try:
        return _subscription(member).topics if member.protocols else []
    except RemoteProtocolError:
        return []


def _subscription(member: Member) -> ConsumerProtocolSubscription:
    told, _ = decode_with_version(ConsumerProtocolSubscription, member.protocols[0][1])
    return told


def _share(assignment: bytes, topics: Topics) -> Partitions:
    if not assignment:
        return frozenset()
    told, _ = decode_with_version(ConsumerProtocolAssignment, assignment)
    return _by_id(told.assigned_partitions, topics)


def _by_id(partitions: Sequence[object], topics: Topics) -> Partitions:
    return frozenset(
        (topic.topic_id, number)
        for each in partitions
        if (topic := topics.find(each.topic)) is not None  # type: ignore[attr-defined]
        for number in each.partitions  # type: ignore[attr-defined]
    )


def _take(member: ConsumerMember, asked: Member, told: ConsumerProtocolSubscription) -> bool:
    """What a classic member says of itself; True if it reads other topics than before."""
    before = member.names
    member.classic = asked
    member.client_id, member.client_host = asked.client_id, asked.client_host
    member.rebalance_timeout = asked.rebalance_timeout
    member.names, member.regex, member.assignor = frozenset(told.topics), "", None
    return member.names != before


# -- a classic member in a group of the new protocol


def join(
    group: ConsumerGroup, asked: Member, protocol_type: str, topics: Topics, *, requires_member_id: bool
) -> JoinResult:
    """JoinGroup; answered at once, with the member's epoch for a generation."""
    if protocol_type != CONSUMER or not asked.protocols:
        return JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, asked.member_id)
    try:
        told = _subscription(asked)
    except RemoteProtocolError:
        return JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, asked.member_id)
    if not asked.member_id:
        asked.member_id = f"{asked.instance_id or asked.client_id}-{uuid.uuid4()}"
        if requires_member_id and asked.instance_id is None:
            return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, asked.member_id)
    former = group.static_member(asked.instance_id) if asked.instance_id is not None else None
    member = group.members.get(asked.member_id)
    is_new = member is None
    if member is None:
        member = (
            former.replaced_by(asked.member_id)
            if former is not None
            else ConsumerMember(asked.member_id, asked.instance_id)
        )
    has_changed = _take(member, asked, told)
    if is_new:
        group.add(member)
    if has_changed or (is_new and former is None):
        group.bump()
    group.expect_heartbeat(member, asked.session_timeout)
    group.expect_no_step(member)
    group.settle(member, _by_id(told.owned_partitions, topics), topics)
    return JoinResult(ErrorCode.NONE, member.member_id, member.epoch, CONSUMER, asked.protocols[0][0])


def _find(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember | None, ErrorCode]:
    member = group.members.get(member_id) if instance_id is None else group.static_member(instance_id)
    if member is None or member.classic is None:
        return None, ErrorCode.UNKNOWN_MEMBER_ID
    if member.member_id != member_id:
        return None, ErrorCode.FENCED_INSTANCE_ID
    if member.epoch != generation:
        return None, ErrorCode.ILLEGAL_GENERATION
    return member, ErrorCode.NONE


def _must_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """True if there is something for it to give up, or to get."""
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED:
        return True
    return member.state is MemberState.UNRELEASED and not group.waits_for_others(member)


def sync(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, topics: Topics) -> SyncResult:
    member, code = _find(group, member_id, instance_id, generation)
    if member is None or member.classic is None:
        return SyncResult(code)
    if member.epoch < group.assignment_epoch and member.state is not MemberState.UNREVOKED:
        return SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
    group.expect_heartbeat(member, member.classic.session_timeout)
    by_topic: dict[str, list[int]] = {}
    for topic_id, number in sorted(member.assigned):
        topic = topics.find_id(topic_id)
        if topic is not None:
            by_topic.setdefault(topic.name, []).append(number)
    assigned = [AssignmentTopicPartition(topic=name, partitions=numbers) for name, numbers in by_topic.items()]
    name, metadata = member.classic.protocols[0]
    version = int.from_bytes(metadata[:2], "big", signed=True)
    data = encode_with_version(ConsumerProtocolAssignment(assigned_partitions=assigned), min(version, 3))
    return SyncResult(ErrorCode.NONE, data, CONSUMER, name)


def heartbeat(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    member, code = _find(group, member_id, instance_id, generation)
    if member is None or member.classic is None:
        return code
    group.expect_heartbeat(member, member.classic.session_timeout)
    if not _must_join(group, member):
        return ErrorCode.NONE
    group.expect_step(member)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leave(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    member = group.members.get(member_id) if instance_id is None else group.static_member(instance_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member_id and member.member_id != member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    group.remove(member)
    return ErrorCode.NONE


# -- the way back


def classic_rest(group: ConsumerGroup) -> list[Member]:
    """The members that are left when the last one of the new protocol has gone; the group has none then."""
    rest = [member.classic for member in group.members.values() if member.classic is not None]
    if len(rest) < len(group.members):
        return []
    group.close()
    return rest
