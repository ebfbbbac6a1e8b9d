"""CreateDelegationToken: refused, since the cluster has no secret key.  Source: KIP-48, KIP-373 (owners)."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.delegation_tokens import no_time, token_error
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

__all__ = ["create_delegation_token"]

OWNER_VERSION = 3


@handles(CreateDelegationTokenRequest)
def create_delegation_token(call: Call, request: CreateDelegationTokenRequest) -> Reply:
    requester = call.principal
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type or ''}:{request.owner_principal_name}"
    code = token_error(call)
    if code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
        if owner != requester and call.denied(AclResourceType.USER, owner):
            code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        elif any(renewer.principal_type != "User" for renewer in request.renewers):
            code = ErrorCode.INVALID_PRINCIPAL_TYPE
    time = no_time(call, code)
    owner_type, _, owner_name = owner.partition(":")
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        issue_timestamp_ms=time,
        expiry_timestamp_ms=time,
        max_timestamp_ms=time,
    )
    if call.version >= OWNER_VERSION:
        names = requester.partition(":")
        response.token_requester_principal_type, _, response.token_requester_principal_name = names
    return response
