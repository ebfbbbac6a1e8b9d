"""OffsetCommit.  v0 is kept as real brokers keep it in ZooKeeper: by any broker, apart from later versions' offsets."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.groups import CommittedOffset
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import Topic
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

__all__ = ["offset_commit"]

LARGEST_METADATA = 4096
MEMBER_EPOCH_VERSION = 9
TOPIC_ID_VERSION = 10


@handles(OffsetCommitRequest)
def offset_commit(call: Call, request: OffsetCommitRequest) -> Reply:
    code: int = call.denied(AclResourceType.GROUP, request.group_id)
    if call.version > 0 and not code:
        code = coordinator_error(call, request.group_id, takes_scripted=False) or call.cluster.groups.check_commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            knows_epochs=call.version >= MEMBER_EPOCH_VERSION,
        )
    return OffsetCommitResponse(topics=[_topic(call, request.group_id, asked, code) for asked in request.topics])


def _topic(call: Call, group_id: str, asked: OffsetCommitRequestTopic, code: int) -> OffsetCommitResponseTopic:
    if call.version >= TOPIC_ID_VERSION:
        topic, unknown = call.cluster.topics.find_id(asked.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic, unknown = call.cluster.topics.find(asked.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    name = topic.name if topic is not None else asked.name
    answers = []
    for each in asked.partitions:
        result = call.scripted_error(name, each.partition_index)
        if not result and code != ErrorCode.GROUP_AUTHORIZATION_FAILED and name:
            result = call.denied(AclResourceType.TOPIC, name)
        result = result or code
        result = result or _refusal(call, topic, unknown, each)
        if not result:
            _store(call, group_id, name, each)
        answers.append(OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=result))
    return OffsetCommitResponseTopic(name=name, topic_id=asked.topic_id, partitions=answers)


def _refusal(call: Call, topic: Topic | None, unknown: ErrorCode, asked: OffsetCommitRequestPartition) -> ErrorCode:
    # 0.8 stores offsets of topics that it does not know.
    if call.personality >= (0, 9) and (topic is None or not 0 <= asked.partition_index < len(topic.partitions)):
        return unknown if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(asked.committed_metadata or "") > LARGEST_METADATA:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _store(call: Call, group_id: str, name: str, asked: OffsetCommitRequestPartition) -> None:
    groups = call.cluster.groups
    committed = CommittedOffset(asked.committed_offset, asked.committed_leader_epoch, asked.committed_metadata or "")
    if call.version == 0:
        groups.offsets_v0.commit(group_id, name, asked.partition_index, committed)
    else:
        groups.commit(group_id, name, asked.partition_index, committed)
