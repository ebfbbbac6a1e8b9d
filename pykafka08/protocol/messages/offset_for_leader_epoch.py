"""OffsetForLeaderEpoch (API key 23)."""

from __future__ import annotations

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
)

__all__ = [
    "EpochEndOffset",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderPartition",
    "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult",
]


@struct
class OffsetForLeaderPartition(Struct):
    """OffsetForLeaderPartition."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="2+", default=-1, ignorable=True)
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic(Struct):
    """OffsetForLeaderTopic."""

    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"]):
    """OffsetForLeaderEpochRequest."""

    replica_id: int = int32(versions="3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


@struct
class EpochEndOffset(Struct):
    """EpochEndOffset."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(versions="1+", default=-1, ignorable=True)
    end_offset: int = int64(default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    """OffsetForLeaderTopicResult."""

    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Response):
    """OffsetForLeaderEpochResponse."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
