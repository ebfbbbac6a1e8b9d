"""DeleteTopics: done at once.  v6+ takes topic ids too (KIP-516)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import Topic
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.fields import ZERO_UUID
from pykafka08.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

__all__ = ["delete_topics"]

TOPIC_ID_VERSION = 6


@handles(DeleteTopicsRequest)
def delete_topics(call: Call, request: DeleteTopicsRequest) -> Reply:
    topics = call.cluster.topics
    if call.version < TOPIC_ID_VERSION:
        results = [_delete(call, topics.find(name), name, None) for name in request.topic_names]
    else:
        results = [
            _delete(call, topics.find(each.name), each.name, None)
            if each.name is not None
            else _delete(call, topics.find_id(each.topic_id), None, each.topic_id)
            for each in request.topics
        ]
    return DeleteTopicsResponse(responses=results)


def _delete(call: Call, topic: Topic | None, name: str | None, topic_id: UUID | None) -> DeletableTopicResult:
    code = call.scripted_error(name) or controller_error(call)
    known = name if topic is None else topic.name
    if not code and known is not None and call.denied(AclResourceType.TOPIC, known):
        is_seen = name is not None or not call.denied(AclResourceType.TOPIC, known, AclOperation.DESCRIBE)
        return DeletableTopicResult(
            name=known if is_seen else None,
            topic_id=ZERO_UUID if topic_id is None else topic_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        )
    if not code and topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic_id is None else ErrorCode.UNKNOWN_TOPIC_ID
    result = DeletableTopicResult(name=name, error_code=code)
    if topic is not None:
        result.name, result.topic_id = topic.name, topic.topic_id
        if not code:
            call.cluster.delete_topic(topic)
    elif topic_id is not None:
        result.topic_id = topic_id
    return result
