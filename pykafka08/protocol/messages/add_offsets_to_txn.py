"""AddOffsetsToTxn (API key 25)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    int16,
    int32,
    int64,
    message,
    string,
)

__all__ = ["AddOffsetsToTxnRequest", "AddOffsetsToTxnResponse"]


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"]):
    """AddOffsetsToTxnRequest."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Response):
    """AddOffsetsToTxnResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
