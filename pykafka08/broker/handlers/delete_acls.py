"""DeleteAcls: removes the entries that match filters, and returns them.  Source: KIP-140, KIP-290."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.access_control import AclFilter, is_known
from pykafka08.broker.call import Call, CloseConnection, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.handlers.describe_acls import NO_AUTHORIZER, has_authorizer
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

__all__ = ["delete_acls"]


@handles(DeleteAclsRequest)
def delete_acls(call: Call, request: DeleteAclsRequest) -> Reply:
    filters = [
        AclFilter(
            each.resource_type_filter,
            each.resource_name_filter,
            each.pattern_type_filter,
            each.principal_filter,
            each.host_filter,
            each.operation,
            each.permission_type,
        )
        for each in request.filters
    ]
    for wanted in filters:
        if not is_known(wanted.numbers):
            raise CloseConnection(f"a filter has an invalid enum value: {wanted}")
    return DeleteAclsResponse(filter_results=[_delete(call, wanted) for wanted in filters])


def _delete(call: Call, wanted: AclFilter) -> DeleteAclsFilterResult:
    code = call.scripted_error() or call.denied(AclResourceType.CLUSTER)
    if code:
        return DeleteAclsFilterResult(error_code=code)
    if not has_authorizer(call):
        return DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    found = call.cluster.acls.matching(wanted)
    for acl in found:
        call.cluster.acls.remove(acl)
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in found
        ],
    )
