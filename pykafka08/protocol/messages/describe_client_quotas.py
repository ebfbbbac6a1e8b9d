"""DescribeClientQuotas (API key 48)."""

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
    """ComponentData."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    """DescribeClientQuotasRequest."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = bool_()


@struct
class EntityData(Struct):
    """EntityData."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@struct
class ValueData(Struct):
    """ValueData."""

    key: str = string()
    value: float = float64()


@struct
class EntryData(Struct):
    """EntryData."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Response):
    """DescribeClientQuotasResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")
