"""AlterConfigs: replaces all settings of topics, brokers and groups (API key 33).

Settings that are not named go back to their defaults: IncrementalAlterConfigs changes single ones.  Resource types: 2
topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-133)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.8     compact forms, tagged fields (KIP-482)
"""

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
    """A setting."""

    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsResource(Struct):
    """A resource and all its settings."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest(Request["AlterConfigsResponse"]):
    """The resources."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = bool_()


@struct
class AlterConfigsResourceResponse(Struct):
    """The result for one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse(Response):
    """The results."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
