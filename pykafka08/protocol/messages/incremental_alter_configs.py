"""IncrementalAlterConfigs: changes single settings (API key 44).

Resource types: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.

Versions, the first release with each, and what is new in it:

     0  2.3     (KIP-339)
     1  2.4     compact forms, tagged fields (KIP-482)
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
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterableConfig",
    "IncrementalAlterConfigsRequest",
    "IncrementalAlterConfigsResponse",
]


@struct
class AlterableConfig(Struct):
    """A change of one setting."""

    name: str = string()
    config_operation: int = int8()  # 0 set, 1 delete, 2 append, 3 subtract (lists)
    value: str | None = string(nullable="0+")


@struct
class AlterConfigsResource(Struct):
    """A resource and the changes."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Request["IncrementalAlterConfigsResponse"]):
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


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Response):
    """The results."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
