"""Metadata (API key 3)."""

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
    """MetadataRequestTopic."""

    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    name: str | None = string(nullable="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest(Request["MetadataResponse"]):
    """MetadataRequest."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = bool_(versions="4+", default=True)
    include_cluster_authorized_operations: bool = bool_(versions="8-10")
    include_topic_authorized_operations: bool = bool_(versions="8+")


@struct
class MetadataResponseBroker(Struct):
    """MetadataResponseBroker."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(versions="1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition(Struct):
    """MetadataResponsePartition."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(versions="7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, versions="5+", ignorable=True)


@struct
class MetadataResponseTopic(Struct):
    """MetadataResponseTopic."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: UUID = uuid_(versions="10+", ignorable=True)
    is_internal: bool = bool_(versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(versions="8+", default=-2147483648)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse(Response):
    """MetadataResponse."""

    throttle_time_ms: int = int32(versions="3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32(versions="1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(versions="8-10", default=-2147483648)
    error_code: int = int16(versions="13+", ignorable=True)
