"""InitProducerId: a producer id and its epoch.

Any broker gives an idempotent producer a new id; the coordinator of a transactional id fences its earlier producers.
Source: KIP-98, KIP-360 (v3+, a producer asks for the next epoch of its own id), KIP-588 (v4, PRODUCER_FENCED).
"""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["init_producer_id"]


@handles(InitProducerIdRequest)
def init_producer_id(call: Call, request: InitProducerIdRequest) -> Reply:
    transactional_id = request.transactional_id
    code = call.scripted_error() if transactional_id is None else coordinator_error(call, transactional_id)
    if not code and (request.producer_id < 0) is not (request.producer_epoch < 0):
        code = ErrorCode.INVALID_REQUEST
    if code:
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    if transactional_id is None:
        return InitProducerIdResponse(producer_id=call.cluster.new_producer_id(), producer_epoch=0)
    identity, code = call.cluster.transactions.init_producer(
        transactional_id, request.transaction_timeout_ms, Identity(request.producer_id, request.producer_epoch)
    )
    return InitProducerIdResponse(
        error_code=as_told(code, call.version, fenced=4, abortable=5),
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
    )
