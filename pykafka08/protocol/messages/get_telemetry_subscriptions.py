"""GetTelemetrySubscriptions: which metrics the operators want from this client (API key 71).

Served by brokers that have a receiver for them.

Versions, the first release with each, and what is new in it:

     0  3.7     (KIP-714)
"""

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
    """Who asks."""

    client_instance_id: UUID = uuid_()  # zero at first


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Response):
    """What to push, and how often."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: UUID = uuid_()  # to be used from now on
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8)  # best first, numbered as in record batches
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = bool_()  # else cumulative
    requested_metrics: list[str] = array(string)  # prefixes of names; one empty text asks for all
