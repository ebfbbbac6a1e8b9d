"""AddRaftVoter: adds a controller to the quorum (API key 80).

KRaft with a dynamic quorum; brokers pass it on.

Versions, the first release with each, and what is new in it:

     0  3.9     (KIP-853)
     1  4.2     the answer can come before the commit (KIP-1186)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    message,
    string,
    struct,
    uint16,
    uuid_,
)

__all__ = ["AddRaftVoterRequest", "AddRaftVoterResponse", "Listener"]


@struct
class Listener(Struct):
    """An address of the controller."""

    name: str = string()
    host: str = string()
    port: int = uint16()


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest(Request["AddRaftVoterResponse"]):
    """The controller to add."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: UUID = uuid_()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = bool_(versions="1+", default=True)


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse(Response):
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
