"""CreateTopics: done at once; validation as the controller does it.  Source: KIP-4, KIP-464 (defaults), KIP-525."""

from __future__ import annotations

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.config_entries import topic_entries
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import MOST_PARTITIONS, Topic, is_valid_topic_name
from pykafka08.broker.topic_configs import topic_config_fault
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

__all__ = ["create_topics"]

DEFAULT = -1
SINCE_CREATE_ON_TOPICS = (2, 0)


@handles(CreateTopicsRequest)
def create_topics(call: Call, request: CreateTopicsRequest) -> Reply:
    names = [asked.name for asked in request.topics]
    results = []
    for asked in request.topics:
        code: int
        code, reason = call.scripted_error(asked.name) or controller_error(call) or _denied(call, asked.name), None
        if not code and names.count(asked.name) > 1:
            code, reason = ErrorCode.INVALID_REQUEST, "the topic is named twice"
        if not code:
            code, reason = _check(call, asked)
        if code:
            result = CreatableTopicResult(name=asked.name, error_code=code, error_message=reason, configs=None)
            if call.personality.has_zookeeper:
                result.topic_config_error_code = _configs_denied(call, asked.name)
            results.append(result)
        else:
            results.append(_create(call, asked, is_only_checked=request.validate_only))
    return CreateTopicsResponse(topics=results)


def _denied(call: Call, name: str) -> int:
    """The code of a user who may create neither any topic nor this one; rights to one topic came with 2.0 (KIP-277)."""
    code = call.denied(AclResourceType.CLUSTER)
    if code and call.personality >= SINCE_CREATE_ON_TOPICS:
        return call.denied(AclResourceType.TOPIC, name)
    return code


def _configs_denied(call: Call, name: str) -> int:
    return call.denied(AclResourceType.TOPIC, name, AclOperation.DESCRIBE_CONFIGS)


def _check(call: Call, asked: CreatableTopic) -> tuple[ErrorCode, str | None]:
    live = set(call.cluster.live_node_ids())
    assigned = sorted(each.partition_index for each in asked.assignments)
    takes_defaults = call.personality >= (2, 4)
    code, reason = _check_name(call, asked.name)
    if not code:
        code, reason = _check_configs(call, asked)
    if code:
        return code, reason
    if assigned:
        if asked.num_partitions != DEFAULT or asked.replication_factor != DEFAULT:
            return ErrorCode.INVALID_REQUEST, "assignments exclude numbers of partitions and replicas"
        if assigned != list(range(len(assigned))):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 on"
        if any(not each.broker_ids or not live.issuperset(each.broker_ids) for each in asked.assignments):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "an assignment names no broker, or one that is not there"
        return ErrorCode.NONE, None
    if asked.num_partitions > MOST_PARTITIONS:
        return ErrorCode.INVALID_PARTITIONS, f"at most {MOST_PARTITIONS} partitions are possible here"
    if asked.num_partitions < 1 and not (takes_defaults and asked.num_partitions == DEFAULT):
        return ErrorCode.INVALID_PARTITIONS, f"{asked.num_partitions} is not a number of partitions"
    if asked.replication_factor == DEFAULT and takes_defaults:
        return ErrorCode.NONE, None
    if not 1 <= asked.replication_factor <= len(live):
        return (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{asked.replication_factor} replicas are not possible with {len(live)} brokers",
        )
    return ErrorCode.NONE, None


def _check_name(call: Call, name: str) -> tuple[ErrorCode, str | None]:
    if not is_valid_topic_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} is not a valid topic name"
    if name in call.cluster.topics:
        return ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} exists"
    other = call.cluster.colliding_topic(name)
    if other is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}"
    return ErrorCode.NONE, None


def _check_configs(call: Call, asked: CreatableTopic) -> tuple[ErrorCode, str | None]:
    nulls = [each.name for each in asked.configs if each.value is None]
    if nulls:
        code = ErrorCode.INVALID_REQUEST if call.personality.has_zookeeper else ErrorCode.INVALID_CONFIG
        return code, f"{', '.join(nulls)} cannot be null"
    fault = topic_config_fault({each.name: each.value for each in asked.configs}, call.personality)
    return (ErrorCode.NONE if fault is None else ErrorCode.INVALID_CONFIG), fault


def _create(call: Call, asked: CreatableTopic, *, is_only_checked: bool) -> CreatableTopicResult:
    cluster = call.cluster
    config = {each.name: each.value for each in asked.configs if each.value is not None}
    replicas = [each.broker_ids for each in sorted(asked.assignments, key=lambda each: each.partition_index)]
    count = asked.num_partitions if asked.num_partitions > 0 else cluster.default_partitions
    factor = asked.replication_factor if asked.replication_factor > 0 else cluster.default_replication_factor
    if replicas:
        count, factor = len(replicas), len(replicas[0])
    result = CreatableTopicResult(
        name=asked.name,
        num_partitions=count,
        replication_factor=factor,
        error_message=None,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in topic_entries(cluster.configs, config, str(call.node.node_id))
        ],
    )
    hidden = _configs_denied(call, asked.name)
    if hidden:
        result.num_partitions = result.replication_factor = -1
        result.topic_config_error_code, result.configs = hidden, None
    if not is_only_checked:
        topic: Topic
        if replicas:
            topic = cluster.topics.create_assigned(asked.name, replicas, config)
        else:
            topic = cluster.topics.create(asked.name, count, factor, config)
        result.topic_id = topic.topic_id
    return result
