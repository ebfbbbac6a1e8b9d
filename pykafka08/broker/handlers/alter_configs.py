"""AlterConfigs: replace all configs of a resource.  Source: KIP-133."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.config_changes import Change, Operation, alter
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

__all__ = ["alter_configs"]


@handles(AlterConfigsRequest)
def alter_configs(call: Call, request: AlterConfigsRequest) -> Reply:
    return AlterConfigsResponse(
        responses=[_altered(call, asked, is_only_checked=request.validate_only) for asked in request.resources]
    )


def _altered(call: Call, asked: AlterConfigsResource, *, is_only_checked: bool) -> AlterConfigsResourceResponse:
    changes = [Change(each.name, Operation.SET, each.value) for each in asked.configs]
    code, reason = alter(
        call, asked.resource_type, asked.resource_name, changes, replaces=True, is_only_checked=is_only_checked
    )
    return AlterConfigsResourceResponse(
        error_code=code, error_message=reason, resource_type=asked.resource_type, resource_name=asked.resource_name
    )
