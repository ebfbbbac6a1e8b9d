"""DescribeTransactions: the state of transactional ids (API key 65).

Goes to the transaction coordinator of each id.

Versions, the first release with each, and what is new in it:

     0  3.0     (KIP-664)
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

__all__ = ["DescribeTransactionsRequest", "DescribeTransactionsResponse", "TopicData", "TransactionState"]


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"]):
    """Which ids."""

    transactional_ids: list[str] = array(string)


@struct
class TopicData(Struct):
    """Partitions of one topic in the transaction."""

    topic: str = string()
    partitions: list[int] = array(int32)


@struct
class TransactionState(Struct):
    """The state of one id."""

    error_code: int = int16()
    transactional_id: str = string()
    # Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()  # -1 if there is no transaction
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse(Response):
    """The states."""

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
