"""AlterPartitionReassignments: replicas move at once, since all replicas share one log.  Source: KIP-455, KIP-860."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

__all__ = ["alter_partition_reassignments"]


@handles(AlterPartitionReassignmentsRequest)
def alter_partition_reassignments(call: Call, request: AlterPartitionReassignmentsRequest) -> Reply:
    denied = call.denied(AclResourceType.CLUSTER)
    code = call.scripted_error() or denied or controller_error(call)
    if code and code == denied:
        return _denied(request, denied)
    if code:
        return AlterPartitionReassignmentsResponse(error_code=code)
    may_resize = request.allow_replication_factor_change
    responses = []
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            code, reason = _reassign(call, topic.name, each.partition_index, each.replicas, may_resize=may_resize)
            partitions.append(
                ReassignablePartitionResponse(
                    partition_index=each.partition_index, error_code=code, error_message=reason
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_resize, error_message=None, responses=responses
    )


def _denied(request: AlterPartitionReassignmentsRequest, code: int) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _reassign(
    call: Call, name: str, index: int, replicas: list[int] | None, *, may_resize: bool
) -> tuple[int, str | None]:
    partition = call.cluster.topics.find_partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {name!r:.300}"
    if replicas is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None
    absent = [node for node in replicas if node not in call.cluster.nodes]
    if not replicas or absent or len(set(replicas)) < len(replicas):
        text = f"brokers {absent} do not exist" if absent else f"replicas {replicas} are empty or not unique"
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, text
    if not may_resize and len(replicas) != len(partition.replicas):
        text = f"{len(replicas)} replicas would change the replication factor of {len(partition.replicas)}"
        return ErrorCode.INVALID_REPLICATION_FACTOR, text
    call.cluster.topics.reassign(partition, replicas)
    return ErrorCode.NONE, None
