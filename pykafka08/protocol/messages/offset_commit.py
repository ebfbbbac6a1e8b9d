"""OffsetCommit (API key 8)."""

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
    """OffsetCommitRequestPartition."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="6+", default=-1, ignorable=True)
    commit_timestamp: int = int64(versions="1", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@struct
class OffsetCommitRequestTopic(Struct):
    """OffsetCommitRequestTopic."""

    name: str = string(versions="0-9", ignorable=True)
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    """OffsetCommitRequest."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(versions="1+", default=-1, ignorable=True)
    member_id: str = string(versions="1+", ignorable=True)
    group_instance_id: str | None = string(versions="7+", nullable="7+", default=None)
    retention_time_ms: int = int64(versions="2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition(Struct):
    """OffsetCommitResponsePartition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic(Struct):
    """OffsetCommitResponseTopic."""

    name: str = string(versions="0-9", ignorable=True)
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse(Response):
    """OffsetCommitResponse."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
