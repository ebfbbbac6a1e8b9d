"""WriteTxnMarkers: ends transactions in the logs (API key 27).

The transaction coordinator sends it to partition leaders.  Tools send it too, to abort a transaction that hangs
(KIP-664).

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-98)
     1  2.8     compact forms, tagged fields (KIP-482)
     2  4.2     version of the transaction (KIP-1228)
"""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)

__all__ = [
    "WritableTxnMarker",
    "WritableTxnMarkerPartitionResult",
    "WritableTxnMarkerResult",
    "WritableTxnMarkerTopic",
    "WritableTxnMarkerTopicResult",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]


@struct
class WritableTxnMarkerTopic(Struct):
    """Partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


@struct
class WritableTxnMarker(Struct):
    """The end of one transaction."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = bool_()  # False aborts
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(versions="2+", ignorable=True)  # 0 and 1 the first protocol, 2 that of KIP-890


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"]):
    """Transactions that end."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@struct
class WritableTxnMarkerPartitionResult(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult(Struct):
    """The results for one producer."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Response):
    """Results by producer, topic and partition."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
