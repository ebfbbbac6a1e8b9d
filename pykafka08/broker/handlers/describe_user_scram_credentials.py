"""DescribeUserScramCredentials: mechanisms and iterations of users.  Source: KIP-554."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

__all__ = ["describe_user_scram_credentials"]

SINCE_USERS_ARE_LISTED = (3, 0)
"""A refused request is answered with an error for each named user: 3.9 does it, 2.8 does not."""


@handles(DescribeUserScramCredentialsRequest)
def describe_user_scram_credentials(call: Call, request: DescribeUserScramCredentialsRequest) -> Reply:
    code = call.scripted_error() or call.denied(AclResourceType.CLUSTER)
    if code:
        response = DescribeUserScramCredentialsResponse(error_code=code)
        if call.personality >= SINCE_USERS_ARE_LISTED:
            response.results = [
                DescribeUserScramCredentialsResult(user=each.name, error_code=code) for each in request.users or ()
            ]
        return response
    named = [each.name for each in request.users or ()] or call.cluster.scram.names()
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=[_described(call, user, is_twice=named.count(user) > 1) for user in dict.fromkeys(named)],
    )


def _described(call: Call, user: str, *, is_twice: bool) -> DescribeUserScramCredentialsResult:
    credentials = call.cluster.scram.credentials(user)
    code, reason = ErrorCode.NONE, ""
    if is_twice:
        code, reason = ErrorCode.DUPLICATE_RESOURCE, f"user {user!r:.300} is named twice"
    elif not credentials:
        code, reason = ErrorCode.RESOURCE_NOT_FOUND, f"user {user!r:.300} has no credentials"
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=code,
        error_message=reason,
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=each.iterations)
            for mechanism, each in credentials.items()
            if not code
        ],
    )
