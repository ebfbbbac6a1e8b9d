"""TxnOffsetCommit: offsets of a group that count once a transaction is committed.

Source: KIP-98, KIP-447 (v3+, members are checked), KIP-890 (v5, the group joins the transaction by it).
"""

from __future__ import annotations

from pykafka08.acl_operations import REFUSALS, AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.groups import CommittedOffset
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

__all__ = ["txn_offset_commit"]

JOINS_TRANSACTION_VERSION = 5
ABORTABLE_VERSION = 4
LARGEST_METADATA = 4096
NEVER = 1 << 15


@handles(TxnOffsetCommitRequest)
def txn_offset_commit(call: Call, request: TxnOffsetCommitRequest) -> Reply:
    code = (
        call.denied(AclResourceType.TRANSACTIONAL_ID, request.transactional_id)
        or coordinator_error(call, request.group_id, takes_scripted=False)
        or _refusal(call, request)
    )
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=call.scripted_error(topic.name, each.partition_index)
                        or _topic_denied(call, topic.name, code)
                        or code
                        or _commit(call, request, topic.name, each),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _topic_denied(call: Call, name: str, code: int) -> int:
    """TOPIC_AUTHORIZATION_FAILED, unless the whole request was refused already."""
    return 0 if code in REFUSALS.values() else call.denied(AclResourceType.TOPIC, name)


def _refusal(call: Call, request: TxnOffsetCommitRequest) -> int:
    groups, transactions = call.cluster.groups, call.cluster.transactions
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    code = groups.check_transactional_commit(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    if code is ErrorCode.ILLEGAL_GENERATION and call.personality < (4, 0) and groups.find(request.group_id) is None:
        return ErrorCode.UNKNOWN_MEMBER_ID  # of the group that old brokers make on the spot
    if code:
        return code
    identity = Identity(request.producer_id, request.producer_epoch)
    if call.version >= JOINS_TRANSACTION_VERSION:
        code = transactions.add(request.transactional_id, identity, groups=[request.group_id], is_v2=True)
    elif call.personality.verifies_transactions:
        code = transactions.verify(request.transactional_id, identity, group=request.group_id)
    elif request.producer_epoch < groups.pending_offsets.epoch(request.group_id, request.producer_id):
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and call.version < JOINS_TRANSACTION_VERSION:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return as_told(code, call.version, fenced=NEVER, abortable=ABORTABLE_VERSION)


def _commit(
    call: Call, request: TxnOffsetCommitRequest, topic: str, asked: TxnOffsetCommitRequestPartition
) -> ErrorCode:
    if call.cluster.topics.find_partition(topic, asked.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(asked.committed_metadata or "") > LARGEST_METADATA:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    committed = CommittedOffset(asked.committed_offset, asked.committed_leader_epoch, asked.committed_metadata or "")
    call.cluster.groups.pending_offsets.add(
        request.group_id, request.producer_id, request.producer_epoch, topic, asked.partition_index, committed
    )
    return ErrorCode.NONE
