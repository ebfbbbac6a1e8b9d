"""OffsetDelete (API key 47)."""

from __future__ import annotations

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
)

__all__ = [
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
]


@struct
class OffsetDeleteRequestPartition(Struct):
    """OffsetDeleteRequestPartition."""

    partition_index: int = int32()


@struct
class OffsetDeleteRequestTopic(Struct):
    """OffsetDeleteRequestTopic."""

    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@message(key=47, versions="0")
class OffsetDeleteRequest(Request["OffsetDeleteResponse"]):
    """OffsetDeleteRequest."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@struct
class OffsetDeleteResponsePartition(Struct):
    """OffsetDeleteResponsePartition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetDeleteResponseTopic(Struct):
    """OffsetDeleteResponseTopic."""

    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@message(key=47, versions="0")
class OffsetDeleteResponse(Response):
    """OffsetDeleteResponse."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
