"""ReadShareGroupState (API key 84)."""

from __future__ import annotations

from uuid import UUID

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
    uuid_,
)

__all__ = [
    "PartitionData",
    "PartitionResult",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadStateData",
    "ReadStateResult",
    "StateBatch",
]


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateData(Struct):
    """ReadStateData."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"]):
    """ReadShareGroupStateRequest."""

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


@struct
class StateBatch(Struct):
    """StateBatch."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class PartitionResult(Struct):
    """PartitionResult."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    start_offset: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


@struct
class ReadStateResult(Struct):
    """ReadStateResult."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Response):
    """ReadShareGroupStateResponse."""

    results: list[ReadStateResult] = array(ReadStateResult)
