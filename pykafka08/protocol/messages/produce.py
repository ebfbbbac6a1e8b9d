"""Produce (API key 0)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Buffer,
    Request,
    Response,
    Struct,
    array,
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
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
]


@struct
class PartitionProduceData(Struct):
    """PartitionProduceData."""

    index: int = int32()
    records: Buffer | None = records_(nullable="0+")


@struct
class TopicProduceData(Struct):
    """TopicProduceData."""

    name: str = string(versions="0-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(key=0, versions="0-13", flexible="9+")
class ProduceRequest(Request["ProduceResponse"]):
    """ProduceRequest."""

    transactional_id: str | None = string(versions="3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage(Struct):
    """BatchIndexAndErrorMessage."""

    batch_index: int = int32(versions="8+")
    batch_index_error_message: str | None = string(versions="8+", nullable="8+", default=None)


@struct
class LeaderIdAndEpoch(Struct):
    """LeaderIdAndEpoch."""

    leader_id: int = int32(versions="10+", default=-1)
    leader_epoch: int = int32(versions="10+", default=-1)


@struct
class PartitionProduceResponse(Struct):
    """PartitionProduceResponse."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(versions="2+", default=-1, ignorable=True)
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, versions="8+", ignorable=True)
    error_message: str | None = string(versions="8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, versions="10+", tag=0, tagged="10+")


@struct
class TopicProduceResponse(Struct):
    """TopicProduceResponse."""

    name: str = string(versions="0-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint(Struct):
    """NodeEndpoint."""

    node_id: int = int32(versions="10+")
    host: str = string(versions="10+")
    port: int = int32(versions="10+")
    rack: str | None = string(versions="10+", nullable="10+", default=None)


@message(key=0, versions="0-13", flexible="9+")
class ProduceResponse(Response):
    """ProduceResponse."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="10+", tag=0, tagged="10+")
