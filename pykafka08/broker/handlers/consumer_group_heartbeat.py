"""ConsumerGroupHeartbeat: a member of the new group protocol joins, lives and leaves (KIP-848).

A cluster whose feature ``group.version`` is 0 (all before 4.0, unless it is told otherwise) lists the API and answers
UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from itertools import groupby

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.consumer_groups import Refusal, check_request
from pykafka08.broker.handlers import handles
from pykafka08.broker.server_assignors import TopicPartitionId
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

__all__ = ["consumer_group_heartbeat", "is_enabled"]


@handles(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> Reply:
    if not is_enabled(call):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    code = coordinator_error(call, request.group_id)
    if code:
        return ConsumerGroupHeartbeatResponse(error_code=code)
    if any(call.denied(AclResourceType.TOPIC, name) for name in request.subscribed_topic_names or ()):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    groups = call.cluster.groups
    try:
        check_request(request, call.version)
        beaten = groups.beat(request, new_id=str(uuid.uuid4()), client=(call.client_id, f"/{call.client_host}"))
    except Refusal as refusal:
        return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)
    return ConsumerGroupHeartbeatResponse(
        member_id=beaten.member_id,
        member_epoch=beaten.epoch,
        heartbeat_interval_ms=groups.consumer_heartbeat_interval_ms(request.group_id) if beaten.epoch >= 0 else 0,
        assignment=Assignment(topic_partitions=_by_topic(beaten.assigned)) if beaten.assigned is not None else None,
    )


def is_enabled(call: Call) -> bool:
    """True if the cluster has the new protocol switched on."""
    return call.cluster.features.get("group.version", 0) >= 1


def _by_topic(partitions: Iterable[TopicPartitionId]) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=[number for _, number in run])
        for topic_id, run in groupby(sorted(partitions), key=lambda tp: tp[0])
    ]
