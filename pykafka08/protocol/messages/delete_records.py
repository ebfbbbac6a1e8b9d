"""DeleteRecords: moves the start of partitions forward (API key 21).

Goes to the leader of each partition.

Versions, the first release with each, and what is new in it:

     0  0.11.0  (KIP-107)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.6     compact forms, tagged fields (KIP-482)
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

__all__ = [
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteRecordsTopic",
    "DeleteRecordsTopicResult",
]


@struct
class DeleteRecordsPartition(Struct):
    """The new start of one partition."""

    partition_index: int = int32()
    offset: int = int64()  # the first to keep; -1 for the high watermark


@struct
class DeleteRecordsTopic(Struct):
    """Partitions of one topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest(Request["DeleteRecordsResponse"]):
    """New starts by topic and partition."""

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@struct
class DeleteRecordsPartitionResult(Struct):
    """The result for one partition."""

    partition_index: int = int32()
    low_watermark: int = int64()  # the smallest start over all replicas; -1 after an error
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult(Struct):
    """The results for one topic."""

    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse(Response):
    """Results by topic and partition."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
