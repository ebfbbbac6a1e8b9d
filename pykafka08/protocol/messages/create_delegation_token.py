"""CreateDelegationToken (API key 38)."""

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
    """CreatableRenewers."""

    principal_type: str = string()
    principal_name: str = string()


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    """CreateDelegationTokenRequest."""

    owner_principal_type: str | None = string(versions="3+", nullable="3+")
    owner_principal_name: str | None = string(versions="3+", nullable="3+")
    renewers: list[CreatableRenewers] = array(CreatableRenewers)
    max_lifetime_ms: int = int64()


@message(key=38, versions="0-3", flexible="2+")
class CreateDelegationTokenResponse(Response):
    """CreateDelegationTokenResponse."""

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
