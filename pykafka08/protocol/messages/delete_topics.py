"""DeleteTopics (API key 20)."""

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

__all__ = ["DeletableTopicResult", "DeleteTopicState", "DeleteTopicsRequest", "DeleteTopicsResponse"]


@struct
class DeleteTopicState(Struct):
    """DeleteTopicState."""

    name: str | None = string(versions="6+", nullable="6+", default=None)
    topic_id: UUID = uuid_(versions="6+")


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest(Request["DeleteTopicsResponse"]):
    """DeleteTopicsRequest."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(string, versions="0-5", ignorable=True)
    timeout_ms: int = int32()


@struct
class DeletableTopicResult(Struct):
    """DeletableTopicResult."""

    name: str | None = string(nullable="6+")
    topic_id: UUID = uuid_(versions="6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse(Response):
    """DeleteTopicsResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
