"""SyncGroup: the leader hands in the assignment, every member receives its part (API key 14).

Followers send no assignments.  A member that the leader left out receives empty bytes: no partitions.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.3     static members (KIP-345)
     4  2.4     compact forms, tagged fields (KIP-482)
     5  2.5     protocol type and name, to be compared (KIP-559)
"""

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
    """What one member shall read."""

    member_id: str = string()
    assignment: bytes = bytes_()  # for consumers a ConsumerProtocolAssignment


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest(Request["SyncGroupResponse"]):
    """The member, and from the leader all assignments."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)  # of static members (KIP-345)
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse(Response):
    """The member's own assignment."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = bytes_()
