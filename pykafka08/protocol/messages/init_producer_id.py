"""InitProducerId (API key 22)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    bool_,
    int16,
    int32,
    int64,
    message,
    string,
)

__all__ = ["InitProducerIdRequest", "InitProducerIdResponse"]


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    """InitProducerIdRequest."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1)
    producer_epoch: int = int16(versions="3+", default=-1)
    enable_2pc: bool = bool_(versions="6+")
    keep_prepared_txn: bool = bool_(versions="6+")


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse(Response):
    """InitProducerIdResponse."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = int16(versions="6+", default=-1)
