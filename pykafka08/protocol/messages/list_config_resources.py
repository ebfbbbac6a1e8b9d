"""ListConfigResources (API key 74)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = ["ConfigResource", "ListConfigResourcesRequest", "ListConfigResourcesResponse"]


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"]):
    """ListConfigResourcesRequest."""

    resource_types: list[int] = array(int8, versions="1+")


@struct
class ConfigResource(Struct):
    """ConfigResource."""

    resource_name: str = string()
    resource_type: int = int8(versions="1+", default=16, ignorable=True)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Response):
    """ListConfigResourcesResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
