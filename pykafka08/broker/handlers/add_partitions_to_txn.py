"""AddPartitionsToTxn: partitions that a transaction is about to write.  Source: KIP-98, KIP-890 (v4+, verification)."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

__all__ = ["add_partitions_to_txn"]

MANY_TRANSACTIONS_VERSION = 4
ABORTABLE_VERSION = 5


@handles(AddPartitionsToTxnRequest)
def add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> Reply:
    if call.version >= MANY_TRANSACTIONS_VERSION:
        denied = call.denied(AclResourceType.CLUSTER)
        if denied:
            return AddPartitionsToTxnResponse(error_code=denied)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=_add(call, each))
                for each in request.transactions
            ]
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_add(call, only))


def _add(call: Call, asked: AddPartitionsToTxnTransaction) -> list[AddPartitionsToTxnTopicResult]:
    keys = [(topic.name, partition) for topic in asked.topics for partition in topic.partitions]
    identity = Identity(asked.producer_id, asked.producer_epoch)
    transactions = call.cluster.transactions
    codes: dict[tuple[str, int], int] = {}
    is_producer = call.version < MANY_TRANSACTIONS_VERSION
    code = call.denied(AclResourceType.TRANSACTIONAL_ID, asked.transactional_id) if is_producer else 0
    code = code or coordinator_error(call, asked.transactional_id, None)
    if not code and asked.verify_only:
        codes = {key: transactions.verify(asked.transactional_id, identity, partition=key) for key in keys}
    elif not code:
        codes = _refused(call, keys)
        if not codes:
            code = transactions.add(asked.transactional_id, identity, partitions=keys)
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition,
                    partition_error_code=as_told(
                        codes.get((topic.name, partition), code), call.version, fenced=2, abortable=ABORTABLE_VERSION
                    ),
                )
                for partition in topic.partitions
            ],
        )
        for topic in asked.topics
    ]


def _refused(call: Call, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Error codes of all partitions if one is missing or may not be written: nothing is added then."""
    codes: dict[tuple[str, int], int] = {}
    for key in keys:
        # Producers of transactions v2 do not call this API; brokers, which do, are not asked for topics.
        code = call.denied(AclResourceType.TOPIC, key[0]) if call.version < MANY_TRANSACTIONS_VERSION else 0
        if not code and call.cluster.topics.find_partition(*key) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        codes[key] = code or ErrorCode.OPERATION_NOT_ATTEMPTED
    is_whole = all(code == ErrorCode.OPERATION_NOT_ATTEMPTED for code in codes.values())
    return {} if is_whole else codes
