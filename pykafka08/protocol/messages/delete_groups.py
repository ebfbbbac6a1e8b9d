"""DeleteGroups: deletes groups with their offsets (API key 42).

Goes to the coordinator of each group; groups with members give NON_EMPTY_GROUP.

Versions, the first release with each, and what is new in it:

     0  1.1     (KIP-229)
     1  2.0     the answer comes before the throttling, not after it (KIP-219)
     2  2.4     compact forms, tagged fields (KIP-482)
"""

from __future__ import annotations

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
)

__all__ = ["DeletableGroupResult", "DeleteGroupsRequest", "DeleteGroupsResponse"]


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    """Which groups."""

    groups_names: list[str] = array(string)


@struct
class DeletableGroupResult(Struct):
    """The result for one group."""

    group_id: str = string()
    error_code: int = int16()


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse(Response):
    """The results."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
