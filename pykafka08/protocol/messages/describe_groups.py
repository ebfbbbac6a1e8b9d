"""DescribeGroups: state and members of classic groups (API key 15).

Goes to the coordinator of each group.  A group that does not exist is described as Dead, until version 6 without an
error.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.3     authorized operations (KIP-430)
     4  2.4     static members (KIP-345)
     5  2.4     compact forms, tagged fields (KIP-482)
     6  4.0     GROUP_ID_NOT_FOUND with a message instead of a Dead group (KIP-1043)
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

__all__ = ["DescribeGroupsRequest", "DescribeGroupsResponse", "DescribedGroup", "DescribedGroupMember"]


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
    """Which groups."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = bool_(versions="3+")


@struct
class DescribedGroupMember(Struct):
    """A member with what it asked for and got."""

    member_id: str = string()
    # of static members (KIP-345)
    group_instance_id: str | None = string(versions="4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()  # for consumers a ConsumerProtocolSubscription
    member_assignment: bytes = bytes_()  # for consumers a ConsumerProtocolAssignment


@struct
class DescribedGroup(Struct):
    """A group's state and members."""

    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="6+", default=None)
    group_id: str = string()
    # Empty, PreparingRebalance, CompletingRebalance (AwaitingSync before 1.1), Stable, Dead
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()  # the assignor in use
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    # a bit for each AclOperation; the default says they were not asked for
    authorized_operations: int = int32(versions="3+", default=-2147483648)


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse(Response):
    """The groups, each with its own error code."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
