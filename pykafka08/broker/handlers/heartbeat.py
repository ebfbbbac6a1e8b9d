"""Heartbeat: a member is alive, and learns whether it has to join again."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.group import GroupState
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

__all__ = ["heartbeat"]


@handles(HeartbeatRequest)
def heartbeat(call: Call, request: HeartbeatRequest) -> Reply:
    groups = call.cluster.groups
    code = coordinator_error(call, request.group_id)
    group = groups.find(request.group_id)
    if not code and group is not None and call.personality < (0, 10) and group.state is not GroupState.STABLE:
        # 0.9 looks at the group's state before it looks who asks.
        code = ErrorCode.REBALANCE_IN_PROGRESS if group.members else ErrorCode.UNKNOWN_MEMBER_ID
    if not code:
        code = groups.heartbeat(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            is_strict=call.personality < (2, 7),
        )
    return HeartbeatResponse(error_code=code)
