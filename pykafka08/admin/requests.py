"""The requests of an administrator, in the version that a broker serves, and their answers."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.admin.values import ConfigEntry, GroupDescription, GroupMember, NewTopic
from pykafka08.errors import ProtocolError
from pykafka08.group.requests import OffsetFetchCall
from pykafka08.group.settings import GroupConfig
from pykafka08.protocol.messages import consumer_group_describe as modern
from pykafka08.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, decode_with_version
from pykafka08.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka08.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka08.protocol.messages.describe_configs import DescribeConfigsResourceResult
from pykafka08.protocol.messages.describe_groups import DescribedGroup
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = [
    "AllOffsetsCall",
    "classic_group",
    "config_entry",
    "create_topics_call",
    "delete_topics_call",
    "modern_group",
]

FIRST_DELETE_WITH_IDS = 6
FIRST_FETCH_WITH_MANY_GROUPS = 8
DEFAULT_CONFIG = 5
DEFAULT_SOURCES = (4, DEFAULT_CONFIG)
"""Of a setting in DescribeConfigs 1 and later: the broker's own file, and Kafka's default."""


class FetchOfAll(OffsetFetchRequest):
    """OffsetFetch of every topic that a group has offsets for, which are named."""

    __slots__ = ()
    versions = VersionRange(2, 9)


class AllOffsetsCall(OffsetFetchCall):
    """Every committed offset of a group."""

    def __init__(self, group_id: str) -> None:
        super().__init__(GroupConfig(group_id=group_id), (), {})

    def __call__(self, versions: BrokerVersions) -> OffsetFetchRequest:
        if versions.pick(FetchOfAll) < FIRST_FETCH_WITH_MANY_GROUPS:
            return FetchOfAll(group_id=self._group_id, topics=None)
        return FetchOfAll(groups=[OffsetFetchRequestGroup(group_id=self._group_id, topics=None)])


def create_topics_call(topics: Iterable[NewTopic], timeout: float, *, validate_only: bool) -> CreateTopicsRequest:
    """Numbers that are -1 are the broker's defaults (2.4 and later)."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.assignments else topic.partitions,
                replication_factor=-1 if topic.assignments else topic.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
                    for number, brokers in enumerate(topic.assignments)
                ],
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in topics
        ],
        timeout_ms=round(timeout * 1000),
    )
    if validate_only:
        request.validate_only = True
    return request


def delete_topics_call(names: Iterable[str], timeout: float, versions: BrokerVersions) -> DeleteTopicsRequest:
    request = DeleteTopicsRequest(timeout_ms=round(timeout * 1000))
    if versions.pick(DeleteTopicsRequest) < FIRST_DELETE_WITH_IDS:
        request.topic_names = list(names)
    else:
        request.topics = [DeleteTopicState(name=name) for name in names]
    return request


def config_entry(each: DescribeConfigsResourceResult) -> ConfigEntry:
    is_default = each.is_default if each.config_source < 0 else each.config_source in DEFAULT_SOURCES
    return ConfigEntry(each.value, is_default, each.read_only)


def classic_group(group: DescribedGroup) -> GroupDescription:
    """What a member of another kind than consumers was given is passed over."""
    members = tuple(
        GroupMember(each.member_id, each.client_id, each.client_host, _assigned(each.member_assignment))
        for each in group.members
    )
    return GroupDescription(group.group_id, group.group_state, group.protocol_data, members)


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    try:
        assignment, _ = decode_with_version(ConsumerProtocolAssignment, data)
    except ProtocolError:
        return ()
    return tuple(
        TopicPartition(each.topic, partition)
        for each in assignment.assigned_partitions
        for partition in each.partitions
    )


def modern_group(group: modern.DescribedGroup) -> GroupDescription:
    """A group of the new protocol."""
    members = tuple(
        GroupMember(
            each.member_id,
            each.client_id,
            each.client_host,
            tuple(
                TopicPartition(topic.topic_name, partition)
                for topic in each.assignment.topic_partitions
                for partition in topic.partitions
            ),
        )
        for each in group.members
    )
    return GroupDescription(group.group_id, group.group_state, group.assignor_name, members)
