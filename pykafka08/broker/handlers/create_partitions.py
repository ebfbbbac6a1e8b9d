"""CreatePartitions: topics grow, never shrink.  Source: KIP-195."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import MOST_PARTITIONS
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

__all__ = ["create_partitions"]


@handles(CreatePartitionsRequest)
def create_partitions(call: Call, request: CreatePartitionsRequest) -> Reply:
    results = []
    for asked in request.topics:
        code, reason = _check(call, asked)
        if not code and not request.validate_only:
            _grow(call, asked)
        results.append(CreatePartitionsTopicResult(name=asked.name, error_code=code, error_message=reason))
    return CreatePartitionsResponse(results=results)


def _check(call: Call, asked: CreatePartitionsTopic) -> tuple[int, str | None]:
    code = call.scripted_error(asked.name) or call.denied(AclResourceType.TOPIC, asked.name) or controller_error(call)
    if code:
        return code, None
    topic = call.cluster.topics.find(asked.name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {asked.name!r}"
    present = len(topic.partitions)
    if asked.count <= present:
        return ErrorCode.INVALID_PARTITIONS, f"the topic has {present} partitions; {asked.count} is not more"
    if asked.count > MOST_PARTITIONS:
        return ErrorCode.INVALID_PARTITIONS, f"at most {MOST_PARTITIONS} partitions are possible here"
    if asked.assignments is not None:
        live = set(call.cluster.live_node_ids())
        if len(asked.assignments) != asked.count - present:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "there must be one assignment for each new partition"
        if any(not each.broker_ids or not live.issuperset(each.broker_ids) for each in asked.assignments):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "an assignment names no broker, or one that is not there"
    return ErrorCode.NONE, None


def _grow(call: Call, asked: CreatePartitionsTopic) -> None:
    topics = call.cluster.topics
    topic = topics.find(asked.name)
    if topic is None:
        return
    for each in asked.assignments or ():
        topics.add_partition(topic, each.broker_ids)
    factor = len(topic.partitions[0].replicas) if topic.partitions else call.cluster.default_replication_factor
    topics.grow(topic, asked.count, factor)
