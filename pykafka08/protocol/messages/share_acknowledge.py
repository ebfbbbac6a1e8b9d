"""ShareAcknowledge: acknowledges records of a share group without reading on (API key 79).

Share groups (KIP-932): several consumers read the same partition and acknowledge single records.

Versions, the first release with each, and what is new in it:

     0  -       early access in 3.9 and 4.0
     1  4.1     (KIP-932)
     2  4.2     records can be kept longer (KIP-1222)
"""

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
    """What became of a range of records."""

    first_offset: int = int64()
    last_offset: int = int64()
    # one for all or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew
    acknowledge_types: list[int] = array(int8)


@struct
class AcknowledgePartition(Struct):
    """Acknowledgements in one partition."""

    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class AcknowledgeTopic(Struct):
    """Acknowledgements in one topic."""

    topic_id: UUID = uuid_()
    partitions: list[AcknowledgePartition] = array(AcknowledgePartition)


@message(key=79, versions="0-2", flexible="0+")
class ShareAcknowledgeRequest(Request["ShareAcknowledgeResponse"]):
    """Acknowledgements by topic and partition."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()  # -1 closes the session
    is_renew_ack: bool = bool_(versions="2+")
    topics: list[AcknowledgeTopic] = array(AcknowledgeTopic)


@struct
class LeaderIdAndEpoch(Struct):
    """The leader that the broker knows of; -1 if it does not."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class PartitionData(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse(Struct):
    """The results for one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint(Struct):
    """The address of a leader that the response names."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(key=79, versions="0-2", flexible="0+")
class ShareAcknowledgeResponse(Response):
    """Results by topic and partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array(ShareAcknowledgeTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
