"""UnregisterBroker (API key 64)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    int16,
    int32,
    message,
    string,
)

__all__ = ["UnregisterBrokerRequest", "UnregisterBrokerResponse"]


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"]):
    """UnregisterBrokerRequest."""

    broker_id: int = int32()


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse(Response):
    """UnregisterBrokerResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
