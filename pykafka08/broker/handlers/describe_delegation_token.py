"""DescribeDelegationToken: refused, since the cluster has no secret key.  Source: KIP-48."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.delegation_tokens import token_error
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

__all__ = ["describe_delegation_token"]


@handles(DescribeDelegationTokenRequest)
def describe_delegation_token(call: Call, request: DescribeDelegationTokenRequest) -> Reply:
    return DescribeDelegationTokenResponse(error_code=token_error(call))
