"""ConsumerGroupHeartbeat: membership in the new group protocol, all in one request (API key 68).

Joins, lives, acknowledges and leaves; the broker assigns (KIP-848).  What has not changed since the last heartbeat is
None.

Versions, the first release with each, and what is new in it:

     0  3.7     (KIP-848), early access in 3.7
     1  4.0     topics by regular expression (KIP-848)
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

__all__ = ["Assignment", "ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeatResponse", "TopicPartitions"]


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[int] = array(int32)


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"]):
    """The member, and what has changed."""

    group_id: str = string()
    member_id: str = string()  # chosen by the member from version 1 on
    member_epoch: int = int32()  # 0 joins, -1 leaves, -2 leaves for a while as a static member
    instance_id: str | None = string(nullable="0+", default=None)  # of static members
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)  # -1 if it has not changed
    subscribed_topic_names: list[str] | None = array(string, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string(versions="1+", nullable="1+", default=None)  # RE2
    server_assignor: str | None = string(nullable="0+", default=None)  # None for the broker's choice
    # what the member owns now
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+", default=None)


@struct
class Assignment(Struct):
    """What the member shall own."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Response):
    """The epoch, and the assignment if it has changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct_(Assignment, nullable="0+", default=None)  # None if it has not changed
