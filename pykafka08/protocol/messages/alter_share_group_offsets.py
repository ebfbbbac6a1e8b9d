"""AlterShareGroupOffsets (API key 91)."""

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
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestTopic",
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseTopic",
]


@struct
class AlterShareGroupOffsetsRequestPartition(Struct):
    """AlterShareGroupOffsetsRequestPartition."""

    partition_index: int = int32()
    start_offset: int = int64()


@struct
class AlterShareGroupOffsetsRequestTopic(Struct):
    """AlterShareGroupOffsetsRequestTopic."""

    topic_name: str = string()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = array(AlterShareGroupOffsetsRequestPartition)


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Request["AlterShareGroupOffsetsResponse"]):
    """AlterShareGroupOffsetsRequest."""

    group_id: str = string()
    topics: list[AlterShareGroupOffsetsRequestTopic] = array(AlterShareGroupOffsetsRequestTopic)


@struct
class AlterShareGroupOffsetsResponsePartition(Struct):
    """AlterShareGroupOffsetsResponsePartition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class AlterShareGroupOffsetsResponseTopic(Struct):
    """AlterShareGroupOffsetsResponseTopic."""

    topic_name: str = string()
    topic_id: UUID = uuid_()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = array(AlterShareGroupOffsetsResponsePartition)


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Response):
    """AlterShareGroupOffsetsResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = array(AlterShareGroupOffsetsResponseTopic)
