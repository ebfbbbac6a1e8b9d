"""InitializeShareGroupState (API key 83)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid_,
)

__all__ = [
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
    "InitializeStateData",
    "InitializeStateResult",
    "PartitionData",
    "PartitionResult",
]


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


@struct
class InitializeStateData(Struct):
    """InitializeStateData."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Request["InitializeShareGroupStateResponse"]):
    """InitializeShareGroupStateRequest."""

    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


@struct
class PartitionResult(Struct):
    """PartitionResult."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class InitializeStateResult(Struct):
    """InitializeStateResult."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Response):
    """InitializeShareGroupStateResponse."""

    results: list[InitializeStateResult] = array(InitializeStateResult)
