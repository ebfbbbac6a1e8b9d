"""FindCoordinator: who coordinates a group, a transactional id or a share group.  Source: KIP-699 (v4, many)."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

__all__ = ["find_coordinator"]

MANY_KEYS_VERSION = 4
TRANSACTIONAL_ID = 1


@handles(FindCoordinatorRequest)
def find_coordinator(call: Call, request: FindCoordinatorRequest) -> Reply:
    if call.version >= MANY_KEYS_VERSION:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(call, key, request.key_type) for key in request.coordinator_keys]
        )
    found = _coordinator(call, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(call: Call, key: str, key_type: int) -> Coordinator:
    kind = AclResourceType.TRANSACTIONAL_ID if key_type == TRANSACTIONAL_ID else AclResourceType.GROUP
    code = call.scripted_error() or call.denied(kind, key)
    node = call.cluster.coordinator(key)
    if code or node is None:
        code = code or ErrorCode.COORDINATOR_NOT_AVAILABLE
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=None)
    endpoint = call.endpoint_of(node)
    return Coordinator(key=key, node_id=node.node_id, host=endpoint.host, port=endpoint.port, error_message=None)
