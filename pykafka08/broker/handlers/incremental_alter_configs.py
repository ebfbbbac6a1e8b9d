"""IncrementalAlterConfigs: set, delete, append to and subtract from a topic's properties.  Source: KIP-339."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.checks import topic_config_fault
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["incremental_alter_configs"]

TOPIC = 2
SET, DELETE, APPEND, SUBTRACT = range(4)


@handles(IncrementalAlterConfigsRequest)
def incremental_alter_configs(call: Call, request: IncrementalAlterConfigsRequest) -> Reply:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=_alter(call, asked, is_only_checked=request.validate_only),
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
            for asked in request.resources
        ]
    )


def _alter(call: Call, asked: AlterConfigsResource, *, is_only_checked: bool) -> int:
    code = call.scripted_error(asked.resource_name)
    if code:
        return code
    if asked.resource_type != TOPIC:
        return ErrorCode.INVALID_REQUEST
    topic = call.cluster.topics.find(asked.resource_name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    config = dict(topic.config)
    for change in asked.configs:
        if not _apply(config, change):
            return ErrorCode.INVALID_CONFIG
    if topic_config_fault(config) is not None:
        return ErrorCode.INVALID_CONFIG
    if not is_only_checked:
        topic.config = config
    return ErrorCode.NONE


def _apply(config: dict[str, str], change: AlterableConfig) -> bool:
    """Change one property; False for a value or an operation without meaning."""
    present = [item for item in config.get(change.name, "").split(",") if item]
    if change.config_operation == DELETE:
        config.pop(change.name, None)
        return True
    if change.value is None:
        return False
    items = change.value.split(",")
    if change.config_operation == SET:
        config[change.name] = change.value
    elif change.config_operation == APPEND:
        config[change.name] = ",".join([*present, *(item for item in items if item not in present)])
    elif change.config_operation == SUBTRACT:
        config[change.name] = ",".join(item for item in present if item not in items)
    else:
        return False
    return True
