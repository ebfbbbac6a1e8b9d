"""EndTxn: commits or aborts a transaction.  Source: KIP-98, KIP-890 (v5, a new epoch each time)."""

from __future__ import annotations

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

__all__ = ["end_txn"]

EPOCH_BUMP_VERSION = 5


@handles(EndTxnRequest)
def end_txn(call: Call, request: EndTxnRequest) -> Reply:
    code = coordinator_error(call, request.transactional_id, AclResourceType.TRANSACTIONAL_ID)
    if code:
        return EndTxnResponse(error_code=code)
    is_v2 = call.version >= EPOCH_BUMP_VERSION
    identity, code = call.cluster.transactions.end(
        request.transactional_id,
        Identity(request.producer_id, request.producer_epoch),
        is_commit=request.committed,
        is_v2=is_v2,
    )
    response = EndTxnResponse(error_code=as_told(code, call.version, fenced=2, abortable=4))
    if is_v2 and not code:
        response.producer_id, response.producer_epoch = identity
    return response
