"""SyncGroup (API key 14)."""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bytes_,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = ["SyncGroupRequest", "SyncGroupRequestAssignment", "SyncGroupResponse"]


@struct
class SyncGroupRequestAssignment(Struct):
    """SyncGroupRequestAssignment."""

    member_id: str = string()
    assignment: bytes = bytes_()


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest(Request["SyncGroupResponse"]):
    """SyncGroupRequest."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(Response):
    """SyncGroupResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = bytes_()
