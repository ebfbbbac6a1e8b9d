"""RenewDelegationToken: refused, since the cluster has no secret key.  Source: KIP-48."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.delegation_tokens import no_time, token_error
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

__all__ = ["renew_delegation_token"]


@handles(RenewDelegationTokenRequest)
def renew_delegation_token(call: Call, request: RenewDelegationTokenRequest) -> Reply:
    code = token_error(call)
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=no_time(call, code))
