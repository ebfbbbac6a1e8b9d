"""ExpireDelegationToken: changes when a token expires (API key 40).

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

__all__ = ["ExpireDelegationTokenRequest", "ExpireDelegationTokenResponse"]


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenRequest(Request["ExpireDelegationTokenResponse"]):
    """The token."""

    hmac: bytes = bytes_()
    expiry_time_period_ms: int = int64()  # from now; negative removes it at once


@message(key=40, versions="0-2", flexible="2+")
class ExpireDelegationTokenResponse(Response):
    """When it expires now."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
