"""ShareFetch: acquires records for a member of a share group, and acknowledges earlier ones (API key 78).

Share groups (KIP-932): several consumers read the same partition and acknowledge single records.  The acquired records
are the member's until it acknowledges them or the lock runs out.

Versions, the first release with each, and what is new in it:

     0  -       early access in 3.9 and 4.0
     1  4.1     (KIP-932); a limit of records instead of one for each partition
     2  4.2     records can be kept longer, exact limits (KIP-1206, KIP-1222)
"""

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
    """What became of a range of records."""

    first_offset: int = int64()
    last_offset: int = int64()
    # one for all or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew
    acknowledge_types: list[int] = array(int8)


@struct
class FetchPartition(Struct):
    """A partition to read."""

    partition_index: int = int32()
    partition_max_bytes: int = int32(versions="0")  # version 0 alone
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class FetchTopic(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic(Struct):
    """Partitions that leave the session."""

    topic_id: UUID = uuid_()
    partitions: list[int] = array(int32)


@message(key=78, versions="0-2", flexible="0+")
class ShareFetchRequest(Request["ShareFetchResponse"]):
    """Partitions to read, and acknowledgements."""

    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()  # 0 opens a session, -1 closes it
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32(versions="1+")
    batch_size: int = int32(versions="1+")
    share_acquire_mode: int = int8(versions="2+", ignorable=True)  # 0 whole batches, 1 no more than max_records
    is_renew_ack: bool = bool_(versions="2+")  # acknowledgements of type 4 are among them
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


@struct
class LeaderIdAndEpoch(Struct):
    """The leader that the broker knows of; -1 if it does not."""

    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class AcquiredRecords(Struct):
    """A range of records that the member may process."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()  # 1 at first


@struct
class PartitionData(Struct):
    """What one partition gave."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch)
    records: Buffer | None = records_(nullable="0")  # a view of the frame; may hold more than was acquired
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@struct
class ShareFetchableTopicResponse(Struct):
    """What one topic gave."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint(Struct):
    """The address of a leader that the response names."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(key=78, versions="0-2", flexible="0+")
class ShareFetchResponse(Response):
    """Record sets, and which of them are acquired."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32(versions="1+")
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
