"""Metadata: brokers, topics, leaders; makes unknown topics where the release and the cluster do so.

Source: KIP-4 (v1), KIP-78 (cluster id), KIP-320 (leader epochs), KIP-516 (topic ids); ``KafkaApis`` at each tag for
which brokers 0.8 lists and what is answered while a topic is being made.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import NO_LEADER, Partition, Topic, is_valid_topic_name
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.fields import ZERO_UUID
from pykafka08.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka08.records.topic_name import INTERNAL_TOPICS

__all__ = ["metadata"]


@handles(MetadataRequest)
def metadata(call: Call, request: MetadataRequest) -> Reply:
    is_all = request.topics is None or (call.version == 0 and not request.topics)
    if is_all:
        topics = [
            _described(call, topic)
            for topic in call.cluster.topics
            if not call.denied(AclResourceType.TOPIC, topic.name)
        ]
    else:
        allowed = request.allow_auto_topic_creation
        topics = [_asked(call, asked, allowed) for asked in request.topics or ()]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and not topic.error_code:
                topic.topic_authorized_operations = call.authorized_operations(AclResourceType.TOPIC, topic.name)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=endpoint.host, port=endpoint.port, rack=node.rack)
            for node, endpoint in call.live_endpoints()
            if _lists_broker(call, node.node_id, topics)
        ],
        cluster_id=call.cluster.cluster_id,
        controller_id=call.cluster.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = call.cluster_operations()
    return response


def _lists_broker(call: Call, node_id: int, topics: Iterable[MetadataResponseTopic]) -> bool:
    """0.8.0 and 0.8.1 list the brokers that host what was asked; 0.8.2 lists none before the first topic exists."""
    if call.personality >= (0, 9):
        return True
    if call.personality >= (0, 8, 2):
        return len(call.cluster.topics) > 0
    return any(node_id in partition.replica_nodes for topic in topics for partition in topic.partitions)


def _asked(call: Call, asked: MetadataRequestTopic, is_creation_allowed: bool) -> MetadataResponseTopic:
    if asked.name is None:
        return _asked_by_id(call, asked.topic_id)
    denied = call.denied(AclResourceType.TOPIC, asked.name)
    if denied:
        is_hidden = call.personality >= (0, 10, 1) and call.personality < (1, 0)  # as if there were no such topic
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_hidden else denied, name=asked.name
        )
    topic = call.cluster.topics.find(asked.name)
    if topic is not None:
        return _described(call, topic)
    code: int = call.scripted_error(asked.name)
    if not code and not is_valid_topic_name(asked.name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    if not code:
        code = _created(call, asked.name) if is_creation_allowed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=asked.name)


def _created(call: Call, name: str) -> int:
    """The answer about an unknown topic, which is made if the cluster does so.

    The broker that makes a topic answers before it has a leader; the next request finds it.
    """
    if call.cluster.auto_create_topics:
        denied = call.denied(AclResourceType.CLUSTER, operation=AclOperation.CREATE) and (
            call.denied(AclResourceType.TOPIC, name, AclOperation.CREATE)
        )
        if denied:
            return denied
    topic = call.cluster.auto_create(name)
    if call.personality.has_zookeeper:
        if topic is not None:
            return ErrorCode.LEADER_NOT_AVAILABLE
        if call.cluster.auto_create_topics and call.cluster.colliding_topic(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _asked_by_id(call: Call, topic_id: UUID) -> MetadataResponseTopic:
    topic = call.cluster.topics.find_id(topic_id)
    if topic is not None and call.denied(AclResourceType.TOPIC, topic.name):
        hidden = None if call.version >= 12 else ""
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=hidden, topic_id=topic_id)
    if topic is not None:
        return _described(call, topic)
    name = None if call.version >= 12 else ""
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=name, topic_id=topic_id)


def _described(call: Call, topic: Topic) -> MetadataResponseTopic:
    code = call.scripted_error(topic.name)
    return MetadataResponseTopic(
        error_code=code,
        name=topic.name,
        topic_id=topic.topic_id if call.personality.has_topic_ids else ZERO_UUID,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[] if code else [_partition(partition) for partition in topic.partitions],
    )


def _partition(partition: Partition) -> MetadataResponsePartition:
    has_leader = partition.leader != NO_LEADER
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=partition.offline_replicas,
    )
