"""DescribeClientQuotas: quotas of users, client ids and addresses (API key 48).

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
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = [
    "ComponentData",
    "DescribeClientQuotasRequest",
    "DescribeClientQuotasResponse",
    "EntityData",
    "EntryData",
    "ValueData",
]


@struct
class ComponentData(Struct):
    """A condition on one part of an entity."""

    entity_type: str = string()
    match_type: int = int8()  # 0 exact name, 1 the default, 2 any name
    match: str | None = string(nullable="0+")  # the name; None unless it is exact


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    """The conditions."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = bool_()  # no entities with more parts than conditions


@struct
class EntityData(Struct):
    """A part of an entity."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")  # None for the default


@struct
class ValueData(Struct):
    """A quota."""

    key: str = string()
    value: float = float64()


@struct
class EntryData(Struct):
    """An entity and its quotas."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Response):
    """The entities that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")  # None after an error
