"""AlterClientQuotas: sets or removes quotas (API key 49).

Entity types: "user", "client-id", "ip".

Versions, the first release with each, and what is new in it:

     0  2.6     (KIP-546)
     1  2.8     compact forms, tagged fields (KIP-482)
"""

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
    """A part of an entity."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")  # None for the default


@struct
class OpData(Struct):
    """A change of one quota."""

    key: str = string()
    value: float = float64()
    remove: bool = bool_()  # instead of setting the value


@struct
class RequestEntryData(Struct):
    """An entity and the changes."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    """The changes."""

    entries: list[RequestEntryData] = array(RequestEntryData)
    validate_only: bool = bool_()


@struct
class ResponseEntryData(Struct):
    """The result for one entity."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Response):
    """The results."""

    throttle_time_ms: int = int32()
    entries: list[ResponseEntryData] = array(ResponseEntryData)
