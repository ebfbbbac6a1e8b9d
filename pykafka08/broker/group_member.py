"""One member of a consumer group as its coordinator knows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pykafka08.broker.timers import Timer
from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode

__all__ = ["JoinResult", "Member", "SyncResult"]

Protocols = Sequence[tuple[str, bytes]]


class JoinResult(NamedTuple):
    """What a member is told when a generation begins; ``members`` (id, instance id, metadata) for its leader alone."""

    error_code: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    skip_assignment: bool = False


class SyncResult(NamedTuple):
    """A member's assignment."""

    error_code: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class Member:
    """``protocols`` are in the member's order of preference; ``instance_id`` marks a static member (KIP-345)."""

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        *,
        client_id: str,
        client_host: str,
        session_timeout: float,
        rebalance_timeout: float,
        protocols: Protocols,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout = session_timeout
        self.rebalance_timeout = rebalance_timeout
        self.protocols = list(protocols)
        self.assignment = b""
        self.joining: Waiter[JoinResult] | None = None
        self.syncing: Waiter[SyncResult] | None = None
        self.session: Timer | None = None

    @property
    def is_joining(self) -> bool:
        """It has asked to join, and has no answer: also one whose connection has gone, which a broker does not know."""
        return self.joining is not None

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def end_session(self) -> None:
        if self.session is not None:
            self.session.cancel()
            self.session = None

    def answer_join(self, result: JoinResult) -> None:
        waiter, self.joining = self.joining, None
        if waiter is not None:
            waiter.set_result(result)

    def answer_sync(self, result: SyncResult) -> None:
        waiter, self.syncing = self.syncing, None
        if waiter is not None:
            waiter.set_result(result)
