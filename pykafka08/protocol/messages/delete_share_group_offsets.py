"""DeleteShareGroupOffsets (API key 92)."""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    message,
    string,
    struct,
    uuid_,
)

__all__ = [
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequestTopic",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseTopic",
]


@struct
class DeleteShareGroupOffsetsRequestTopic(Struct):
    """DeleteShareGroupOffsetsRequestTopic."""

    topic_name: str = string()


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Request["DeleteShareGroupOffsetsResponse"]):
    """DeleteShareGroupOffsetsRequest."""

    group_id: str = string()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(DeleteShareGroupOffsetsRequestTopic)


@struct
class DeleteShareGroupOffsetsResponseTopic(Struct):
    """DeleteShareGroupOffsetsResponseTopic."""

    topic_name: str = string()
    topic_id: UUID = uuid_()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(key=92, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Response):
    """DeleteShareGroupOffsetsResponse."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(DeleteShareGroupOffsetsResponseTopic)
