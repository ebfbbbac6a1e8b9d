"""JoinGroup (API key 11)."""

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

__all__ = ["JoinGroupRequest", "JoinGroupRequestProtocol", "JoinGroupResponse", "JoinGroupResponseMember"]


@struct
class JoinGroupRequestProtocol(Struct):
    """JoinGroupRequestProtocol."""

    name: str = string()
    metadata: bytes = bytes_()


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest(Request["JoinGroupResponse"]):
    """JoinGroupRequest."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(versions="1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(versions="8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    """JoinGroupResponseMember."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = bytes_()


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(Response):
    """JoinGroupResponse."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(versions="7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = bool_(versions="9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
