"""Subscriptions and assignments between our own terms and the bytes that JoinGroup and SyncGroup carry.

The layouts are in ``protocol.messages.consumer_protocol``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pykafka08.errors import RemoteProtocolError
from pykafka08.group.answers import partitions_fault
from pykafka08.group.assignors import GroupMember
from pykafka08.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_with_version,
    encode_with_version,
)
from pykafka08.protocol.messages.join_group import JoinGroupResponseMember
from pykafka08.records.record import TopicPartition

__all__ = ["decode_assignment", "decode_member", "encode_assignment", "encode_subscription"]

SUBSCRIPTION_VERSION = 3
"""Readers of every release take what they know of it."""
ASSIGNMENT_VERSION = 3


def encode_subscription(
    topics: Iterable[str], owned: Iterable[TopicPartition], generation: int, user_data: bytes | None
) -> bytes:
    """``owned`` and ``generation`` as the member will tell the leader; empty and -1 after an eager revocation."""
    return encode_with_version(
        ConsumerProtocolSubscription(
            topics=sorted(topics),
            user_data=user_data,
            owned_partitions=[
                SubscriptionTopicPartition(topic=topic, partitions=numbers) for topic, numbers in _by_topic(owned)
            ],
            generation_id=generation,
        ),
        SUBSCRIPTION_VERSION,
    )


def decode_member(member: JoinGroupResponseMember) -> GroupMember:
    """RemoteProtocolError if its subscription cannot be read."""
    told, _ = decode_with_version(ConsumerProtocolSubscription, member.metadata)
    for each in told.owned_partitions:
        if (fault := partitions_fault(repr(each.topic), each.partitions)) is not None:
            raise RemoteProtocolError(fault)
    return GroupMember(
        member.member_id,
        frozenset(told.topics),
        frozenset(TopicPartition(each.topic, number) for each in told.owned_partitions for number in each.partitions),
        told.generation_id,
        member.group_instance_id,
        bytes(told.user_data) if told.user_data is not None else None,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics = [AssignmentTopicPartition(topic=topic, partitions=numbers) for topic, numbers in _by_topic(partitions)]
    return encode_with_version(ConsumerProtocolAssignment(assigned_partitions=topics), ASSIGNMENT_VERSION)


def decode_assignment(data: bytes) -> frozenset[TopicPartition]:
    """RemoteProtocolError if it cannot be read."""
    told, _ = decode_with_version(ConsumerProtocolAssignment, data)
    for each in told.assigned_partitions:
        if (fault := partitions_fault(repr(each.topic), each.partitions)) is not None:
            raise RemoteProtocolError(fault)
    return frozenset(
        TopicPartition(each.topic, number) for each in told.assigned_partitions for number in each.partitions
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    return [
        (topic, [each.partition for each in run])
        for topic, run in groupby(sorted(partitions), key=lambda each: each.topic)
    ]
