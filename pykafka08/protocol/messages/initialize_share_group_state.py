"""InitializeShareGroupState: begins the record of a share partition (API key 83).

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
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uuid_,
)

__all__ = [
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
    "InitializeStateData",
    "InitializeStateResult",
    "PartitionData",
    "PartitionResult",
]


@struct
class PartitionData(Struct):
    """The start of one partition."""

    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()  # -1 if it is not known yet


@struct
class InitializeStateData(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionData] = array(PartitionData)


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Request["InitializeShareGroupStateResponse"]):
    """Starts by topic and partition."""

    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


@struct
class PartitionResult(Struct):
    """The result for one partition."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class InitializeStateResult(Struct):
    """The results for one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Response):
    """Results by topic and partition."""

    results: list[InitializeStateResult] = array(InitializeStateResult)
