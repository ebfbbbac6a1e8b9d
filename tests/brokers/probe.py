"""As much of Kafka's protocol as it takes to see that a broker is ready and to create topics.

Every call opens a connection of its own. Layouts: Kafka's protocol guide; Metadata 0-4, ListOffsets 0-1,
CreateTopics 0-2, ApiVersions 0.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from tests.brokers.model import HOST, ClusterError, Topic
from tests.brokers.releases import Version

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 2, 3, 18, 19
T = TypeVar("T")
Where: TypeAlias = "int | tuple[str, int]"
"""A port of this machine, or host and port."""


class PartitionView(NamedTuple):
    """A partition as one broker's Metadata shows it; `leader` -1 is none."""

    partition: int
    leader: int
    replicas: list[int]
    isr: list[int]


class MetadataView(NamedTuple):
    """What one broker knows; the controller is None where the release does not tell (before 0.10)."""

    brokers: set[int]
    controller: int | None
    topics: dict[str, list[PartitionView]]


class Reader:
    """Reads Kafka's primitive types one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, code: str) -> int:
        """An integer, by its `struct` code."""
        (value,) = struct.unpack_from(">" + code, self.data, self.at)
        self.at += struct.calcsize(">" + code)
        return int(value)

    def string(self) -> str | None:
        size = self.number("h")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(max(0, self.number("i")))]


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def call(port: Where, key: int, version: int, body: bytes, timeout: float = 5.0) -> Reader:
    """Send one request on a new connection; the reader stands at the first byte of the answer's body."""
    address = (HOST, port) if isinstance(port, int) else port
    with socket.create_connection(address, timeout=timeout) as connection:
        message = struct.pack(">hhi", key, version, 1) + string("kafka-up") + body
        connection.sendall(struct.pack(">i", len(message)) + message)
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        return Reader(_exactly(connection, size)[4:])


def _exactly(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        chunk = connection.recv(size - len(got))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        got += chunk
    return got


def api_versions(port: Where) -> dict[int, tuple[int, int]]:
    """Lowest and highest version by API key (0.10 and later)."""
    reader = call(port, API_VERSIONS, 0, b"")
    if reader.number("h"):
        raise ConnectionError("the broker refused ApiVersions")
    rows = reader.array(lambda: (reader.number("h"), reader.number("h"), reader.number("h")))
    return {key: (lowest, highest) for key, lowest, highest in rows}


def _version(port: Where, key: int, ours: int) -> int:
    lowest, highest = api_versions(port)[key]
    if min(highest, ours) < lowest:
        raise ClusterError(f"the broker speaks only {lowest}-{highest} of API {key}, this probe up to {ours}")
    return min(highest, ours)


def metadata(port: Where, release: Version, topics: Sequence[str] = (), *, create: bool = False) -> MetadataView:
    """The cluster as one broker sees it, with the named topics (with none: all of them).

    `create` allows the broker to create what is not there; before 0.11 it does so in any case.
    """
    version = _version(port, METADATA, 4) if release >= (0, 10) else 0
    names = struct.pack(">i", len(topics)) + b"".join(map(string, topics))
    if not topics:
        names = struct.pack(">i", -1 if version >= 1 else 0)
    reader = call(port, METADATA, version, names + (struct.pack(">?", create) if version >= 4 else b""))
    return _read_metadata(reader, version)


def _read_metadata(reader: Reader, version: int) -> MetadataView:
    if version >= 3:
        reader.number("i")  # throttle time

    def broker() -> int:
        ident, _host, _port = reader.number("i"), reader.string(), reader.number("i")
        if version >= 1:
            reader.string()  # rack
        return ident

    def partition() -> PartitionView:
        reader.number("h")  # error
        ident, leader = reader.number("i"), reader.number("i")
        replicas, isr = (reader.array(lambda: reader.number("i")) for _ in range(2))
        return PartitionView(ident, leader, replicas, isr)

    def topic() -> tuple[str, list[PartitionView]]:
        _error, name = reader.number("h"), reader.string()
        if version >= 1:
            reader.number("b")  # internal
        return name or "", reader.array(partition)

    brokers = set(reader.array(broker))
    if version >= 2:
        reader.string()  # cluster id
    controller = reader.number("i") if version >= 1 else None
    return MetadataView(brokers, controller, dict(reader.array(topic)))


def serves(port: Where, release: Version, topic: str, partition: int) -> bool:
    """Whether this broker answers for the partition as its leader: Metadata may name it a moment before it does."""
    version = 1 if release >= (0, 10, 1) else 0
    body = struct.pack(">ii", -1, 1) + string(topic) + struct.pack(">iiq", 1, partition, -1)
    reader = call(port, LIST_OFFSETS, version, body + (b"" if version else struct.pack(">i", 1)))
    reader.number("i"), reader.string(), reader.number("i"), reader.number("i")
    return reader.number("h") == 0


def create_topics(port: int, topics: Sequence[Topic]) -> dict[str, tuple[int, str | None]]:
    """Ask the broker, which must be the controller; the error code and text by topic, 0 where it was done."""
    version = _version(port, CREATE_TOPICS, 2)
    body = struct.pack(">i", len(topics))
    for topic in topics:
        body += string(topic.name) + struct.pack(">ihi", topic.partitions, topic.replicas, 0)
        body += struct.pack(">i", len(topic.configs))
        body += b"".join(string(key) + string(value) for key, value in topic.configs.items())
    body += struct.pack(">i", 30_000) + (b"\0" if version >= 1 else b"")
    reader = call(port, CREATE_TOPICS, version, body, timeout=40)
    if version >= 2:
        reader.number("i")  # throttle time
    errors: dict[str, tuple[int, str | None]] = {}
    for _ in range(reader.number("i")):
        name, code = reader.string() or "", reader.number("h")
        errors[name] = (code, reader.string() if version >= 1 else None)
    return errors
