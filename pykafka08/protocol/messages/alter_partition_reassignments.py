"""AlterPartitionReassignments: moves replicas to other brokers, or stops such a move (API key 45).

The controller accepts the move; ListPartitionReassignments tells how it goes.

Versions, the first release with each, and what is new in it:

     0  2.4     (KIP-455)
     1  4.1     a change of the replication factor can be forbidden (KIP-860)
"""

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
    """Where one partition shall live."""

    partition_index: int = int32()
    replicas: list[int] | None = array(int32, nullable="0+", default=None)  # None stops a move that is going on


@struct
class ReassignableTopic(Struct):
    """Partitions of one topic."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    """New places by topic and partition."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = bool_(versions="1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReassignableTopicResponse(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse(Response):
    """Results by topic and partition."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = bool_(versions="1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
