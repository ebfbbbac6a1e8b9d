"""DescribeTransactions: state, producer and partitions of transactional ids.  Source: KIP-664."""

from __future__ import annotations

from itertools import groupby

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

__all__ = ["describe_transactions"]


@handles(DescribeTransactionsRequest)
def describe_transactions(call: Call, request: DescribeTransactionsRequest) -> Reply:
    return DescribeTransactionsResponse(transaction_states=[_state(call, each) for each in request.transactional_ids])


def _state(call: Call, transactional_id: str) -> TransactionState:
    code: int = call.scripted_error()
    if not code and not transactional_id:
        code = ErrorCode.INVALID_REQUEST
    if not code:
        code = coordinator_error(call, transactional_id, AclResourceType.TRANSACTIONAL_ID, takes_scripted=False)
    known = call.cluster.transactions.find(transactional_id)
    if not code and known is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if code or known is None:
        return TransactionState(error_code=code, transactional_id=transactional_id)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.started_at_ms,
        producer_id=known.identity.producer_id,
        producer_epoch=known.identity.epoch,
        topics=[
            TopicData(topic=topic, partitions=[index for _, index in run])
            for topic, run in groupby(sorted(known.partitions), key=lambda key: key[0])
            if not call.denied(AclResourceType.TOPIC, topic)
        ],
    )
