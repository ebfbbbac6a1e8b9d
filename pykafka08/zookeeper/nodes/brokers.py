"""Nodes under ``/brokers``: registrations, topics with their assignment, the state of each partition.

Kafka's writers: Broker.createBroker, ZkUtils (0.8 to 0.11), ZkData (1.0 and later).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from pykafka08.errors import MalformedNodeError
from pykafka08.zookeeper.nodes.document import JsonNode, Key
from pykafka08.zookeeper.nodes.shapes import (
    each,
    integer,
    nullable,
    object_,
    partition_replicas,
    scalar,
    string,
    string_map,
)

__all__ = ["Broker", "Endpoint", "PartitionState", "Topic"]

_ENDPOINT = re.compile(r"([^:/]+)://(?:\[([^\]]*)\]|([^:]*)):(-?\d{1,10})", re.ASCII)


class Endpoint(NamedTuple):
    """One address a broker listens on; an IPv6 ``host`` stands without brackets."""

    listener: str
    protocol: str
    host: str
    port: int


@dataclass(frozen=True, kw_only=True)
class Broker(JsonNode):
    """A live broker.  Version 1 is of 0.8, 2 of 0.9, 3 of 0.10.0 and 0.10.1, 4 of 0.10.2 to 2.6, 5 of 2.7 to 3.9.

    ``host`` and ``port`` repeat the first plaintext endpoint; without one they are None and -1.
    """

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer),
        Key("host", "host", nullable(string)),
        Key("port", "port", integer),
        Key("jmx_port", "jmx_port", integer, False),
        Key("timestamp", "timestamp", scalar, False),
        Key("endpoints", "endpoints", each(string), False, since=2),
        Key("rack", "rack", nullable(string), False, since=3),
        Key("listener_security_protocol_map", "protocols", string_map, False, since=4),
        Key("features", "features", object_, False, since=5),
    )

    host: str | None = None
    port: int = -1
    jmx_port: int | None = None
    timestamp: str | int | None = None
    endpoints: Sequence[str] | None = None
    """As ``LISTENER://host:port``."""
    rack: str | None = None
    protocols: Mapping[str, str] | None = None
    """Listener name -> security protocol; None before version 4, where listeners have their protocol's name."""
    features: Mapping[str, object] | None = None

    @classmethod
    def _decode_object(cls, document: Mapping[str, object], path: str) -> Broker:
        broker = super()._decode_object(document, path)
        if broker.version < 1:
            raise MalformedNodeError(path, f"the key 'version' is {broker.version}, which is below 1")
        if broker.version == 1 and broker.host is None:
            raise MalformedNodeError(path, "the key 'host' is null")
        if broker.version > 1 and broker.endpoints is None:
            raise MalformedNodeError(path, "the key 'endpoints' is missing")
        for endpoint in broker.endpoints or ():
            if not _ENDPOINT.fullmatch(endpoint):
                raise MalformedNodeError(path, f"the key 'endpoints' has {endpoint!r}, which is no endpoint")
        return broker

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        """Where it can be reached: of version 1 the host and port, of later ones the endpoints."""
        if self.version == 1:
            return (Endpoint("PLAINTEXT", "PLAINTEXT", self.host or "", self.port),)
        return tuple(self._listener(endpoint) for endpoint in self.endpoints or ())

    def _listener(self, endpoint: str) -> Endpoint:
        found = _ENDPOINT.fullmatch(endpoint)
        assert found is not None, endpoint
        listener, bracketed, plain, port = found.groups()
        protocol = (self.protocols or {}).get(listener, listener)
        return Endpoint(listener, protocol, plain if bracketed is None else bracketed, int(port))

    def address_for(self, protocol: str) -> tuple[str, int] | None:
        """The host and port of its first listener for this security protocol; None without one."""
        return next(((each.host, each.port) for each in self.listeners if each.protocol.upper() == protocol), None)


@dataclass(frozen=True, kw_only=True)
class Topic(JsonNode):
    """A topic: the brokers of each partition, the preferred one first.

    Version 1 is of 0.8.0 to 2.3, 2 of 2.4 to 2.7, which also say what a reassignment adds and removes, 3 of 2.8 to 3.9.
    """

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("version", "version", integer, False),
        Key("partitions", "partitions", partition_replicas),
        Key("adding_replicas", "adding", partition_replicas, False, since=2),
        Key("removing_replicas", "removing", partition_replicas, False, since=2),
        Key("topic_id", "topic_id", string, False, since=3),
    )

    partitions: Mapping[int, Sequence[int]]
    adding: Mapping[int, Sequence[int]] = field(default_factory=dict)
    removing: Mapping[int, Sequence[int]] = field(default_factory=dict)
    topic_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class PartitionState(JsonNode):
    """Who leads a partition and who is in sync; ``leader`` is -1 while nobody leads."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("controller_epoch", "controller_epoch", integer),
        Key("leader", "leader", integer),
        Key("version", "version", integer, False),
        Key("leader_epoch", "leader_epoch", integer),
        Key("isr", "isr", each(integer)),
        Key("leader_recovery_state", "leader_recovery_state", integer, False),
    )

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    controller_epoch: int
    leader_recovery_state: int | None = None
