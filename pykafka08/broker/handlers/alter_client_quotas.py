"""AlterClientQuotas: sets and removes quotas, each entity separately.  Source: KIP-546."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.client_quotas import alteration_fault
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)

__all__ = ["alter_client_quotas"]


@handles(AlterClientQuotasRequest)
def alter_client_quotas(call: Call, request: AlterClientQuotasRequest) -> Reply:
    return AlterClientQuotasResponse(
        entries=[_alter(call, entry, is_only_checked=request.validate_only) for entry in request.entries]
    )


def _alter(call: Call, entry: RequestEntryData, *, is_only_checked: bool) -> ResponseEntryData:
    # Of a type that is named twice, the last name counts.
    entity = tuple(sorted({each.entity_type: each.entity_name for each in entry.entity}.items()))
    operations = [(each.key, each.value, each.remove) for each in entry.ops]
    code: int
    code, reason = call.scripted_error() or call.denied(AclResourceType.CLUSTER), None
    if not code:
        fault = alteration_fault(entity, operations)
        if fault:
            code, reason = ErrorCode.INVALID_REQUEST, fault
    if not code and not is_only_checked:
        call.cluster.quotas.alter(entity, operations)
    return ResponseEntryData(
        error_code=code,
        error_message=reason,
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
    )
