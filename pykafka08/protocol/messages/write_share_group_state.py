"""WriteShareGroupState (API key 85)."""

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
    "StateBatch",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
    "WriteStateData",
    "WriteStateResult",
]


@struct
class StateBatch(Struct):
    """StateBatch."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(versions="1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch)


@struct
class WriteStateData(Struct):
    """WriteStateData."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(Request["WriteShareGroupStateResponse"]):
    """WriteShareGroupStateRequest."""

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


@struct
class PartitionResult(Struct):
    """PartitionResult."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class WriteStateResult(Struct):
    """WriteStateResult."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Response):
    """WriteShareGroupStateResponse."""

    results: list[WriteStateResult] = array(WriteStateResult)
