"""LeaveGroup: members go, and the rest rebalances at once.  v3+ names many (KIP-345)."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

__all__ = ["leave_group"]

MANY_MEMBERS_VERSION = 3


@handles(LeaveGroupRequest)
def leave_group(call: Call, request: LeaveGroupRequest) -> Reply:
    code = coordinator_error(call, request.group_id)
    if code:
        return LeaveGroupResponse(error_code=code)
    groups = call.cluster.groups
    if call.version < MANY_MEMBERS_VERSION:
        return LeaveGroupResponse(error_code=groups.leave(request.group_id, request.member_id, None))
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                error_code=groups.leave(request.group_id, each.member_id, each.group_instance_id),
            )
            for each in request.members
        ]
    )
