"""RenewDelegationToken (API key 39)."""

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

__all__ = ["RenewDelegationTokenRequest", "RenewDelegationTokenResponse"]


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"]):
    """RenewDelegationTokenRequest."""

    hmac: bytes = bytes_()
    renew_period_ms: int = int64()


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse(Response):
    """RenewDelegationTokenResponse."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
