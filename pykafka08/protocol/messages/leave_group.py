"""LeaveGroup: leaves a group at once instead of by time-out (API key 13).

From version 3 on an administrator can remove several members, by member id or by instance id.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.4     several members, static ones by instance id (KIP-345)
     4  2.4     compact forms, tagged fields (KIP-482)
     5  3.2     a reason (KIP-800)
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

__all__ = ["LeaveGroupRequest", "LeaveGroupResponse", "MemberIdentity", "MemberResponse"]


@struct
class MemberIdentity(Struct):
    """A member that leaves, from version 3 on."""

    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)  # of static members (KIP-345)
    reason: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest(Request["LeaveGroupResponse"]):
    """One member up to version 2, several from 3 on."""

    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


@struct
class MemberResponse(Struct):
    """The result for one member."""

    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(versions="3+", nullable="3+")
    error_code: int = int16(versions="3+")


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse(Response):
    """An error code, and from version 3 on one for each member."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, versions="3+")
