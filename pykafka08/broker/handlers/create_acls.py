"""CreateAcls: adds entries; an existing entry is not an error.  Source: KIP-140, KIP-290."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.access_control import Acl, acl_fault, is_known
from pykafka08.broker.call import Call, CloseConnection, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.handlers.describe_acls import NO_AUTHORIZER, has_authorizer
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

__all__ = ["create_acls"]


@handles(CreateAclsRequest)
def create_acls(call: Call, request: CreateAclsRequest) -> Reply:
    acls = [
        Acl(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in request.creations
    ]
    for acl in acls:
        if not is_known(acl.numbers):
            raise CloseConnection(f"the entry has an invalid enum value: {acl}")
    return CreateAclsResponse(results=[_create(call, acl) for acl in acls])


def _create(call: Call, acl: Acl) -> AclCreationResult:
    code: int
    code, reason = call.scripted_error() or call.denied(AclResourceType.CLUSTER), None
    if not code and not has_authorizer(call):
        code, reason = ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER
    if not code:
        code, reason = acl_fault(acl)
    if not code:
        call.cluster.acls.add(acl)
    return AclCreationResult(error_code=code, error_message=reason)
