"""DescribeQuorum: the controllers of a KRaft cluster and how far each has come (API key 55).

Brokers pass it on to the controller.

Versions, the first release with each, and what is new in it:

     0  2.7     early access (KIP-595)
     1  3.3     when each replica last fetched (KIP-836)
     2  3.9     directory ids, addresses, error messages (KIP-853)
"""

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
    """A partition; there is only 0."""

    partition_index: int = int32()


@struct
class RequestTopicData(Struct):
    """A topic; there is only __cluster_metadata."""

    topic_name: str = string()
    partitions: list[RequestPartitionData] = array(RequestPartitionData)


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Request["DescribeQuorumResponse"]):
    """The metadata log."""

    topics: list[RequestTopicData] = array(RequestTopicData)


@struct
class ReplicaState(Struct):
    """A replica of the metadata log."""

    replica_id: int = int32()
    replica_directory_id: UUID = uuid_(versions="2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(versions="1+", default=-1, ignorable=True)  # milliseconds; -1 if unknown
    last_caught_up_timestamp: int = int64(versions="1+", default=-1, ignorable=True)  # milliseconds; -1 if unknown


@struct
class ResponsePartitionData(Struct):
    """The quorum of one partition."""

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
    """Partitions of one topic."""

    topic_name: str = string()
    partitions: list[ResponsePartitionData] = array(ResponsePartitionData)


@struct
class Listener(Struct):
    """An address of a controller."""

    name: str = string(versions="2+")
    host: str = string(versions="2+")
    port: int = uint16(versions="2+")


@struct
class Node(Struct):
    """A controller."""

    node_id: int = int32(versions="2+")
    listeners: list[Listener] = array(Listener, versions="2+")


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Response):
    """The quorum."""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="2+", ignorable=True)
    topics: list[ResponseTopicData] = array(ResponseTopicData)
    nodes: list[Node] = array(Node, versions="2+")
