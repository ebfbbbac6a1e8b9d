"""EndTxn: commits or aborts a transaction (API key 26).

Goes to the transaction coordinator, which then writes markers to all partitions.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-98)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.7     PRODUCER_FENCED may come back (KIP-588)
     3  2.8     compact forms, tagged fields (KIP-482)
     4  3.8     TRANSACTION_ABORTABLE may come back (KIP-890)
     5  4.0     a new epoch after every transaction (KIP-890)
"""

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
    """The transaction and its end."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = bool_()  # False aborts


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse(Response):
    """An error code, and from version 5 on the id and epoch for the next transaction."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1, ignorable=True)  # -1 if it stays
    producer_epoch: int = int16(versions="5+", default=-1, ignorable=True)  # -1 if it stays
