"""ListTransactions: the transactional ids that one broker coordinates (API key 66).

Ask every broker for all of a cluster.

Versions, the first release with each, and what is new in it:

     0  3.0     (KIP-664)
     1  3.8     only transactions older than a time (KIP-994)
     2  4.1     ids by pattern (KIP-1152)
"""

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
    """The filters; empty ones match all."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(versions="1+", default=-1)  # milliseconds; -1 for all
    # a regular expression (RE2); None for all
    transactional_id_pattern: str | None = string(versions="2+", nullable="2+", default=None)


@struct
class TransactionState(Struct):
    """A transactional id."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse(Response):
    """The ids."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)  # states that the broker does not know
    transaction_states: list[TransactionState] = array(TransactionState)
