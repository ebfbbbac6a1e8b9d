"""Checks of the fields in a group coordinator's answers, before they change any state.

Each function returns the text of the first fault, or None if the answer is valid.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from pykafka08.protocol.messages.join_group import JoinGroupResponse
from pykafka08.protocol.messages.sync_group import SyncGroupResponse
from pykafka08.protocol.schema import ZERO_UUID

__all__ = ["CONSUMER", "beat_fault", "committed_fault", "join_fault", "partitions_fault", "sync_fault"]

CONSUMER = "consumer"
"""The protocol type of consumers."""


def join_fault(response: JoinGroupResponse, member_id: str) -> str | None:
    """The fault of a JoinGroup answer without an error; ``member_id`` was in the request, empty for a new member."""
    if response.generation_id < 0:
        return f"generation {response.generation_id} of a member"
    if not response.member_id:
        return "the member id is empty"
    if member_id and response.member_id != member_id:
        return f"member {member_id!r} was answered as {response.member_id!r}"
    if response.protocol_type not in (None, CONSUMER):
        return f"the group has protocol type {response.protocol_type!r}, and not {CONSUMER!r}"
    if response.leader != response.member_id:
        return None
    ids = [each.member_id for each in response.members]
    if len(set(ids)) != len(ids):
        return "a member is listed twice"
    if ids and response.member_id not in ids:
        return f"the leader {response.member_id!r} is not among the members"
    return None


def sync_fault(response: SyncGroupResponse, protocol: str) -> str | None:
    """The fault of a SyncGroup answer without an error; ``protocol`` is the assignor of the generation."""
    if response.protocol_type not in (None, CONSUMER):
        return f"the group has protocol type {response.protocol_type!r}, and not {CONSUMER!r}"
    if response.protocol_name not in (None, protocol):
        return f"the assignor is {response.protocol_name!r}, and was {protocol!r} in the JoinGroup answer"
    return None


def beat_fault(response: ConsumerGroupHeartbeatResponse, member_id: str | None) -> str | None:
    """The fault of a ConsumerGroupHeartbeat answer without an error; ``member_id`` is None while joining."""
    if response.member_epoch <= 0:
        return f"epoch {response.member_epoch} of a member"
    if response.heartbeat_interval_ms <= 0:
        return f"heartbeat interval of {response.heartbeat_interval_ms} ms"
    if member_id is not None and response.member_id and response.member_id != member_id:
        return f"member {member_id!r} was answered as {response.member_id!r}"
    for topic in response.assignment.topic_partitions if response.assignment is not None else ():
        if topic.topic_id == ZERO_UUID:
            return "an assigned topic has no id"
        if (fault := partitions_fault(str(topic.topic_id), topic.partitions)) is not None:
            return fault
    return None


def partitions_fault(topic: str, partitions: Iterable[int]) -> str | None:
    """The fault of the partitions of one topic in an assignment."""
    return next((f"partition {number} of topic {topic} is assigned" for number in partitions if number < 0), None)


def committed_fault(offset: int, leader_epoch: int) -> str | None:
    """The fault of one partition in an OffsetFetch answer; -1 stands for no offset and for an unknown epoch."""
    if offset < -1:
        return f"the committed offset is {offset}"
    if leader_epoch < -1:
        return f"the leader epoch of the committed offset is {leader_epoch}"
    return None
