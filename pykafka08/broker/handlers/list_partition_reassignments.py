"""ListPartitionReassignments: none, since replicas move at once.  Source: KIP-455."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

__all__ = ["list_partition_reassignments"]


@handles(ListPartitionReassignmentsRequest)
def list_partition_reassignments(call: Call, request: ListPartitionReassignmentsRequest) -> Reply:
    code = call.scripted_error() or call.denied(AclResourceType.CLUSTER) or controller_error(call)
    return ListPartitionReassignmentsResponse(error_code=code, error_message=None)
