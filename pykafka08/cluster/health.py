"""How a client is doing: what it is connected to and what it waits for.  Only state is read here; nothing is asked.

Producers and consumers add their own part in ``producer.health`` and ``consumer.health``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pykafka08.connection.connection import Connection
from pykafka08.errors import KafkaError

__all__ = ["ClientHealth", "connections_health"]


@dataclass(frozen=True, kw_only=True)
class ClientHealth:
    """What producers and consumers have in common."""

    failure: KafkaError | None
    """Why the client has ended by itself, which every call raises; None while it runs."""
    connected: tuple[str, ...]
    """The brokers that a connection is ready to, each ``"host:port (id N)"``, sorted."""
    requests_in_flight: int
    """Requests that wait for an answer, or for a connection, long polls among them."""


def connections_health(failure: KafkaError | None, connections: Iterable[Connection]) -> ClientHealth:
    in_flight, connected = 0, set()
    for connection in connections:
        in_flight += connection.open_calls
        if connection.is_ready:
            connected.add(connection.broker)
    return ClientHealth(failure=failure, connected=tuple(sorted(connected)), requests_in_flight=in_flight)
