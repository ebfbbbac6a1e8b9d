"""PushTelemetry: hands in the metrics that were asked for (API key 72).

Versions, the first release with each, and what is new in it:

     0  3.7     (KIP-714)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    bool_,
    bytes_,
    int8,
    int16,
    int32,
    message,
    uuid_,
)

__all__ = ["PushTelemetryRequest", "PushTelemetryResponse"]


@message(key=72, versions="0", flexible="0+")
class PushTelemetryRequest(Request["PushTelemetryResponse"]):
    """Metrics in OTLP form."""

    client_instance_id: UUID = uuid_()
    subscription_id: int = int32()
    terminating: bool = bool_()  # the client closes, this is its last push
    compression_type: int = int8()
    metrics: bytes = bytes_()


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse(Response):
    """An error code."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
