"""CreatePartitions: gives topics more partitions (API key 37).

The controller does it; see CreateTopics for who may be asked.

Versions, the first release with each, and what is new in it:

     0  1.0     (KIP-195)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.5     compact forms, tagged fields (KIP-482)
     3  2.7     THROTTLING_QUOTA_EXCEEDED may come back (KIP-599)
"""

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
    """Which brokers shall hold one new partition."""

    broker_ids: list[int] = array(int32)


@struct
class CreatePartitionsTopic(Struct):
    """A topic and its new size."""

    name: str = string()
    count: int = int32()  # all partitions, old and new
    # of the new ones; None leaves it to the controller
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable="0+")


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    """The topics."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = bool_()


@struct
class CreatePartitionsTopicResult(Struct):
    """The result for one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse(Response):
    """The results."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
