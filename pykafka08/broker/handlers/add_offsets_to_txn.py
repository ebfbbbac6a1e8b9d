"""AddOffsetsToTxn: a group whose offsets a transaction is about to commit.  Source: KIP-98."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

__all__ = ["add_offsets_to_txn"]


@handles(AddOffsetsToTxnRequest)
def add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> Reply:
    code = coordinator_error(call, request.transactional_id, AclResourceType.TRANSACTIONAL_ID) or call.denied(
        AclResourceType.GROUP, request.group_id
    )
    if not code and not request.group_id:
        code = ErrorCode.INVALID_GROUP_ID
    if not code:
        identity = Identity(request.producer_id, request.producer_epoch)
        code = call.cluster.transactions.add(request.transactional_id, identity, groups=[request.group_id])
    return AddOffsetsToTxnResponse(error_code=as_told(code, call.version, fenced=2, abortable=4))
