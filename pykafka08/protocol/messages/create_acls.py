"""CreateAcls (API key 30)."""

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
    """AclCreation."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(versions="1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest(Request["CreateAclsResponse"]):
    """CreateAclsRequest."""

    creations: list[AclCreation] = array(AclCreation)


@struct
class AclCreationResult(Struct):
    """AclCreationResult."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse(Response):
    """CreateAclsResponse."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
