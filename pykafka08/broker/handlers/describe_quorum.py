"""DescribeQuorum: the controllers of a cluster without ZooKeeper; every broker is one.  Source: KIP-595, KIP-853."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

__all__ = ["describe_quorum"]

METADATA_TOPIC = "__cluster_metadata"
NODES_VERSION = 2


@handles(DescribeQuorumRequest)
def describe_quorum(call: Call, request: DescribeQuorumRequest) -> Reply:
    code = call.scripted_error() or call.denied(AclResourceType.CLUSTER)
    if code:
        return DescribeQuorumResponse(error_code=code)
    response = DescribeQuorumResponse(
        error_message="",
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[_partition(call, topic.topic_name, each.partition_index) for each in topic.partitions],
            )
            for topic in request.topics
        ],
    )
    if call.version >= NODES_VERSION and request.topics:
        response.nodes = [
            Node(node_id=node.node_id, listeners=[Listener(name="CONTROLLER", host=node.host, port=node.port)])
            for node in call.cluster.nodes.values()
        ]
    return response


def _partition(call: Call, topic: str, index: int) -> ResponsePartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return ResponsePartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"this broker has no partition {index} of topic {topic!r:.300}",
        )
    now_ms, end = call.cluster.now_ms(), call.cluster.metadata_end_offset
    return ResponsePartitionData(
        partition_index=0,
        error_message="",
        leader_id=call.cluster.controller_id,
        leader_epoch=1,
        high_watermark=end,
        current_voters=[
            ReplicaState(
                replica_id=node.node_id,
                log_end_offset=end,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for node in call.cluster.nodes.values()
        ],
    )
