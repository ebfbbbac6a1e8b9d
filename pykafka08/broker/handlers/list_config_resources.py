"""ListConfigResources: names of resources with configs; before v1 only client metrics.  Source: KIP-1000, KIP-1142."""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.config_changes import ResourceType
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

__all__ = ["list_config_resources"]

ALL_TYPES_VERSION = 1


@handles(ListConfigResourcesRequest)
def list_config_resources(call: Call, request: ListConfigResourcesRequest) -> Reply:
    code: int = call.scripted_error() or call.denied(AclResourceType.CLUSTER)
    kinds: Iterable[int] = request.resource_types or ResourceType
    if call.version < ALL_TYPES_VERSION:
        kinds = (ResourceType.CLIENT_METRICS,)
    if not code and any(kind not in {*ResourceType} for kind in kinds):
        code = ErrorCode.UNSUPPORTED_VERSION
    if code:
        return ListConfigResourcesResponse(error_code=code)
    cluster = call.cluster
    nodes = [str(node.node_id) for node in cluster.live_nodes()]
    names: dict[int, Iterable[str]] = {
        ResourceType.TOPIC: [topic.name for topic in cluster.topics],
        ResourceType.BROKER: nodes,
        ResourceType.BROKER_LOGGER: nodes,
        ResourceType.CLIENT_METRICS: cluster.configs.client_metrics,
        ResourceType.GROUP: cluster.configs.groups,
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(map(int, kinds))
            for name in names[kind]
        ]
    )
