"""DescribeGroups (API key 15)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    bytes_,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = ["DescribeGroupsRequest", "DescribeGroupsResponse", "DescribedGroup", "DescribedGroupMember"]


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
    """DescribeGroupsRequest."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = bool_(versions="3+")


@struct
class DescribedGroupMember(Struct):
    """DescribedGroupMember."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()
    member_assignment: bytes = bytes_()


@struct
class DescribedGroup(Struct):
    """DescribedGroup."""

    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(versions="3+", default=-2147483648)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Response):
    """DescribeGroupsResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
