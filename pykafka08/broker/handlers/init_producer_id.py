"""InitProducerId: a producer id for idempotent producers.  Source: KIP-98, KIP-360 (epochs are bumped on request)."""

from __future__ import annotations

from pykafka08.broker.call import Call, Reply
from pykafka08.broker.handlers import handles
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["init_producer_id"]

LARGEST_EPOCH = 32767


@handles(InitProducerIdRequest)
def init_producer_id(call: Call, request: InitProducerIdRequest) -> Reply:
    code = call.scripted_error()
    if not code and request.transactional_id is not None:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED  # no transactions are served
    if code:
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
    if request.producer_id >= 0 and 0 <= request.producer_epoch < LARGEST_EPOCH - 1:
        return InitProducerIdResponse(producer_id=request.producer_id, producer_epoch=request.producer_epoch + 1)
    return InitProducerIdResponse(producer_id=call.cluster.new_producer_id(), producer_epoch=0)
