"""Heartbeat: says that a member lives, and hears whether the group is rebalancing (API key 12).

REBALANCE_IN_PROGRESS as the answer means: join again, with the same member id.

Versions, the first release with each, and what is new in it:

     0  0.9.0
     1  0.11.0  throttle time (KIP-124)
     2  2.0     the answer comes before the throttling, not after it (KIP-219)
     3  2.3     static members (KIP-345)
     4  2.4     compact forms, tagged fields (KIP-482)
"""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    int16,
    int32,
    message,
    string,
)

__all__ = ["HeartbeatRequest", "HeartbeatResponse"]


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest(Request["HeartbeatResponse"]):
    """The member and the generation it believes in."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)  # of static members (KIP-345)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(Response):
    """An error code."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
