"""DescribeCluster (API key 60)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = ["DescribeClusterBroker", "DescribeClusterRequest", "DescribeClusterResponse"]


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest(Request["DescribeClusterResponse"]):
    """DescribeClusterRequest."""

    include_cluster_authorized_operations: bool = bool_()
    endpoint_type: int = int8(versions="1+", default=1)
    include_fenced_brokers: bool = bool_(versions="2+")


@struct
class DescribeClusterBroker(Struct):
    """DescribeClusterBroker."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = bool_(versions="2+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(Response):
    """DescribeClusterResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8(versions="1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)
