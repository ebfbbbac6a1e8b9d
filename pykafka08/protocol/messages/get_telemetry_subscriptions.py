"""GetTelemetrySubscriptions (API key 71)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    array,
    bool_,
    int8,
    int16,
    int32,
    message,
    string,
    uuid_,
)

__all__ = ["GetTelemetrySubscriptionsRequest", "GetTelemetrySubscriptionsResponse"]


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Request["GetTelemetrySubscriptionsResponse"]):
    """GetTelemetrySubscriptionsRequest."""

    client_instance_id: UUID = uuid_()


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Response):
    """GetTelemetrySubscriptionsResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: UUID = uuid_()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = bool_()
    requested_metrics: list[str] = array(string)
