"""Fetch (API key 1)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Buffer,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    records_,
    string,
    struct,
    struct_,
    uuid_,
)

__all__ = [
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchTopic",
    "FetchableTopicResponse",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ReplicaState",
    "SnapshotId",
]


@struct
class ReplicaState(Struct):
    """ReplicaState."""

    replica_id: int = int32(versions="15+", default=-1)
    replica_epoch: int = int64(versions="15+", default=-1)


@struct
class FetchPartition(Struct):
    """FetchPartition."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="9+", default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(versions="12+", default=-1)
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid_(versions="17+", tag=0, tagged="17+", ignorable=True)
    high_watermark: int = int64(versions="18+", tag=1, tagged="18+", default=9223372036854775807, ignorable=True)


@struct
class FetchTopic(Struct):
    """FetchTopic."""

    topic: str = string(versions="0-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic(Struct):
    """ForgottenTopic."""

    topic: str = string(versions="7-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partitions: list[int] = array(int32, versions="7+")


@message(key=1, versions="0-18", flexible="12+")
class FetchRequest(Request["FetchResponse"]):
    """FetchRequest."""

    cluster_id: str | None = string(versions="12+", nullable="12+", tag=0, tagged="12+", default=None, ignorable=True)
    replica_id: int = int32(versions="0-14", default=-1)
    replica_state: ReplicaState = struct_(ReplicaState, versions="15+", tag=1, tagged="15+")
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(versions="3+", default=2147483647, ignorable=True)
    isolation_level: int = int8(versions="4+", ignorable=True)
    session_id: int = int32(versions="7+", ignorable=True)
    session_epoch: int = int32(versions="7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, versions="7+")
    rack_id: str = string(versions="11+", ignorable=True)


@struct
class EpochEndOffset(Struct):
    """EpochEndOffset."""

    epoch: int = int32(versions="12+", default=-1)
    end_offset: int = int64(versions="12+", default=-1)


@struct
class LeaderIdAndEpoch(Struct):
    """LeaderIdAndEpoch."""

    leader_id: int = int32(versions="12+", default=-1)
    leader_epoch: int = int32(versions="12+", default=-1)


@struct
class SnapshotId(Struct):
    """SnapshotId."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class AbortedTransaction(Struct):
    """AbortedTransaction."""

    producer_id: int = int64(versions="4+")
    first_offset: int = int64(versions="4+")


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(versions="4+", default=-1, ignorable=True)
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct_(EpochEndOffset, versions="12+", tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, versions="12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = struct_(SnapshotId, versions="12+", tag=2, tagged="12+")
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, versions="4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32(versions="11+", default=-1)
    records: Buffer | None = records_(nullable="0+")


@struct
class FetchableTopicResponse(Struct):
    """FetchableTopicResponse."""

    topic: str = string(versions="0-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint(Struct):
    """NodeEndpoint."""

    node_id: int = int32(versions="16+")
    host: str = string(versions="16+")
    port: int = int32(versions="16+")
    rack: str | None = string(versions="16+", nullable="16+", default=None)


@message(key=1, versions="0-18", flexible="12+")
class FetchResponse(Response):
    """FetchResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16(versions="7+", ignorable=True)
    session_id: int = int32(versions="7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="16+", tag=0, tagged="16+")
