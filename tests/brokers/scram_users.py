"""Write SCRAM users to ZooKeeper as Kafka's tool does, without starting a JVM for each user."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import struct
from types import TracebackType

from tests.brokers.model import HOST, ClusterError

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS = 4096
TIMEOUT_S = 20
SESSION_MS = 10_000
CREATE, CLOSE = 1, -11
NODE_EXISTS = -110
EVERY_RIGHT = 31


def write_users(port: int, chroot: str, users: dict[str, str], mechanisms: list[str]) -> None:
    """Write each user with the credentials of each mechanism; brokers that start later read them."""
    with _ZooKeeper(port) as zookeeper:
        for name, password in users.items():
            config = {mechanism: _credential(mechanism, password) for mechanism in mechanisms}
            data = json.dumps({"version": 1, "config": config}).encode()
            zookeeper.create(f"{chroot}/config/users/{name}", data)


def _credential(mechanism: str, password: str) -> str:
    name, salt = HASHES[mechanism], os.urandom(24)
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, ITERATIONS)
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    server = hmac.digest(salted, b"Server Key", name)
    salt_text, stored_text, server_text = (base64.b64encode(each).decode() for each in (salt, stored, server))
    return f"salt={salt_text},stored_key={stored_text},server_key={server_text},iterations={ITERATIONS}"


class _ZooKeeper:
    """A session that creates nodes."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=TIMEOUT_S)
        self._xid = 0

    def __enter__(self) -> _ZooKeeper:
        self._send(struct.pack(">iqiq", 0, 0, SESSION_MS, 0) + _buffer(bytes(16)) + b"\0")
        self._receive()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._socket:
            if error is None:
                self._ask(CLOSE, b"")

    def create(self, path: str, data: bytes) -> None:
        """Create a node and its missing parents."""
        parts = path.strip("/").split("/")
        for length in range(1, len(parts) + 1):
            above = "/" + "/".join(parts[:length])
            content = data if length == len(parts) else b""
            access = struct.pack(">ii", 1, EVERY_RIGHT) + _buffer(b"world") + _buffer(b"anyone")
            code = self._ask(CREATE, _buffer(above.encode()) + _buffer(content) + access + struct.pack(">i", 0))
            if code and (code != NODE_EXISTS or length == len(parts)):
                raise ClusterError(f"ZooKeeper did not create {above}: error {code}")

    def _ask(self, operation: int, body: bytes) -> int:
        """Send a request; return the error code of the response."""
        self._xid += 1
        self._send(struct.pack(">ii", self._xid, operation) + body)
        _, _, code = struct.unpack_from(">iqi", self._receive())
        return int(code)

    def _send(self, body: bytes) -> None:
        self._socket.sendall(_buffer(body))

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ClusterError("ZooKeeper closed the connection")
            data += more
        return data


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
