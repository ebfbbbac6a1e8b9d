"""ListOffsets (API key 2)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = [
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
]


@struct
class ListOffsetsPartition(Struct):
    """ListOffsetsPartition."""

    partition_index: int = int32()
    current_leader_epoch: int = int32(versions="4+", default=-1, ignorable=True)
    timestamp: int = int64()
    max_num_offsets: int = int32(versions="0", default=1)


@struct
class ListOffsetsTopic(Struct):
    """ListOffsetsTopic."""

    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    """ListOffsetsRequest."""

    replica_id: int = int32()
    isolation_level: int = int8(versions="2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse(Struct):
    """ListOffsetsPartitionResponse."""

    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: list[int] = array(int64, versions="0")
    timestamp: int = int64(versions="1+", default=-1)
    offset: int = int64(versions="1+", default=-1)
    leader_epoch: int = int32(versions="4+", default=-1)


@struct
class ListOffsetsTopicResponse(Struct):
    """ListOffsetsTopicResponse."""

    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse(Response):
    """ListOffsetsResponse."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
