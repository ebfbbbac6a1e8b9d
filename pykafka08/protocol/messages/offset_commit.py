"""OffsetCommit: stores how far a group has read (API key 8).

Version 0 writes to ZooKeeper and works on any broker; from 1 on the offsets live in Kafka and only the group's
coordinator takes them.  Kafka's offsets are those of the next record to read.

Versions, the first release with each, and what is new in it:

     0  0.8.1   into ZooKeeper
     1  0.8.2   into Kafka; generation, member, a timestamp for each offset
     2  0.9.0   one retention time for all instead of timestamps
     3  0.11.0  throttle time (KIP-124)
     4  2.0     the answer comes before the throttling, not after it (KIP-219)
     5  2.1     no retention time any more (KIP-211)
     6  2.1     leader epochs (KIP-320)
     7  2.3     static members (KIP-345)
     8  2.4     compact forms, tagged fields (KIP-482)
     9  3.7     member epochs of the new group protocol (KIP-848)
    10  4.2     topic ids instead of names (KIP-848)
"""

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
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
]


@struct
class OffsetCommitRequestPartition(Struct):
    """The position in one partition."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="6+", default=-1, ignorable=True)  # -1 if unknown
    commit_timestamp: int = int64(versions="1", default=-1)  # version 1 alone; -1 for now
    committed_metadata: str | None = string(nullable="0+")  # any text, kept beside the offset


@struct
class OffsetCommitRequestTopic(Struct):
    """The positions in one topic."""

    name: str = string(versions="0-9", ignorable=True)  # up to version 9, then topic_id
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    """Positions of a group by topic and partition."""

    group_id: str = string()
    # -1 outside of group membership
    generation_id_or_member_epoch: int = int32(versions="1+", default=-1, ignorable=True)
    member_id: str = string(versions="1+", ignorable=True)
    group_instance_id: str | None = string(versions="7+", nullable="7+", default=None)  # of static members (KIP-345)
    retention_time_ms: int = int64(versions="2-4", default=-1, ignorable=True)  # -1 for the broker's default
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic(Struct):
    """The results for one topic."""

    name: str = string(versions="0-9", ignorable=True)
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse(Response):
    """Results by topic and partition."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
