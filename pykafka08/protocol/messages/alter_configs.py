"""AlterConfigs (API key 33)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "AlterableConfig",
]


@struct
class AlterableConfig(Struct):
    """AlterableConfig."""

    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsResource(Struct):
    """AlterConfigsResource."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest(Request["AlterConfigsResponse"]):
    """AlterConfigsRequest."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = bool_()


@struct
class AlterConfigsResourceResponse(Struct):
    """AlterConfigsResourceResponse."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse(Response):
    """AlterConfigsResponse."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
