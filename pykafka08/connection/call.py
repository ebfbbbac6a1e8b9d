"""One request on its way: what it is, when it must be over, and who is told how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pykafka08.protocol.messages.fetch import FetchRequest
from pykafka08.protocol.messages.join_group import JoinGroupRequest
from pykafka08.protocol.messages.sync_group import SyncGroupRequest
from pykafka08.protocol.schema import Request, Response
from pykafka08.protocol.versions import BrokerVersions

__all__ = ["Call", "Content", "Outcome", "may_be_held"]

SYNC_HELD = 10.0
"""How long a member of a group waits for what its leader assigns before that counts as silence.

The request names no bound; a suspicion that is wrong costs one question for metadata.
"""

Content = Request[Any] | Callable[[BrokerVersions], Request[Any]]
"""A request, or what makes one when the broker's versions are known."""


class Outcome(Protocol):
    """Told once how a call ended; a result of None for acks=0, when written."""

    def set_result(self, result: Any, /) -> object: ...

    def set_exception(self, error: BaseException, /) -> object: ...


def may_be_held(request: Request[Any]) -> float:
    """Seconds for which a broker may lawfully keep the answer back; 0 for most requests."""
    held = _HELD.get(type(request))
    return 0.0 if held is None else held(request)


def _fetch_held(request: Any) -> float:
    return float(request.max_wait_ms) / 1000


def _join_held(request: Any) -> float:
    return float(max(request.rebalance_timeout_ms, request.session_timeout_ms)) / 1000


def _sync_held(request: Any) -> float:
    return 0.0 if request.assignments else SYNC_HELD


_HELD: dict[type[Request[Any]], Callable[[Any], float]] = {
    FetchRequest: _fetch_held,
    JoinGroupRequest: _join_held,
    SyncGroupRequest: _sync_held,
}


class Call:
    """One request of a caller, or (``is_setup``) of the version handshake or of SASL."""

    __slots__ = (
        "content",
        "correlation_id",
        "deadline",
        "is_setup",
        "may_be_held",
        "name",
        "outcome",
        "overdue",
        "response",
        "sent_at",
        "version",
    )

    def __init__(self, content: Content, version: int | None, outcome: Outcome | None, deadline: float) -> None:
        self.content: Content | None = content
        self.version = version
        self.outcome = outcome
        self.is_setup = outcome is None
        self.deadline = deadline
        self.response: type[Response] | None = None
        """Set from the moment it is written until it is answered."""
        self.name = content.name if isinstance(content, Request) else "request"
        self.correlation_id = -1
        self.sent_at = 0.0
        self.may_be_held = 0.0
        """Seconds for which the broker may lawfully keep the answer back."""
        self.overdue = deadline
        """When a missing answer, or bytes that do not leave, close the connection."""

    def lateness(self, now: float, *, is_written: bool) -> str:
        """The text of an error: no answer, or not written, within the time that has passed."""
        waited = f"within {now - self.sent_at:.3g} s"
        if is_written:
            return f"no answer to {self.name} {waited}"
        return f"{self.name} could not be written {waited}: the peer takes no more bytes"

    def end(self, response: Any) -> None:
        """Tell the outcome, once."""
        outcome, self.outcome = self.outcome, None
        if outcome is not None:
            outcome.set_result(response)

    def fail(self, error: Exception) -> None:
        outcome, self.outcome = self.outcome, None
        if outcome is not None:
            outcome.set_exception(error)
