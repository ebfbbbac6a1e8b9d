"""ExpireDelegationToken (API key 40)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    bytes_,
    int16,
    int32,
    int64,
    message,
)

__all__ = ["ExpireDelegationTokenRequest", "ExpireDelegationTokenResponse"]


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(Request["ExpireDelegationTokenResponse"]):
    """ExpireDelegationTokenRequest."""

    hmac: bytes = bytes_()
    expiry_time_period_ms: int = int64()


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(Response):
    """ExpireDelegationTokenResponse."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
