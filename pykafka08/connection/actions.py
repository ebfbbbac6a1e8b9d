"""What the machine of a connection tells its driver to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykafka08.errors import KafkaError

__all__ = ["Action", "Authenticate", "Close", "Redial", "Suspect", "Throttled"]


@dataclass(frozen=True, slots=True)
class Redial:
    """Close the transport and open another to the same broker."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the transport; every call has its outcome."""

    error: KafkaError


@dataclass(frozen=True, slots=True)
class Suspect:
    """The peer owes an answer and says nothing: ask others about it.  Repeated while that lasts."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """The broker wants to hear nothing for so many seconds: calls are held."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Ask the SASL mechanism for its next token, after the broker's ``challenge``; None begins a new exchange."""

    challenge: bytes | None = field(repr=False)


Action = Authenticate | Redial | Close | Suspect | Throttled
