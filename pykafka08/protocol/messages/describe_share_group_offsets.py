"""DescribeShareGroupOffsets (API key 90)."""

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
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic",
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic",
]


@struct
class DescribeShareGroupOffsetsRequestTopic(Struct):
    """DescribeShareGroupOffsetsRequestTopic."""

    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class DescribeShareGroupOffsetsRequestGroup(Struct):
    """DescribeShareGroupOffsetsRequestGroup."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = array(
        DescribeShareGroupOffsetsRequestTopic, nullable="0+"
    )


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Request["DescribeShareGroupOffsetsResponse"]):
    """DescribeShareGroupOffsetsRequest."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = array(DescribeShareGroupOffsetsRequestGroup)


@struct
class DescribeShareGroupOffsetsResponsePartition(Struct):
    """DescribeShareGroupOffsetsResponsePartition."""

    partition_index: int = int32()
    start_offset: int = int64()
    leader_epoch: int = int32()
    lag: int = int64(versions="1+", default=-1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic(Struct):
    """DescribeShareGroupOffsetsResponseTopic."""

    topic_name: str = string()
    topic_id: UUID = uuid_()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = array(DescribeShareGroupOffsetsResponsePartition)


@struct
class DescribeShareGroupOffsetsResponseGroup(Struct):
    """DescribeShareGroupOffsetsResponseGroup."""

    group_id: str = string()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = array(DescribeShareGroupOffsetsResponseTopic)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Response):
    """DescribeShareGroupOffsetsResponse."""

    throttle_time_ms: int = int32()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = array(DescribeShareGroupOffsetsResponseGroup)
