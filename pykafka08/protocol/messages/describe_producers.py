"""DescribeProducers: who has written to partitions lately (API key 61).

Goes to the leader of each partition; finds transactions that hang.

Versions, the first release with each, and what is new in it:

     0  2.8     (KIP-664)
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
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "PartitionResponse",
    "ProducerState",
    "TopicRequest",
    "TopicResponse",
]


@struct
class TopicRequest(Struct):
    """Partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    """Which partitions."""

    topics: list[TopicRequest] = array(TopicRequest)


@struct
class ProducerState(Struct):
    """A producer as a partition remembers it."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)  # -1 if unknown
    last_timestamp: int = int64(default=-1)  # milliseconds; -1 if unknown
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)  # -1 outside of a transaction


@struct
class PartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState)


@struct
class TopicResponse(Struct):
    """The producers of one topic."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse(Response):
    """Producers by topic and partition."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
