"""DescribeLogDirs: what lies on the disks of one broker (API key 35).

Each broker knows its own only.

Versions, the first release with each, and what is new in it:

     0  1.0     (KIP-113)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.6     compact forms, tagged fields (KIP-482)
     3  3.2     an error for the whole response
     4  3.3     size of the volumes (KIP-827)
     5  4.3     whether a directory is cordoned (KIP-1066)
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
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    """Which partitions."""

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable="0+")  # None asks for all


@struct
class DescribeLogDirsPartition(Struct):
    """A replica on that disk."""

    partition_index: int = int32()
    partition_size: int = int64()  # bytes
    offset_lag: int = int64()  # how far it is behind the high watermark, or the replica it replaces
    is_future_key: bool = bool_()  # it will replace the present replica


@struct
class DescribeLogDirsTopic(Struct):
    """Replicas of one topic."""

    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult(Struct):
    """One directory."""

    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True)  # -1 if unknown
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True)  # -1 if unknown
    is_cordoned: bool = bool_(versions="5+", ignorable=True)


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse(Response):
    """The directories."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
