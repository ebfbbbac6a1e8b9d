"""WriteShareGroupState: changes the record of a share partition (API key 85).

Between brokers: the group coordinator or a partition leader asks the share coordinator, which keeps what share groups
have read (KIP-932).  Declared because its definition allows it on a broker's listener.

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
    "StateBatch",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
    "WriteStateData",
    "WriteStateResult",
]


@struct
class StateBatch(Struct):
    """A range of records in one state."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()  # 0 available, 2 acknowledged, 4 archived
    delivery_count: int = int16()


@struct
class PartitionData(Struct):
    """The changes of one partition."""

    partition: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()  # -1 if it has not changed
    delivery_complete_count: int = int32(versions="1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = array(StateBatch)


@struct
class WriteStateData(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(Request["WriteShareGroupStateResponse"]):
    """Changes by topic and partition."""

    group_id: str = string()
    topics: list[WriteStateData] = array(WriteStateData)


@struct
class PartitionResult(Struct):
    """The result for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class WriteStateResult(Struct):
    """The results for one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Response):
    """Results by topic and partition."""

    results: list[WriteStateResult] = array(WriteStateResult)
