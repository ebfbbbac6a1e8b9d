"""ReadShareGroupStateSummary: the start of share partitions, without the rest of their record (API key 87).

Between brokers: the group coordinator or a partition leader asks the share coordinator, which keeps what share groups
have read (KIP-932).  Declared because its definition allows it on a broker's listener.  The early access of 3.9 had
another layout under version 0.

Versions, the first release with each, and what is new in it:

     0  4.1     (KIP-932)
     1  4.2     how many deliveries are complete (KIP-1226)
"""

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
    """A partition, and the leader that asks."""

    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateSummaryData(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Request["ReadShareGroupStateSummaryResponse"]):
    """Which partitions."""

    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


@struct
class PartitionResult(Struct):
    """The start of one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()  # -1 if there is none
    delivery_complete_count: int = int32(versions="1+", default=-1, ignorable=True)


@struct
class ReadStateSummaryResult(Struct):
    """The starts of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Response):
    """Starts by topic and partition."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
