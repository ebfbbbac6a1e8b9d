"""CreateDelegationToken: makes a token that stands for the principal of this connection (API key 38).

Token id and HMAC then serve as user and password of SCRAM.  Times are milliseconds since the epoch.

Versions, the first release with each, and what is new in it:

     0  1.1     (KIP-48)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.4     compact forms, tagged fields (KIP-482)
     3  3.3     tokens for another owner (KIP-373)
"""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bytes_,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = ["CreatableRenewers", "CreateDelegationTokenRequest", "CreateDelegationTokenResponse"]


@struct
class CreatableRenewers(Struct):
    """A principal that may renew the token."""

    principal_type: str = string()
    principal_name: str = string()


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    """Who may renew it, and for how long at most."""

    owner_principal_type: str | None = string(versions="3+", nullable="3+")
    owner_principal_name: str | None = string(versions="3+", nullable="3+")  # None for the principal that asks
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()  # -1 for the broker's limit


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse(Response):
    """The token."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    throttle_time_ms: int = int32()
