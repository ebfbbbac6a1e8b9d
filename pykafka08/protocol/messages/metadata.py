"""Metadata: which brokers there are, and who leads each partition (API key 3).

Any broker answers, from its own picture of the cluster.  The first question to a broker whose release is unknown: 0.8
and 0.9 answer version 1 as if it were 0.  In version 0 an empty list of topics asks for all of them, from 1 on None
does.  Asking for a topic by name may create it; LEADER_NOT_AVAILABLE is then the first answer.

Versions, the first release with each, and what is new in it:

     0  0.8.0
     1  0.10.0  None for all topics; controller, racks, which topics are internal
     2  0.10.1  cluster id (KIP-78)
     3  0.11.0  throttle time (KIP-124)
     4  0.11.0  creation of topics can be declined (KIP-117)
     5  1.0     offline replicas (KIP-112)
     6  2.0     the answer comes before the throttling, not after it (KIP-219)
     7  2.1     leader epochs (KIP-320)
     8  2.3     authorized operations (KIP-430)
     9  2.4     compact forms, tagged fields (KIP-482)
    10  2.8     topic ids in the response (KIP-516)
    11  2.8     DescribeCluster takes over the cluster's operations (KIP-700)
    12  3.1     topic ids in the request (KIP-516)
    13  4.0     an error for the whole response, such as REBOOTSTRAP_REQUIRED (KIP-1102)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    message,
    string,
    struct,
    uuid_,
)

__all__ = [
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
]


@struct
class MetadataRequestTopic(Struct):
    """A topic by name or, from version 12 on, by id."""

    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest(Request["MetadataResponse"]):
    """Which topics to describe; all brokers are described anyway."""

    # None asks for all; in version 0 an empty list does
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = bool_(versions="4+", default=True)
    include_cluster_authorized_operations: bool = bool_(versions="8-10")
    include_topic_authorized_operations: bool = bool_(versions="8+")


@struct
class MetadataResponseBroker(Struct):
    """A broker's address on the listener that was asked."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(versions="1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition(Struct):
    """A partition and its replicas."""

    error_code: int = int16()  # REPLICA_NOT_AVAILABLE is only a note: the leader serves
    partition_index: int = int32()
    leader_id: int = int32()  # -1 for none
    leader_epoch: int = int32(versions="7+", default=-1, ignorable=True)  # -1 if unknown
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, versions="5+", ignorable=True)


@struct
class MetadataResponseTopic(Struct):
    """A topic and its partitions."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")  # None if a topic id is unknown
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    is_internal: bool = bool_(versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    # a bit for each AclOperation; the default says they were not asked for
    topic_authorized_operations: int = int32(versions="8+", default=-2147483648)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse(Response):
    """Brokers and topics."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32(versions="1+", default=-1, ignorable=True)  # -1 for none
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    # a bit for each AclOperation; the default says they were not asked for
    cluster_authorized_operations: int = int32(versions="8-10", default=-2147483648)
    error_code: int = int16(versions="13+", ignorable=True)  # of the whole response
