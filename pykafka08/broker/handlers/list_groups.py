"""ListGroups: the groups that this broker coordinates.  Filters by state (KIP-518) and type (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.handlers.describe_groups import state_name
from pykafka08.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

__all__ = ["list_groups"]

CLASSIC = "classic"
CONSUMER = "consumer"


@handles(ListGroupsRequest)
def list_groups(call: Call, request: ListGroupsRequest) -> Reply:
    code = call.scripted_error()
    if code:
        return ListGroupsResponse(error_code=code)
    sees_all = not call.denied(AclResourceType.CLUSTER)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=[
            each
            for each in _all(call)
            if call.cluster.coordinator(each.group_id) is call.node
            and (sees_all or not call.denied(AclResourceType.GROUP, each.group_id))
            and (not states or each.group_state.lower() in states)
            and (not types or each.group_type.lower() in types)
        ]
    )


def _all(call: Call) -> Iterator[ListedGroup]:
    for classic in call.cluster.groups:
        yield ListedGroup(
            group_id=classic.group_id,
            protocol_type=classic.protocol_type,
            group_state=state_name(call, classic.state),
            group_type=CLASSIC,
        )
    for group in call.cluster.groups.consumer_groups.values():
        yield ListedGroup(
            group_id=group.group_id, protocol_type=CONSUMER, group_state=group.state.value, group_type=CONSUMER
        )
