"""RemoveRaftVoter: removes a controller from the quorum (API key 81).

KRaft with a dynamic quorum; brokers pass it on.

Versions, the first release with each, and what is new in it:

     0  3.9     (KIP-853)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Request,
    Response,
    int16,
    int32,
    message,
    string,
    uuid_,
)

__all__ = ["RemoveRaftVoterRequest", "RemoveRaftVoterResponse"]


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest(Request["RemoveRaftVoterResponse"]):
    """The controller to remove."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: UUID = uuid_()


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse(Response):
    """The result."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
