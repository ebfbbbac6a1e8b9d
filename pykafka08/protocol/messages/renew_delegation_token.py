"""RenewDelegationToken: lets a token live on (API key 39).

Never beyond its maximum.

Versions, the first release with each, and what is new in it:

     0  1.1     (KIP-48)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.5     compact forms, tagged fields (KIP-482)
"""

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
    """The token."""

    hmac: bytes = bytes_()
    renew_period_ms: int = int64()  # -1 for the broker's default


@message(key=39, versions="0-2", flexible="2+")
class RenewDelegationTokenResponse(Response):
    """When it expires now."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
