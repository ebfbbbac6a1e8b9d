"""TxnOffsetCommit: stores how far a group has read as part of a transaction (API key 28).

Goes to the coordinator of the group; the offsets count once the transaction is committed.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-98)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.1     leader epochs (KIP-320)
     3  2.5     compact forms, tagged fields (KIP-482); member and generation are checked (KIP-447)
     4  3.8     TRANSACTION_ABORTABLE may come back (KIP-890)
     5  4.0     AddOffsetsToTxn is not needed before it (KIP-890)
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
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
]


@struct
class TxnOffsetCommitRequestPartition(Struct):
    """The position in one partition."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="2+", default=-1, ignorable=True)  # -1 if unknown
    committed_metadata: str | None = string(nullable="0+")


@struct
class TxnOffsetCommitRequestTopic(Struct):
    """The positions in one topic."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"]):
    """Positions of a group, and the transaction they belong to."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(versions="3+", default=-1)  # -1 outside of group membership
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)  # of static members (KIP-345)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


@struct
class TxnOffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse(Response):
    """Results by topic and partition."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
