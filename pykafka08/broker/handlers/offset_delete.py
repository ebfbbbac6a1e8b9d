"""OffsetDelete: deletes committed offsets of a group, except for topics that its members read.  Source: KIP-496."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["offset_delete"]


@handles(OffsetDeleteRequest)
def offset_delete(call: Call, request: OffsetDeleteRequest) -> Reply:
    groups, group_id = call.cluster.groups, request.group_id
    code: int = coordinator_error(call, group_id)
    if not code:
        code = ErrorCode.NONE if group_id else ErrorCode.INVALID_GROUP_ID
    if not code:
        code = groups.offset_deletion_error(group_id)
    if code:
        return OffsetDeleteResponse(error_code=code)
    read = groups.subscribed_topics(group_id)
    response = OffsetDeleteResponse()
    for topic in request.topics:
        partitions = []
        for each in topic.partitions:
            denied = call.denied(AclResourceType.TOPIC, topic.name)
            if denied:
                code = denied
            elif call.cluster.topics.find_partition(topic.name, each.partition_index) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in read else ErrorCode.NONE
            if not code:
                groups.delete_offset(group_id, topic.name, each.partition_index)
            partitions.append(OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code))
        response.topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return response
