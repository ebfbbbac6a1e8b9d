"""DescribeCluster: brokers, controller, cluster id.  Source: KIP-700."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

__all__ = ["describe_cluster"]

BROKERS = 1


@handles(DescribeClusterRequest)
def describe_cluster(call: Call, request: DescribeClusterRequest) -> Reply:
    code = call.scripted_error()
    if not code and request.endpoint_type != BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    if code:
        return DescribeClusterResponse(error_code=code)
    response = DescribeClusterResponse(
        cluster_id=call.cluster.cluster_id,
        controller_id=call.cluster.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.node_id, host=endpoint.host, port=endpoint.port, rack=node.rack)
            for node, endpoint in call.live_endpoints()
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = call.cluster_operations()
    return response
