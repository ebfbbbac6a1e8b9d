"""DescribeCluster: the brokers, or the controllers, of a cluster (API key 60).

For administration; clients go on with Metadata.

Versions, the first release with each, and what is new in it:

     0  2.8     (KIP-700)
     1  3.7     controllers can be asked (KIP-919)
     2  4.0     fenced brokers (KIP-1073)
"""

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
    """What to describe."""

    include_cluster_authorized_operations: bool = bool_()
    endpoint_type: int = int8(versions="1+", default=1)  # 1 brokers, 2 controllers
    include_fenced_brokers: bool = bool_(versions="2+")


@struct
class DescribeClusterBroker(Struct):
    """A broker or a controller."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = bool_(versions="2+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(Response):
    """The nodes."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8(versions="1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)  # -1 for none
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    # a bit for each AclOperation; the default says they were not asked for
    cluster_authorized_operations: int = int32(default=-2147483648)
