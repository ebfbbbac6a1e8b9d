"""AddOffsetsToTxn: tells the transaction coordinator that offsets of a group will be committed (API key 25).

Comes before TxnOffsetCommit, up to its version 4.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-98)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.7     PRODUCER_FENCED may come back (KIP-588)
     3  2.8     compact forms, tagged fields (KIP-482)
     4  3.8     TRANSACTION_ABORTABLE may come back (KIP-890)
"""

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
    """The transaction and the group."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Response):
    """An error code."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
