"""LeaveGroup (API key 13)."""

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

__all__ = ["LeaveGroupRequest", "LeaveGroupResponse", "MemberIdentity", "MemberResponse"]


@struct
class MemberIdentity(Struct):
    """MemberIdentity."""

    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    reason: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest(Request["LeaveGroupResponse"]):
    """LeaveGroupRequest."""

    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


@struct
class MemberResponse(Struct):
    """MemberResponse."""

    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+")
    error_code: int = int16(versions="3+")


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(Response):
    """LeaveGroupResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, versions="3+")
