"""ListTransactions (API key 66)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = ["ListTransactionsRequest", "ListTransactionsResponse", "TransactionState"]


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest(Request["ListTransactionsResponse"]):
    """ListTransactionsRequest."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(versions="1+", default=-1)
    transactional_id_pattern: str | None = string(versions="2+", nullable="2+", default=None)


@struct
class TransactionState(Struct):
    """TransactionState."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse(Response):
    """ListTransactionsResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
