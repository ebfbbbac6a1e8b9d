"""DescribeProducers (API key 61)."""

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
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "PartitionResponse",
    "ProducerState",
    "TopicRequest",
    "TopicResponse",
]


@struct
class TopicRequest(Struct):
    """TopicRequest."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    """DescribeProducersRequest."""

    topics: list[TopicRequest] = array(TopicRequest)


@struct
class ProducerState(Struct):
    """ProducerState."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@struct
class PartitionResponse(Struct):
    """PartitionResponse."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState)


@struct
class TopicResponse(Struct):
    """TopicResponse."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse(Response):
    """DescribeProducersResponse."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
