"""OffsetForLeaderEpoch: where the records of a leader epoch end (API key 23).

Consumers use it to notice that a log was cut behind them (KIP-320), followers to cut their own.

Versions, the first release with each, and what is new in it:

     0  0.11.0  followers (KIP-101)
     1  2.0     the epoch that was found
     2  2.1     current leader epoch; throttle time (KIP-320)
     3  2.3     replica id, clients are -1 (KIP-392)
     4  2.8     compact forms, tagged fields (KIP-482)
"""

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
    """The question for one partition."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="2+", default=-1, ignorable=True)  # -1 if unknown: no fencing
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic(Struct):
    """The questions for one topic."""

    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"]):
    """Epochs by topic and partition."""

    # -1 for consumers; the default sees beyond the high watermark
    replica_id: int = int32(versions="3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


@struct
class EpochEndOffset(Struct):
    """The answer for one partition."""

    error_code: int = int16()
    partition: int = int32()
    # the largest epoch not above the asked one; -1 for none
    leader_epoch: int = int32(versions="1+", default=-1, ignorable=True)
    end_offset: int = int64(default=-1)  # the offset after its last record; -1 for none


@struct
class OffsetForLeaderTopicResult(Struct):
    """The answers for one topic."""

    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse(Response):
    """Ends by topic and partition."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
