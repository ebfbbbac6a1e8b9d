"""CreatePartitions (API key 37)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = [
    "CreatePartitionsAssignment",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
]


@struct
class CreatePartitionsAssignment(Struct):
    """CreatePartitionsAssignment."""

    broker_ids: list[int] = array(int32)


@struct
class CreatePartitionsTopic(Struct):
    """CreatePartitionsTopic."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable="0+")


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    """CreatePartitionsRequest."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = bool_()


@struct
class CreatePartitionsTopicResult(Struct):
    """CreatePartitionsTopicResult."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Response):
    """CreatePartitionsResponse."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
