"""DeleteGroups (API key 42)."""

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
    """DeleteGroupsRequest."""

    groups_names: list[str] = array(string)


@struct
class DeletableGroupResult(Struct):
    """DeletableGroupResult."""

    group_id: str = string()
    error_code: int = int16()


@message(key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse(Response):
    """DeleteGroupsResponse."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
