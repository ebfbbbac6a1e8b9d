"""ReadShareGroupStateSummary (API key 87)."""

from __future__ import annotations

from uuid import UUID

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
    uuid_,
)

__all__ = [
    "PartitionData",
    "PartitionResult",
    "ReadShareGroupStateSummaryRequest",
    "ReadShareGroupStateSummaryResponse",
    "ReadStateSummaryData",
    "ReadStateSummaryResult",
]


@struct
class PartitionData(Struct):
    """PartitionData."""

    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateSummaryData(Struct):
    """ReadStateSummaryData."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Request["ReadShareGroupStateSummaryResponse"]):
    """ReadShareGroupStateSummaryRequest."""

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


@struct
class PartitionResult(Struct):
    """PartitionResult."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(versions="1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult(Struct):
    """ReadStateSummaryResult."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Response):
    """ReadShareGroupStateSummaryResponse."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
