"""ShareGroupHeartbeat: membership in a share group (API key 76).

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
    int16,
    int32,
    message,
    string,
    struct,
    struct_,
    uuid_,
)

__all__ = ["Assignment", "ShareGroupHeartbeatRequest", "ShareGroupHeartbeatResponse", "TopicPartitions"]


@message(key=76, versions="0-1", flexible="0+")
class ShareGroupHeartbeatRequest(Request["ShareGroupHeartbeatResponse"]):
    """The member, and what has changed."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()  # 0 joins, -1 leaves
    rack_id: str | None = string(nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string, nullable="0+", default=None)


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[int] = array(int32)


@struct
class Assignment(Struct):
    """What the member shall read."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(key=76, versions="0-1", flexible="0+")
class ShareGroupHeartbeatResponse(Response):
    """The epoch, and the assignment if it has changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct_(Assignment, nullable="0+", default=None)  # None if it has not changed
