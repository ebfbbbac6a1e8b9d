"""ShareAcknowledge (API key 79)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
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
    string,
    struct,
    struct_,
    uuid_,
)

__all__ = [
    "AcknowledgePartition",
    "AcknowledgeTopic",
    "AcknowledgementBatch",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
    "ShareAcknowledgeTopicResponse",
]


@struct
class AcknowledgementBatch(Struct):
    """AcknowledgementBatch."""

    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(int8)


@struct
class AcknowledgePartition(Struct):
    """AcknowledgePartition."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class AcknowledgeTopic(Struct):
    """AcknowledgeTopic."""

    topic_id: UUID = uuid_()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


@message(key=79, versions="0-2", flexible="0+")
class ShareAcknowledgeRequest(Request["ShareAcknowledgeResponse"]):
    """ShareAcknowledgeRequest."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = bool_(versions="2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


@struct
class LeaderIdAndEpoch(Struct):
    """LeaderIdAndEpoch."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse(Struct):
    """ShareAcknowledgeTopicResponse."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint(Struct):
    """NodeEndpoint."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(key=79, versions="0-2", flexible="0+")
class ShareAcknowledgeResponse(Response):
    """ShareAcknowledgeResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
