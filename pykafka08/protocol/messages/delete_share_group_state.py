"""DeleteShareGroupState (API key 86)."""

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
    uuid_,
)

__all__ = [
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateResponse",
    "DeleteStateData",
    "DeleteStateResult",
    "PartitionData",
    "PartitionResult",
]


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition: int = int32()


@struct
class DeleteStateData(Struct):
    """DeleteStateData."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateRequest(Request["DeleteShareGroupStateResponse"]):
    """DeleteShareGroupStateRequest."""

    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


@struct
class PartitionResult(Struct):
    """PartitionResult."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class DeleteStateResult(Struct):
    """DeleteStateResult."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Response):
    """DeleteShareGroupStateResponse."""

    results: list[DeleteStateResult] = array(DeleteStateResult)
