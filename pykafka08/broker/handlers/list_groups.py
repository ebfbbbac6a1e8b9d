"""ListGroups: the groups that this broker coordinates.  Filters by state (KIP-518) and type (KIP-848)."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.handlers.describe_groups import state_name
from pykafka08.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

__all__ = ["list_groups"]

CLASSIC = "classic"


@handles(ListGroupsRequest)
def list_groups(call: Call, request: ListGroupsRequest) -> Reply:
    code = call.scripted_error()
    if code:
        return ListGroupsResponse(error_code=code)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = []
    for group in call.cluster.groups:
        state = state_name(call, group.state)
        is_here = call.cluster.coordinator(group.group_id) is call.node
        if is_here and (not states or state.lower() in states) and (not types or CLASSIC in types):
            listed.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=state,
                    group_type=CLASSIC,
                )
            )
    return ListGroupsResponse(groups=listed)
