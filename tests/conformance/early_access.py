"""What 3.9 called by the same key and version as a later release, with another layout or other names.

Both are of features that 3.9 had switched off (early access, unstable versions), so that no client needs them: they
exist for the golden vectors alone.
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import Message, Struct, array, int16, int32, int64, message, string, struct, uuid_

__all__ = ["OTHER_LAYOUTS", "OTHER_NAMES", "ReadShareGroupStateSummaryResponse"]


@struct
class PartitionResult(Struct):
    """4.1 put a leader epoch between the state epoch and the start offset."""

    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    start_offset: int = int64()


@struct
class ReadStateSummaryResult(Struct):
    """Results of one topic."""

    topic_id: UUID = uuid_()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(key=87, versions="0", flexible="0+")
class ReadShareGroupStateSummaryResponse(Message):
    """The response as 3.9 had it."""

    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)


OTHER_LAYOUTS: dict[tuple[int, str, int], type[Message]] = {
    (87, "response", 0): ReadShareGroupStateSummaryResponse,
}
"""(API key, kind, version) to the message as 3.9 had it."""

OTHER_NAMES: dict[str, dict[str, str]] = {
    "ListClientMetricsResources": {"configResources": "clientMetricsResources", "resourceName": "name"},
}
"""A former name of an API: names of today's fields to those of then."""
