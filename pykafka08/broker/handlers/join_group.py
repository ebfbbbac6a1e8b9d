"""JoinGroup: enter a group or stay in it; answered when a generation begins.  Source: KIP-62, KIP-345, KIP-394."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply, coordinator_error, mapped
from pykafka08.broker.group_member import JoinResult, Member
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

__all__ = ["join_group"]

MEMBER_ID_VERSION = 4
NULL_PROTOCOL_VERSION = 7
SKIP_ASSIGNMENT_VERSION = 9


@handles(JoinGroupRequest)
def join_group(call: Call, request: JoinGroupRequest) -> Reply:
    code = coordinator_error(call, request.group_id)
    if code:
        return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name="")
    rebalance_ms = request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms
    member = Member(
        request.member_id,
        request.group_instance_id,
        client_id=call.client_id,
        client_host=f"/{call.client_host}",
        session_timeout=request.session_timeout_ms / 1000,
        rebalance_timeout=max(0, rebalance_ms) / 1000,
        protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
    )
    joined = call.cluster.groups.join(
        request.group_id, member, request.protocol_type, requires_member_id=call.version >= MEMBER_ID_VERSION
    )
    return mapped(joined, lambda result: _response(call, result))


def _response(call: Call, result: JoinResult) -> JoinGroupResponse:
    leader, members = result.leader, result.members
    if result.skip_assignment and call.version < SKIP_ASSIGNMENT_VERSION:
        # Told that somebody else leads, a returned leader asks for its assignment and makes no new ones.
        leader, members = "", ()
    return JoinGroupResponse(
        error_code=result.error_code,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol or (None if call.version >= NULL_PROTOCOL_VERSION else ""),
        leader=leader,
        skip_assignment=result.skip_assignment and call.version >= SKIP_ASSIGNMENT_VERSION,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in members
        ],
    )
