"""ListGroups: the groups that one broker coordinates (API key 16).

Ask every broker for all groups of a cluster.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.4     compact forms, tagged fields (KIP-482)
     4  2.6     filter by state (KIP-518)
     5  3.8     filter by type (KIP-848)
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

__all__ = ["ListGroupsRequest", "ListGroupsResponse", "ListedGroup"]


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest(Request["ListGroupsResponse"]):
    """Which states and types; empty lists ask for all."""

    states_filter: list[str] = array(string, versions="4+")
    types_filter: list[str] = array(string, versions="5+")


@struct
class ListedGroup(Struct):
    """A group."""

    group_id: str = string()
    protocol_type: str = string()  # "consumer" for consumers, empty for simple ones
    group_state: str = string(versions="4+", ignorable=True)
    group_type: str = string(versions="5+", ignorable=True)  # classic, consumer, share or streams


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse(Response):
    """The groups."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
