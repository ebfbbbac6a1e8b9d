"""DescribeAcls: entries that match a filter, by resource.  Source: KIP-140, KIP-290."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.access_control import AclFilter, is_known
from pykafka08.broker.call import Call, CloseConnection, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

__all__ = ["NO_AUTHORIZER", "describe_acls", "has_authorizer"]

NO_AUTHORIZER = "the broker has no authorizer (property authorizer.class.name)"


@handles(DescribeAclsRequest)
def describe_acls(call: Call, request: DescribeAclsRequest) -> Reply:
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if not is_known(wanted.numbers):
        raise CloseConnection(f"the filter has an invalid enum value: {wanted}")
    code = call.scripted_error() or call.denied(AclResourceType.CLUSTER)
    if code:
        return DescribeAclsResponse(error_code=code)
    if not has_authorizer(call):
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    found: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in call.cluster.acls.matching(wanted):
        found.setdefault((acl.resource_type, acl.resource_name, acl.pattern_type), []).append(
            AclDescription(
                principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission_type
            )
        )
    return DescribeAclsResponse(
        error_message="",
        resources=[
            DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=acls)
            for (kind, name, pattern), acls in found.items()
        ],
    )


def has_authorizer(call: Call) -> bool:
    """True if the broker property ``authorizer.class.name`` is set, to any class."""
    return bool(call.cluster.configs.broker_value("authorizer.class.name", str(call.node.node_id)))
