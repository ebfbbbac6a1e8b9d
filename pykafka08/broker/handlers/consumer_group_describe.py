"""ConsumerGroupDescribe: state and members of groups of the new protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.consumer_group import ConsumerGroup
from pykafka08.broker.consumer_member import ConsumerMember
from pykafka08.broker.handlers import handles
from pykafka08.broker.handlers.consumer_group_heartbeat import is_enabled
from pykafka08.broker.server_assignors import TopicPartitionId
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

__all__ = ["consumer_group_describe"]

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


@handles(ConsumerGroupDescribeRequest)
def consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> Reply:
    response = ConsumerGroupDescribeResponse(groups=[_group(call, group_id) for group_id in request.group_ids])
    for group in response.groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = call.authorized_operations(AclResourceType.GROUP, group.group_id)
    return response


def _group(call: Call, group_id: str) -> DescribedGroup:
    code = coordinator_error(call, group_id) if is_enabled(call) else ErrorCode.UNSUPPORTED_VERSION
    if code:
        return DescribedGroup(group_id=group_id, error_code=code)
    group = call.cluster.groups.consumer_groups.get(group_id)
    if group is None:
        text = f"there is no consumer group {group_id!r}"
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text)
    names = {name for member in group.members.values() for name in _topic_names(call, member)}
    if any(call.denied(AclResourceType.TOPIC, name) for name in names):
        text = "the group has topics that the client may not describe"
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=text)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(call, group, each) for each in group.members.values()],
    )


def _topic_names(call: Call, member: ConsumerMember) -> set[str]:
    assigned = (call.cluster.topics.find_id(topic_id) for topic_id, _ in (*member.assigned, *member.target))
    return {*member.names, *(topic.name for topic in assigned if topic is not None)}


def _member(call: Call, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.regex or None,
        assignment=_assignment(call, member.assigned),
        target_assignment=_assignment(call, member.target),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(call: Call, partitions: Iterable[TopicPartitionId]) -> Assignment:
    topics = []
    for topic_id, run in groupby(sorted(partitions), key=lambda tp: tp[0]):
        topic = call.cluster.topics.find_id(topic_id)
        name = topic.name if topic is not None else ""
        numbers = [number for _, number in run]
        topics.append(TopicPartitions(topic_id=topic_id, topic_name=name, partitions=numbers))
    return Assignment(topic_partitions=topics)
