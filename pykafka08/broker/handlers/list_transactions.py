"""ListTransactions: the transactional ids this broker coordinates, filtered.  Source: KIP-664, KIP-994, KIP-1152."""

from __future__ import annotations

import re

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Transaction, TransactionState
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages import list_transactions as messages
from pykafka08.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

__all__ = ["list_transactions"]

STATES = {state.value: state for state in TransactionState}
OTHER_STATES = ("PrepareEpochFence", "Dead")  # valid in filters; no transaction is ever listed in these states


@handles(ListTransactionsRequest)
def list_transactions(call: Call, request: ListTransactionsRequest) -> Reply:
    code: int = call.scripted_error()
    pattern = None
    if not code and request.transactional_id_pattern:
        try:
            pattern = re.compile(request.transactional_id_pattern)
        except re.error:
            code = ErrorCode.INVALID_REGULAR_EXPRESSION
    if code:
        return ListTransactionsResponse(error_code=code)
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in (*STATES, *OTHER_STATES)],
        transaction_states=[
            messages.TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.identity.producer_id,
                transaction_state=each.state.value,
            )
            for each in call.cluster.transactions
            if call.cluster.coordinator(each.transactional_id) is call.node
            and not call.denied(AclResourceType.TRANSACTIONAL_ID, each.transactional_id)
            and _is_wanted(each, request, call.cluster.now_ms())
            and (pattern is None or pattern.fullmatch(each.transactional_id))
        ],
    )


def _is_wanted(each: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    if request.state_filters and each.state.value not in request.state_filters:
        return False
    if request.producer_id_filters and each.identity.producer_id not in request.producer_id_filters:
        return False
    started_ms = each.started_at_ms if each.started_at_ms >= 0 else 0
    return request.duration_filter < 0 or now_ms - started_ms > request.duration_filter
