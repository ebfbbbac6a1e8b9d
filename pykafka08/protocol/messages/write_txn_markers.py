"""WriteTxnMarkers (API key 27)."""

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
    """WritableTxnMarkerTopic."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


@struct
class WritableTxnMarker(Struct):
    """WritableTxnMarker."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = bool_()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(versions="2+", ignorable=True)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"]):
    """WriteTxnMarkersRequest."""

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@struct
class WritableTxnMarkerPartitionResult(Struct):
    """WritableTxnMarkerPartitionResult."""

    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult(Struct):
    """WritableTxnMarkerTopicResult."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult(Struct):
    """WritableTxnMarkerResult."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Response):
    """WriteTxnMarkersResponse."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
