"""DescribeGroups: state and members of groups.  One that is not there is Dead; v6 answers an error (KIP-1043)."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.group import GroupState
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

__all__ = ["describe_groups"]

NOT_FOUND_VERSION = 6


@handles(DescribeGroupsRequest)
def describe_groups(call: Call, request: DescribeGroupsRequest) -> Reply:
    response = DescribeGroupsResponse(groups=[_group(call, group_id) for group_id in request.groups])
    for group in response.groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = call.authorized_operations(AclResourceType.GROUP, group.group_id)
    return response


def _group(call: Call, group_id: str) -> DescribedGroup:
    code = coordinator_error(call, group_id)
    if code:
        return DescribedGroup(error_code=code, group_id=group_id)
    group = call.cluster.groups.find(group_id)
    if group is None:
        is_told = call.version >= NOT_FOUND_VERSION
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.NONE,
            error_message=f"there is no group {group_id!r}" if is_told else None,
            group_id=group_id,
            group_state=GroupState.DEAD.value,
        )
    is_settled = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=state_name(call, group.state),
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol or "") if is_settled else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_settled else b"",
                member_assignment=member.assignment if is_settled else b"",
            )
            for member in group.members.values()
        ],
    )


def state_name(call: Call, state: GroupState) -> str:
    """As the played release calls it."""
    if state is GroupState.COMPLETING and call.personality < (1, 1):
        return "AwaitingSync"
    if state is GroupState.EMPTY and call.personality < (0, 10, 1):
        return GroupState.DEAD.value
    return state.value
