"""DescribeClientQuotas: quotas of the entities that match conditions.  Source: KIP-546."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.client_quotas import Condition, conditions_fault
from pykafka08.broker.handlers import handles
from pykafka08.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

__all__ = ["describe_client_quotas"]


@handles(DescribeClientQuotasRequest)
def describe_client_quotas(call: Call, request: DescribeClientQuotasRequest) -> Reply:
    code = call.scripted_error() or call.denied(AclResourceType.CLUSTER)
    if code:
        return DescribeClientQuotasResponse(error_code=code, entries=None)
    conditions = [Condition(each.entity_type, each.match_type, each.match) for each in request.components]
    fault = conditions_fault(conditions)
    if fault is not None:
        return DescribeClientQuotasResponse(error_code=fault[0], error_message=fault[1], entries=None)
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in call.cluster.quotas.matching(conditions, is_strict=request.strict)
        ],
    )
