"""AlterUserScramCredentials: sets and deletes credentials; a user that is named twice is refused.  Source: KIP-554."""

from __future__ import annotations

from typing import TypeAlias

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.scram_users import Credential
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

__all__ = ["alter_user_scram_credentials"]

ScramChange: TypeAlias = "ScramCredentialDeletion | ScramCredentialUpsertion"


@handles(AlterUserScramCredentialsRequest)
def alter_user_scram_credentials(call: Call, request: AlterUserScramCredentialsRequest) -> Reply:
    changes: list[ScramChange] = [*request.deletions, *request.upsertions]
    users = [change.name for change in changes]
    refused = call.scripted_error() or call.denied(AclResourceType.CLUSTER) or controller_error(call)
    results = {}
    for change in changes:
        code, reason = refused, None
        if not code and users.count(change.name) > 1:
            code, reason = ErrorCode.DUPLICATE_RESOURCE, f"user {change.name!r:.300} is named twice"
        if not code:
            code, reason = _alter(call, change)
        results[change.name] = AlterUserScramCredentialsResult(user=change.name, error_code=code, error_message=reason)
    return AlterUserScramCredentialsResponse(results=list(results.values()))


def _alter(call: Call, change: ScramChange) -> tuple[int, str | None]:
    scram = call.cluster.scram
    iterations = change.iterations if isinstance(change, ScramCredentialUpsertion) else None
    fault = scram.fault(change.name, change.mechanism, iterations)
    if fault is not None:
        return fault
    if isinstance(change, ScramCredentialUpsertion):
        credential = Credential(change.iterations, bytes(change.salt), bytes(change.salted_password))
        scram.set(change.name, change.mechanism, credential)
    else:
        scram.delete(change.name, change.mechanism)
    return ErrorCode.NONE, None
