"""Refusals of a client by brokers: the last SecurityError of each address, until a connection succeeds.  Pure.

``now`` is monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykafka08.cluster.metadata import Broker
from pykafka08.config import Address, ClientConfig
from pykafka08.errors import SecurityError

__all__ = ["Refusals"]


class Refusals:
    """The refusals of the last ``socket_connection_setup_timeout_ms`` and one ``reconnect_backoff_max_ms``.

    Other failures do not end a refusal, because a broker that refuses a client may also just close connections.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._seconds = (config.socket_connection_setup_timeout_ms + config.reconnect_backoff_max_ms) / 1000
        self._last: dict[Address, tuple[SecurityError, float]] = {}

    def refused(self, address: Address, error: SecurityError, now: float) -> None:
        self._last[address] = (error, now + self._seconds)

    def accepted(self, address: Address) -> None:
        """End the refusal of an address: a connection was set up."""
        self._last.pop(address, None)

    def at(self, address: Address, now: float) -> SecurityError | None:
        """The refusal of an address; None without one."""
        error, until = self._last.get(address, (None, 0.0))
        return error if now < until else None

    def of(self, brokers: Iterable[Broker], now: float) -> SecurityError | None:
        """The first refusal of these brokers; None without one."""
        found = (self.at((broker.host, broker.port), now) for broker in brokers)
        return next((each for each in found if each is not None), None)
