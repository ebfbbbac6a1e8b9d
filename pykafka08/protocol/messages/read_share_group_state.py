"""ReadShareGroupState: the record of a share partition (API key 84).

Between brokers: the group coordinator or a partition leader asks the share coordinator, which keeps what share groups
have read (KIP-932).  Declared because its definition allows it on a broker's listener.

Versions, the first release with each, and what is new in it:

     0  4.1     (KIP-932)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
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
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadStateData",
    "ReadStateResult",
    "StateBatch",
]


@struct
class PartitionData(Struct):
    """A partition, and the leader that asks."""

    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateData(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateRequest(Request["ReadShareGroupStateResponse"]):
    """Which partitions."""

    group_id: str = string()
    topics: list[ReadStateData] = array(ReadStateData)


@struct
class StateBatch(Struct):
    """A range of records in one state."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()  # 0 available, 2 acknowledged, 4 archived
    delivery_count: int = int16()


@struct
class PartitionResult(Struct):
    """The record of one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    start_offset: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


@struct
class ReadStateResult(Struct):
    """The records of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Response):
    """Records by topic and partition."""

    results: list[ReadStateResult] = array(ReadStateResult)
