"""AlterClientQuotas (API key 49)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    float64,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = [
    "AlterClientQuotasRequest",
    "AlterClientQuotasResponse",
    "EntityData",
    "OpData",
    "RequestEntryData",
    "ResponseEntryData",
]


@struct
class EntityData(Struct):
    """EntityData."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class OpData(Struct):
    """OpData."""

    key: str = string()
    value: float = float64()
    remove: bool = bool_()


@struct
class RequestEntryData(Struct):
    """RequestEntryData."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    """AlterClientQuotasRequest."""

    entries: list[RequestEntryData] = array(RequestEntryData)
    validate_only: bool = bool_()


@struct
class ResponseEntryData(Struct):
    """ResponseEntryData."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Response):
    """AlterClientQuotasResponse."""

    throttle_time_ms: int = int32()
    entries: list[ResponseEntryData] = array(ResponseEntryData)
