"""CreateAcls: adds access control entries (API key 30).

The numbers are those of Kafka's enums, see ``describe_acls``.

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

__all__ = ["AclCreation", "AclCreationResult", "CreateAclsRequest", "CreateAclsResponse"]


@struct
class AclCreation(Struct):
    """An entry to add."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(versions="1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest(Request["CreateAclsResponse"]):
    """The entries to add."""

    creations: list[AclCreation] = array(AclCreation)


@struct
class AclCreationResult(Struct):
    """The result for one entry."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse(Response):
    """The results, in the order of the request."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
