"""AddPartitionsToTxn (API key 24)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = [
    "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTopic",
    "AddPartitionsToTxnTopicResult",
    "AddPartitionsToTxnTransaction",
]


@struct
class AddPartitionsToTxnTopic(Struct):
    """AddPartitionsToTxnTopic."""

    name: str = string()
    partitions: list[int] = array(int32)


@struct
class AddPartitionsToTxnTransaction(Struct):
    """AddPartitionsToTxnTransaction."""

    transactional_id: str = string(versions="4+")
    producer_id: int = int64(versions="4+")
    producer_epoch: int = int16(versions="4+")
    verify_only: bool = bool_(versions="4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, versions="4+")


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"]):
    """AddPartitionsToTxnRequest."""

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, versions="4+")
    v3_and_below_transactional_id: str = string(versions="0-3")
    v3_and_below_producer_id: int = int64(versions="0-3")
    v3_and_below_producer_epoch: int = int16(versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, versions="0-3")


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    """AddPartitionsToTxnPartitionResult."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@struct
class AddPartitionsToTxnTopicResult(Struct):
    """AddPartitionsToTxnTopicResult."""

    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


@struct
class AddPartitionsToTxnResult(Struct):
    """AddPartitionsToTxnResult."""

    transactional_id: str = string(versions="4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, versions="4+")


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Response):
    """AddPartitionsToTxnResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, versions="4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, versions="0-3"
    )
