"""DescribeQuorum (API key 55)."""

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
    uint16,
    uuid_,
)

__all__ = [
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "Listener",
    "Node",
    "ReplicaState",
    "RequestPartitionData",
    "RequestTopicData",
    "ResponsePartitionData",
    "ResponseTopicData",
]


@struct
class RequestPartitionData(Struct):
    """RequestPartitionData."""

    partition_index: int = int32()


@struct
class RequestTopicData(Struct):
    """RequestTopicData."""

    topic_name: str = string()
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Request["DescribeQuorumResponse"]):
    """DescribeQuorumRequest."""

    topics: list[RequestTopicData] = array(RequestTopicData)


@struct
class ReplicaState(Struct):
    """ReplicaState."""

    replica_id: int = int32()
    replica_directory_id: UUID = uuid_(versions="2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(versions="1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64(versions="1+", default=-1, ignorable=True)


@struct
class ResponsePartitionData(Struct):
    """ResponsePartitionData."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@struct
class ResponseTopicData(Struct):
    """ResponseTopicData."""

    topic_name: str = string()
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@struct
class Listener(Struct):
    """Listener."""

    name: str = string(versions="2+")
    host: str = string(versions="2+")
    port: int = uint16(versions="2+")


@struct
class Node(Struct):
    """Node."""

    node_id: int = int32(versions="2+")
    listeners: list[Listener] = array(Listener, versions="2+")


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Response):
    """DescribeQuorumResponse."""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="2+", ignorable=True)
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    nodes: list[Node] = array(Node, versions="2+")
