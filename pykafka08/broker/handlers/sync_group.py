"""SyncGroup: the leader hands in the assignments, every member gets its own."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply, coordinator_error, mapped
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

__all__ = ["sync_group"]


@handles(SyncGroupRequest)
def sync_group(call: Call, request: SyncGroupRequest) -> Reply:
    code = coordinator_error(call, request.group_id)
    if code:
        return SyncGroupResponse(error_code=code)
    synced = call.cluster.groups.sync(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        (request.protocol_type, request.protocol_name),
        {each.member_id: bytes(each.assignment) for each in request.assignments},
    )
    return mapped(
        synced,
        lambda result: SyncGroupResponse(
            error_code=result.error_code,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol,
            assignment=result.assignment,
        ),
    )
