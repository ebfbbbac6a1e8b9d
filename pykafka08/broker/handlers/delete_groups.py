"""DeleteGroups: groups without members go, with their offsets.  Source: KIP-229."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse

__all__ = ["delete_groups"]


@handles(DeleteGroupsRequest)
def delete_groups(call: Call, request: DeleteGroupsRequest) -> Reply:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(
                group_id=group_id,
                error_code=coordinator_error(call, group_id) or call.cluster.groups.delete(group_id),
            )
            for group_id in request.groups_names
        ]
    )
