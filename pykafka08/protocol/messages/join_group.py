"""JoinGroup: enters a group, and waits until all its members have done so (API key 11).

The response is held back until every known member has asked to join or the rebalance time-out has passed.  The leader
alone gets the members and their subscriptions; it computes the assignment and sends it with SyncGroup.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  0.10.1  a rebalance time-out of its own (KIP-62)
     2  0.11.0  throttle time (KIP-124)
     3  2.0     the answer comes before the throttling, not after it (KIP-219)
     4  2.2     MEMBER_ID_REQUIRED: join again with the id given (KIP-394)
     5  2.3     static members (KIP-345)
     6  2.4     compact forms, tagged fields (KIP-482)
     7  2.5     protocol type in the response (KIP-559)
     8  3.2     a reason (KIP-800)
     9  3.2     the leader may be told to keep the assignment (KIP-814)
"""

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
    """An assignor that the member can work with, and its subscription in that form."""

    name: str = string()
    metadata: bytes = bytes_()  # for consumers a ConsumerProtocolSubscription


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest(Request["JoinGroupResponse"]):
    """Who wants to join, and what it can speak."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    # version 0 uses the session time-out for both
    rebalance_timeout_ms: int = int32(versions="1+", default=-1, ignorable=True)
    member_id: str = string()  # empty at first
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None)  # of static members (KIP-345)
    protocol_type: str = string()  # "consumer" for consumers
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)  # best first
    reason: str | None = string(versions="8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember(Struct):
    """A member, as the leader sees it."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = bytes_()


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse(Response):
    """The generation, and for the leader all members."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(versions="7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")  # the assignor that all members share
    leader: str = string()  # its member id
    skip_assignment: bool = bool_(versions="9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)  # empty for all but the leader
