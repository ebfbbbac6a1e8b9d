"""InitProducerId: gives a producer its id and epoch (API key 22).

Without a transactional id any broker answers, and the id makes retries idempotent.  With one the transaction
coordinator does: it ends what an earlier producer left open and fences it.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-98)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.4     compact forms, tagged fields (KIP-482)
     3  2.5     a new epoch for an id that the producer has (KIP-360)
     4  2.7     PRODUCER_FENCED may come back (KIP-588)
     5  3.8     TRANSACTION_ABORTABLE may come back (KIP-890)
     6  -       two-phase commit (KIP-939); not stable in 4.3
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

__all__ = ["InitProducerIdRequest", "InitProducerIdResponse"]


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    """Who asks, and what id it has already."""

    transactional_id: str | None = string(nullable="0+")  # None for an idempotent producer
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1)  # -1 if it has none
    producer_epoch: int = int16(versions="3+", default=-1)  # -1 if it has none
    enable_2pc: bool = bool_(versions="6+")
    keep_prepared_txn: bool = bool_(versions="6+")


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse(Response):
    """The id and epoch to produce with."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    # of a prepared transaction that was kept; -1 for none
    ongoing_txn_producer_id: int = int64(versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = int16(versions="6+", default=-1)
