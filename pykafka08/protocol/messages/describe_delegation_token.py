"""DescribeDelegationToken (API key 41)."""

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

__all__ = [
    "DescribeDelegationTokenOwner",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribedDelegationToken",
    "DescribedDelegationTokenRenewer",
]


@struct
class DescribeDelegationTokenOwner(Struct):
    """DescribeDelegationTokenOwner."""

    principal_type: str = string()
    principal_name: str = string()


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenRequest(Request["DescribeDelegationTokenResponse"]):
    """DescribeDelegationTokenRequest."""

    owners: list[DescribeDelegationTokenOwner] | None = array(DescribeDelegationTokenOwner, nullable="0+")


@struct
class DescribedDelegationTokenRenewer(Struct):
    """DescribedDelegationTokenRenewer."""

    principal_type: str = string()
    principal_name: str = string()


@struct
class DescribedDelegationToken(Struct):
    """DescribedDelegationToken."""

    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


@message(key=41, versions="0-3", flexible="2+")
class DescribeDelegationTokenResponse(Response):
    """DescribeDelegationTokenResponse."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
