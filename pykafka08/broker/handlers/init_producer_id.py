"""InitProducerId: a producer id and its epoch.

Any broker gives an idempotent producer a new id; the coordinator of a transactional id fences its earlier producers.
Source: KIP-98, KIP-360 (v3+, a producer asks for the next epoch of its own id), KIP-588 (v4, PRODUCER_FENCED).
"""

from __future__ import annotations

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.call import Call, Reply, coordinator_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = ["init_producer_id"]

SINCE_WRITE_IS_ENOUGH = (2, 8)


@handles(InitProducerIdRequest)
def init_producer_id(call: Call, request: InitProducerIdRequest) -> Reply:
    transactional_id = request.transactional_id
    if transactional_id is None:
        code = call.scripted_error() or _idempotence_denied(call)
    else:
        code = coordinator_error(call, transactional_id, AclResourceType.TRANSACTIONAL_ID)
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


def _idempotence_denied(call: Call) -> int:
    """CLUSTER_AUTHORIZATION_FAILED without IDEMPOTENT_WRITE; since 2.8, WRITE on any topic is enough (KIP-679)."""
    code, authorizer = call.denied(AclResourceType.CLUSTER), call.cluster.authorizer
    if code and authorizer is not None and call.personality >= SINCE_WRITE_IS_ENOUGH:
        may = authorizer.may_on_any(call.principal, call.host, AclOperation.WRITE, AclResourceType.TOPIC)
        return ErrorCode.NONE if may else code
    return code
