"""UnregisterBroker: makes a KRaft cluster forget a broker (API key 64).

For brokers that are gone for good; the controller does it.

Versions, the first release with each, and what is new in it:

     0  3.3     with KRaft
"""

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
    """Which broker."""

    broker_id: int = int32()


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse(Response):
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
