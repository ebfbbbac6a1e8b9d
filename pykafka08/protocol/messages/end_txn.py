"""EndTxn (API key 26)."""

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

__all__ = ["EndTxnRequest", "EndTxnResponse"]


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest(Request["EndTxnResponse"]):
    """EndTxnRequest."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = bool_()


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse(Response):
    """EndTxnResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1, ignorable=True)
    producer_epoch: int = int16(versions="5+", default=-1, ignorable=True)
