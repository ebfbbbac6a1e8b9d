"""DescribeAcls: access control entries that match a filter (API key 29).

The numbers are those of Kafka's enums.  Resource types: 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6
delegation token, 7 user.  Pattern types: 1 any, 2 match, 3 literal, 4 prefixed.  Operations: 1 any, 2 all, 3 read, 4
write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster action, 10 describe configs, 11 alter configs, 12 idempotent
write, 13 create tokens, 14 describe tokens, 15 two-phase commit.  Permission types: 1 any, 2 deny, 3 allow.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-140)
     1  2.0     pattern types (KIP-290)
     2  2.5     compact forms, tagged fields (KIP-482)
     3  3.3     users as resources (KIP-373)
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

__all__ = ["AclDescription", "DescribeAclsRequest", "DescribeAclsResource", "DescribeAclsResponse"]


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsRequest(Request["DescribeAclsResponse"]):
    """The filter; None matches anything."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8(versions="1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@struct
class AclDescription(Struct):
    """Who may, or may not, do what."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DescribeAclsResource(Struct):
    """A resource and its entries."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(versions="1+", default=3)
    acls: list[AclDescription] = array(AclDescription)


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsResponse(Response):
    """The entries by resource."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
