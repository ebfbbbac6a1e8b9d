"""DescribeConfigs (API key 32)."""

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
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
]


@struct
class DescribeConfigsResource(Struct):
    """DescribeConfigsResource."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    """DescribeConfigsRequest."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = bool_(versions="1+")
    include_documentation: bool = bool_(versions="3+")


@struct
class DescribeConfigsSynonym(Struct):
    """DescribeConfigsSynonym."""

    name: str = string(versions="1+")
    value: str | None = string(versions="1+", nullable="0+")
    source: int = int8(versions="1+")


@struct
class DescribeConfigsResourceResult(Struct):
    """DescribeConfigsResourceResult."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = bool_()
    is_default: bool = bool_(versions="0")
    config_source: int = int8(versions="1+", default=-1, ignorable=True)
    is_sensitive: bool = bool_()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, versions="1+", ignorable=True)
    config_type: int = int8(versions="3+", ignorable=True)
    documentation: str | None = string(versions="3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult(Struct):
    """DescribeConfigsResult."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Response):
    """DescribeConfigsResponse."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
