"""ShareFetch (API key 78)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Buffer,
    Request,
    Response,
    Struct,
    array,
    bool_,
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
    "AcknowledgementBatch",
    "AcquiredRecords",
    "FetchPartition",
    "FetchTopic",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareFetchableTopicResponse",
]


@struct
class AcknowledgementBatch(Struct):
    """AcknowledgementBatch."""

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(int8)


@struct
class FetchPartition(Struct):
    """FetchPartition."""

    partition_index: int = int32()
    partition_max_bytes: int = int32(versions="0")
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class FetchTopic(Struct):
    """FetchTopic."""

    topic_id: UUID = uuid_()
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic(Struct):
    """ForgottenTopic."""

    topic_id: UUID = uuid_()
    partitions: list[int] = array(int32)


@message(key=78, versions="0-2", flexible="0+")
class ShareFetchRequest(Request["ShareFetchResponse"]):
    """ShareFetchRequest."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32(versions="1+")
    batch_size: int = int32(versions="1+")
    share_acquire_mode: int = int8(versions="2+", ignorable=True)
    is_renew_ack: bool = bool_(versions="2+")
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


@struct
class LeaderIdAndEpoch(Struct):
    """LeaderIdAndEpoch."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class AcquiredRecords(Struct):
    """AcquiredRecords."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch)
    records: Buffer | None = records_(nullable="0")
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@struct
class ShareFetchableTopicResponse(Struct):
    """ShareFetchableTopicResponse."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint(Struct):
    """NodeEndpoint."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(key=78, versions="0-2", flexible="0+")
class ShareFetchResponse(Response):
    """ShareFetchResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="1+")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
