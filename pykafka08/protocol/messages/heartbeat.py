"""Heartbeat (API key 12)."""

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
    """HeartbeatRequest."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse(Response):
    """HeartbeatResponse."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16()
