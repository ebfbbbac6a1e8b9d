"""AlterPartitionReassignments (API key 45)."""

from __future__ import annotations

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
)

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
]


@struct
class ReassignablePartition(Struct):
    """ReassignablePartition."""

    partition_index: int = int32()
    replicas: list[int] | None = array(int32, nullable="0+", default=None)


@struct
class ReassignableTopic(Struct):
    """ReassignableTopic."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    """AlterPartitionReassignmentsRequest."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = bool_(versions="1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse(Struct):
    """ReassignablePartitionResponse."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReassignableTopicResponse(Struct):
    """ReassignableTopicResponse."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Response):
    """AlterPartitionReassignmentsResponse."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = bool_(versions="1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
