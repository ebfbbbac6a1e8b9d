"""ConsumerGroupDescribe: state and members of groups of the new protocol (API key 69).

Goes to the coordinator of each group.

Versions, the first release with each, and what is new in it:

     0  3.8     (KIP-848)
     1  4.0     whether a member uses the classic protocol (KIP-1099)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
    struct_,
    uuid_,
)

__all__ = [
    "Assignment",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "DescribedGroup",
    "Member",
    "TopicPartitions",
]


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Request["ConsumerGroupDescribeResponse"]):
    """Which groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = bool_()


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class Assignment(Struct):
    """Partitions of a member."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@struct
class Member(Struct):
    """A member."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = struct_(Assignment)  # what it owns now
    target_assignment: Assignment = struct_(Assignment)  # what it shall own
    member_type: int = int8(versions="1+", default=-1, ignorable=True)  # -1 unknown, 0 classic, 1 consumer


@struct
class DescribedGroup(Struct):
    """A group's state and members."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()  # Empty, Assigning, Reconciling, Stable, Dead
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    # a bit for each AclOperation; the default says they were not asked for
    authorized_operations: int = int32(default=-2147483648)


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Response):
    """The groups, each with its own error code."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
