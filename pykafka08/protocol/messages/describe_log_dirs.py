"""DescribeLogDirs (API key 35)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = [
    "DescribableLogDirTopic",
    "DescribeLogDirsPartition",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeLogDirsResult",
    "DescribeLogDirsTopic",
]


@struct
class DescribableLogDirTopic(Struct):
    """DescribableLogDirTopic."""

    topic: str = string()
    partitions: list[int] = array(int32)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    """DescribeLogDirsRequest."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")


@struct
class DescribeLogDirsPartition(Struct):
    """DescribeLogDirsPartition."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = bool_()


@struct
class DescribeLogDirsTopic(Struct):
    """DescribeLogDirsTopic."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult(Struct):
    """DescribeLogDirsResult."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True)
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True)
    is_cordoned: bool = bool_(versions="5+", ignorable=True)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Response):
    """DescribeLogDirsResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
