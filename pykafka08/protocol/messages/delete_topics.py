"""DeleteTopics: deletes topics (API key 20).

The controller does it; see CreateTopics for who may be asked.

Versions, the first release with each, and what is new in it:

     0  0.10.1
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.1     TOPIC_DELETION_DISABLED may come back
     4  2.4     compact forms, tagged fields (KIP-482)
     5  2.7     error messages; THROTTLING_QUOTA_EXCEEDED may come back (KIP-599)
     6  2.8     topic ids (KIP-516)
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
    message,
    string,
    struct,
    uuid_,
)

__all__ = ["DeletableTopicResult", "DeleteTopicState", "DeleteTopicsRequest", "DeleteTopicsResponse"]


@struct
class DeleteTopicState(Struct):
    """A topic by name or by id, from version 6 on."""

    name: str | None = string(versions="6+", nullable="6+", default=None)  # None if topic_id is set
    topic_id: UUID = uuid_(versions="6+")


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest(Request["DeleteTopicsResponse"]):
    """Names up to version 5, names or ids from 6 on."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, versions="6+")
    topic_names: list[str] = array(string, versions="0-5", ignorable=True)
    timeout_ms: int = int32()


@struct
class DeletableTopicResult(Struct):
    """The result for one topic."""

    name: str | None = string(nullable="6+")  # None if a topic id is unknown or may not be seen
    topic_id: UUID = uuid_(versions="6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)


@message(key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse(Response):
    """The results."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
