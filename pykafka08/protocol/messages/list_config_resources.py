"""ListConfigResources: names of the resources that have settings (API key 74).

Called ListClientMetricsResources up to 4.0, with other field names for the same bytes.

Versions, the first release with each, and what is new in it:

     0  3.7     client metrics only (KIP-714)
     1  4.1     any resource type (KIP-1142)
"""

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
    """Which types; empty asks for those that the broker lists by default."""

    resource_types: list[int] = array(int8, versions="1+")


@struct
class ConfigResource(Struct):
    """A resource."""

    resource_name: str = string()
    resource_type: int = int8(versions="1+", default=16, ignorable=True)  # 16 client metrics, 32 group


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Response):
    """The resources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
