"""DescribeConfigs: settings of topics, brokers, loggers and groups (API key 32).

Resource types: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.  Sources: 1 topic, 2 broker, 3 all
brokers (both set at run time), 4 the broker's file, 5 default, 6 broker logger, 7 client metrics, 8 group.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-133)
     1  1.1     sources and synonyms (KIP-226)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.6     types and documentation (KIP-569)
     4  2.8     compact forms, tagged fields (KIP-482)
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
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
]


@struct
class DescribeConfigsResource(Struct):
    """A resource, and which of its settings."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")  # None asks for all


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    """The resources."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = bool_(versions="1+")
    include_documentation: bool = bool_(versions="3+")


@struct
class DescribeConfigsSynonym(Struct):
    """A setting that would count if those before it were not there."""

    name: str = string(versions="1+")
    value: str | None = string(versions="1+", nullable="0+")
    source: int = int8(versions="1+")


@struct
class DescribeConfigsResourceResult(Struct):
    """A setting."""

    name: str = string()
    value: str | None = string(nullable="0+")  # None if it is sensitive
    read_only: bool = bool_()
    is_default: bool = bool_(versions="0")  # version 0 alone, later config_source 5
    config_source: int = int8(versions="1+", default=-1, ignorable=True)  # -1 if unknown
    is_sensitive: bool = bool_()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, versions="1+", ignorable=True)
    # 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password
    config_type: int = int8(versions="3+", ignorable=True)
    documentation: str | None = string(versions="3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult(Struct):
    """The settings of one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse(Response):
    """The settings by resource."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
