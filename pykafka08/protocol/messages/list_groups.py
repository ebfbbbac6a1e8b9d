"""ListGroups (API key 16)."""

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

__all__ = ["ListGroupsRequest", "ListGroupsResponse", "ListedGroup"]


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest(Request["ListGroupsResponse"]):
    """ListGroupsRequest."""

    states_filter: list[str] = array(string, versions="4+")
    types_filter: list[str] = array(string, versions="5+")


@struct
class ListedGroup(Struct):
    """ListedGroup."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(versions="4+", ignorable=True)
    group_type: str = string(versions="5+", ignorable=True)


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(Response):
    """ListGroupsResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
