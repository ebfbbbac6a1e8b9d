"""IncrementalAlterConfigs: set, delete, append to and subtract from configs of a resource.  Source: KIP-339."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.config_changes import Change, alter
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["incremental_alter_configs"]


@handles(IncrementalAlterConfigsRequest)
def incremental_alter_configs(call: Call, request: IncrementalAlterConfigsRequest) -> Reply:
    return IncrementalAlterConfigsResponse(
        responses=[_altered(call, asked, is_only_checked=request.validate_only) for asked in request.resources]
    )


def _altered(call: Call, asked: AlterConfigsResource, *, is_only_checked: bool) -> AlterConfigsResourceResponse:
    changes = [Change(each.name, each.config_operation, each.value) for each in asked.configs]
    code, reason = alter(
        call, asked.resource_type, asked.resource_name, changes, replaces=False, is_only_checked=is_only_checked
    )
    return AlterConfigsResourceResponse(
        error_code=code, error_message=reason, resource_type=asked.resource_type, resource_name=asked.resource_name
    )
