"""The connections of one client: one for each broker and purpose, made on demand, and the backoff before the next dial.

A connection's own life is in ``connection``; who the brokers are, and what an end means for metadata, in ``client``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum

import anyio

from pykafka08.backoff import Backoff
from pykafka08.cluster.metadata import Broker
from pykafka08.cluster.refusals import Refusals
from pykafka08.config import Address, ClientConfig
from pykafka08.connection.connection import Connection
from pykafka08.connection.handshake import NEWEST_PROBE, Probe, answered_api_versions
from pykafka08.connection.transport import Dial
from pykafka08.driver import TaskTree, clock, library_logger
from pykafka08.errors import ClosedError, SecurityError, TransportError
from pykafka08.errors.deadline import refusal_of
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.security.sasl.login import Login

__all__ = ["Connections", "Purpose"]

CLOSE_SECONDS = 2.0
"""Sockets are closed without a word to the peer, so that this is never reached; but nothing waits for ever."""


PROBE_SECONDS = 600.0
"""Seconds for which the handshake that worked for an address is reused; then the newest versions are tried again."""


QUIET_SECONDS = 10.0
"""Seconds without a failure after which the next failure counts as the first."""

NO_API_VERSIONS = (
    "the peer closes the connection on ApiVersions and is treated as Kafka 0.10.0; set broker_version if it is newer"
)

log = library_logger("cluster")


class Purpose(IntEnum):  # hashed for each request: that of an IntEnum is not interpreted
    """What a connection is for: a broker answers each connection in order, so a long poll needs one of its own."""

    CONTROL = 0
    FETCH = 1
    PRODUCE = 2
    MEMBERSHIP = 3


class Connections:
    """The connections that a client has, by address and purpose; iterates over them.

    Plain calls: ``on_ready(address)`` once a connection carries requests, ``on_silence()`` now and again while a broker
    owes an answer and nothing comes, ``on_end(connection)`` when one has ended that was not closed from this side.
    """

    def __init__(
        self,
        config: ClientConfig,
        tasks: TaskTree,
        dial: Dial,
        login: Login | None = None,
        *,
        on_ready: Callable[[Address], None],
        on_silence: Callable[[], None],
        on_end: Callable[[Connection], None],
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self.is_open = False
        """Whether the client is; ends are told only while it is."""
        self.refusals = Refusals(config)
        self._config = config
        self._facts = facts
        self._log = log.bind(**(facts or {"client_id": config.client_id}))
        self._tasks = tasks
        self._dial = dial
        self._login = login
        self._on_ready = on_ready
        self._on_silence = on_silence
        self._on_end = on_end
        self._connections: dict[tuple[Address, Purpose], Connection] = {}
        self._versions: dict[Address, BrokerVersions] = {}
        self._probes: dict[Address, tuple[Probe, float]] = {}
        self._backoffs: dict[Address, tuple[Backoff, float]] = {}
        self._refused_since: dict[Address, float] = {}

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._connections.values())

    def existing(self, broker: Broker, purpose: Purpose) -> Connection | None:
        """The connection for that purpose, if there is one."""
        return self._connections.get(((broker.host, broker.port), purpose))

    def opened(self, broker: Broker, purpose: Purpose) -> Connection:
        """The open connection for that purpose, or a new one."""
        address = (broker.host, broker.port)
        connection = self._connections.get((address, purpose))
        if connection is not None:
            if connection.is_open:
                return connection
            self._ended(connection, purpose)  # its callers were told first: mind the backoff all the same
        previous = self._versions.get(address)
        has_sibling = any(other.is_ready for (at, _), other in self._connections.items() if at == address)
        connection = Connection(
            self._config,
            address,
            self._tasks,
            broker=broker.name,
            known=previous if has_sibling else None,
            previous=previous,
            was_served=bool(self._versions),
            knows_api_versions=any(map(answered_api_versions, self._versions.values())),
            may_pass=self._may_pass(address),
            last_refusal=self.refusals.at(address, clock()()),
            probe=self._probe(address),
            dial_at=self._dial_at(address),
            on_ready=self._ready,
            # It may be paused or cut off, and its partitions led by others by now.
            on_silence=lambda _: self._on_silence(),
            on_end=lambda ended: self._ended(ended, purpose),
            dial=self._dial,
            login=self._login,
            facts=self._facts,
        )
        self._connections[address, purpose] = connection
        return connection

    def versions(self, broker: Broker) -> BrokerVersions | None:
        """What that broker serves; None if it was never connected to."""
        return self._versions.get((broker.host, broker.port))

    def review(self, brokers: Iterable[Broker]) -> None:
        """Give connections their broker's id; close those, unused or silent, to addresses that are no broker's now."""
        known = {(each.host, each.port): each.name for each in brokers}
        for (address, _), connection in list(self._connections.items()):  # what is closed may be replaced meanwhile
            if address in known:
                connection.broker = known[address]
            elif not connection.open_calls:
                connection.close()
            elif connection.is_silent:
                connection.close(TransportError("the broker owes an answer and has left the cluster"))

    async def aclose(self) -> None:
        """Close all of them; open requests fail with ClosedError."""
        connections = list(self._connections.values())
        for connection in connections:
            connection.close()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            for connection in connections:
                await connection.aclose()

    def _ready(self, connection: Connection) -> None:
        assert connection.versions is not None
        self._versions[connection.address] = connection.versions
        self._refused_since.pop(connection.address, None)
        self._note_refusal(connection.address, None)
        self._note_probe(connection)
        self._on_ready(connection.address)

    def _may_pass(self, address: Address) -> bool:
        """True if a refusal may be temporary, because credentials or certificates are being changed.

        It lasts for ``socket_connection_setup_timeout_ms`` from an address's first refusal.  A broker that stops may
        close connections in the same way as one that refuses.
        """
        if not self._versions:
            return False
        now = clock()()
        return now < self._refused_since.get(address, now) + self._config.socket_connection_setup_timeout_ms / 1000

    def _dial_at(self, address: Address) -> float | None:
        """The end of the pause after consecutive failures; None without failures."""
        if address not in self._backoffs:
            return None
        dial_at = self._backoffs[address][1]
        if clock()() > dial_at + max(QUIET_SECONDS, self._config.reconnect_backoff_max_ms / 1000):
            del self._backoffs[address]
        return dial_at

    def _probe(self, address: Address) -> Probe:
        """The handshake that recently worked for the address."""
        probe, until = self._probes.get(address, (NEWEST_PROBE, 0.0))
        return probe if clock()() < until else NEWEST_PROBE

    def _note_probe(self, connection: Connection) -> None:
        address, probe = connection.address, connection.probe
        if probe == NEWEST_PROBE:
            self._probes.pop(address, None)
        elif probe != self._probe(address):
            self._probes[address] = (probe, clock()() + PROBE_SECONDS)
            if probe.api_versions is None:
                self._log.warning(
                    "connection.no_api_versions",
                    broker=connection.broker,
                    advice=self._config.setting_names.in_text(NO_API_VERSIONS),
                )

    def _ended(self, connection: Connection, purpose: Purpose) -> None:
        address = connection.address
        if self._connections.get((address, purpose)) is not connection:
            return
        del self._connections[address, purpose]
        if not self.is_open or isinstance(connection.error, ClosedError):
            return
        if connection.has_answered or connection.was_idle:
            self._backoffs.pop(address, None)
        else:  # a peer may close every connection on the first request after the handshake
            backoff, _ = self._backoffs.get(address) or (self._new_backoff(), 0.0)
            self._backoffs[address] = (backoff, clock()() + backoff.failed())
        if connection.is_refused and not connection.was_ready:
            self._refused_since.setdefault(address, clock()())
        elif not connection.was_ready:
            self._refused_since.pop(address, None)
        if (refusal := refusal_of(connection.error)) is not None:
            self._note_refusal(address, refusal)
        self._on_end(connection)

    def _note_refusal(self, address: Address, refusal: SecurityError | None) -> None:
        """The address has refused a connection, or one was set up (None)."""
        if refusal is not None:
            self.refusals.refused(address, refusal, clock()())
        else:
            self.refusals.accepted(address)
        for (at, _), connection in self._connections.items():
            if at == address:
                connection.note_refusal(refusal)

    def _new_backoff(self) -> Backoff:
        config = self._config
        return Backoff(config.reconnect_backoff_ms / 1000, config.reconnect_backoff_max_ms / 1000, random.random)
