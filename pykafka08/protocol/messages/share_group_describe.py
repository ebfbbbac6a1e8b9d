"""ShareGroupDescribe: state and members of share groups (API key 77).

Share groups (KIP-932): several consumers read the same partition and acknowledge single records.

Versions, the first release with each, and what is new in it:

     0  -       early access in 3.9 and 4.0
     1  4.1     (KIP-932)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
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
    "DescribedGroup",
    "Member",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "TopicPartitions",
]


@message(key=77, versions="0-1", flexible="0+")
class ShareGroupDescribeRequest(Request["ShareGroupDescribeResponse"]):
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
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: Assignment = struct_(Assignment)


@struct
class DescribedGroup(Struct):
    """A group's state and members."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    # a bit for each AclOperation; the default says they were not asked for
    authorized_operations: int = int32(default=-2147483648)


@message(key=77, versions="0-1", flexible="0+")
class ShareGroupDescribeResponse(Response):
    """The groups, each with its own error code."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
