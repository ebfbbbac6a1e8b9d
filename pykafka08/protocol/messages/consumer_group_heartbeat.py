"""ConsumerGroupHeartbeat (API key 68)."""

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
    """TopicPartitions."""

    topic_id: UUID = uuid_()
    partitions: list[int] = array(int32)


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"]):
    """ConsumerGroupHeartbeatRequest."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string(versions="1+", nullable="1+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+", default=None)


@struct
class Assignment(Struct):
    """Assignment."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Response):
    """ConsumerGroupHeartbeatResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct_(Assignment, nullable="0+", default=None)
