"""Hostile TLS peers: what they send in a handshake or after it.

``CASES`` is the table, with the error that a client must raise.  Most send records without encryption, as anyone on the
network path can.
"""

from __future__ import annotations

import os
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import anyio

from pykafka08.errors import KafkaError, TlsError, TransportError
from pykafka08.security.tls_errors import DEMANDED
from tests.connection.peers import Caller

__all__ = ["CASES", "MIB", "Case"]

MIB = 1024 * 1024
LARGEST = 16_384
"""Bytes of the largest record."""
ALERT, HANDSHAKE, DATA = 21, 22, 23
SERVER_HELLO, CERTIFICATE, FINISHED, HELLO_REQUEST = 2, 11, 20, 0
MANY = 1000

Play = Callable[[Caller, ssl.SSLContext], Awaitable[None]]


def record(kind: int, content: bytes) -> bytes:
    return struct.pack(">BHH", kind, 0x0303, len(content)) + content


def handshake_message(kind: int, body: bytes, *, size: int | None = None) -> bytes:
    """A message that announces ``size`` bytes, in a record of its own."""
    announced = len(body) if size is None else size
    return record(HANDSHAKE, bytes([kind]) + announced.to_bytes(3, "big") + body)


def server_hello() -> bytes:
    """The first message of a server with TLS 1.2."""
    no_session, cipher, no_compression = b"\0", b"\xc0\x2f", b"\0"
    secure_renegotiation = b"\0\x05\xff\x01\0\x01\0"
    body = b"\x03\x03" + os.urandom(32) + no_session + cipher + no_compression + secure_renegotiation
    return handshake_message(SERVER_HELLO, body)


CHANGE_CIPHER_SPEC = b"\x14\x03\x03\0\x01\x01"
NO_TLS = "the peer sent bytes that are not TLS after the TLS handshake"
WARNING = record(ALERT, b"\x01\x5a")
CLOSE_NOTIFY = record(ALERT, b"\x01\0")
EMPTY = record(HANDSHAKE, b"")
EMPTY_DATA = record(DATA, b"")


async def read_on(caller: Caller) -> None:
    """Until the client goes."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            await caller.stream.receive()


def sends(*parts: Callable[[], bytes] | bytes) -> Play:
    """After the client's first message."""

    async def play(caller: Caller, context: ssl.SSLContext) -> None:
        await caller.stream.receive()
        for part in parts:
            await caller.send(part if isinstance(part, bytes) else part())
        await read_on(caller)

    return play


def floods(first: Callable[[], bytes], again: bytes, size: int = 32 * MIB) -> Play:
    """Until the client goes, or after ``size`` bytes."""

    async def play(caller: Caller, context: ssl.SSLContext) -> None:
        await caller.stream.receive()
        await caller.send(first())
        block = again * (65_536 // len(again))
        for _ in range(size // len(block)):
            await caller.send(block)
        await read_on(caller)

    return play


async def drips(caller: Caller, context: ssl.SSLContext) -> None:
    """A record whose bytes come one by one and never end."""
    await caller.stream.receive()
    await caller.send(struct.pack(">BHH", HANDSHAKE, 0x0303, LARGEST) + b"\x02\0\x3f\0")
    while True:
        await caller.send(b"\0")
        await anyio.sleep(0.01)


class Server:
    """An honest handshake, byte for byte."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.received, self.due = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.received, self.due, server_side=True)

    async def flight(self, caller: Caller) -> bytes:
        """The answer to what the client sends next."""
        self.received.write(await caller.stream.receive())
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.due.read()


async def drips_an_honest_handshake(caller: Caller, context: ssl.SSLContext) -> None:
    """Byte by byte, and then the end of the stream in place of Kafka's answer."""
    server = Server(context)
    while not server.tls.version():
        for byte in await server.flight(caller):
            await caller.send(bytes([byte]))


def injects(*parts: bytes) -> Play:
    """Between the first two messages of an honest handshake."""

    async def play(caller: Caller, context: ssl.SSLContext) -> None:
        flight = await Server(context).flight(caller)
        (size,) = struct.unpack_from(">H", flight, 3)
        await caller.send(flight[: 5 + size])
        for part in parts:
            await caller.send(part)
        await read_on(caller)

    return play


async def repeats_its_flight(caller: Caller, context: ssl.SSLContext) -> None:
    """As Kafka up to 3.0, which refuses the client's lack of a certificate in this way."""
    flight = await Server(context).flight(caller)
    await caller.send(flight)
    await caller.stream.receive()
    await caller.send(flight)
    await read_on(caller)


def follows(*parts: bytes) -> Play:
    """After the end of an honest handshake."""

    async def play(caller: Caller, context: ssl.SSLContext) -> None:
        server = Server(context)
        while not server.tls.version():
            flight = await server.flight(caller)
            if flight:
                await caller.send(flight)
        for part in parts:
            await caller.send(part)
        await read_on(caller)

    return play


@dataclass(frozen=True)
class Case:
    """``errors`` and ``says``: the client's error, and a part of its text.

    ``waits``: the client gives up when its set-up time-out has passed, and not before.  ``newest``: the server's
    newest version of TLS.
    """

    name: str
    play: Play
    errors: type[KafkaError] | tuple[type[KafkaError], ...] = TlsError
    says: str = "the peer does not follow the TLS protocol"
    waits: bool = False
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3


NO_HANDSHAKE = "no TLS handshake within"
LATE = (NO_HANDSHAKE, "could not be reached in time")
"""On a busy machine the end of the set-up may come before the dial's own, slightly earlier end."""

IN_HANDSHAKE = (
    Case("change-cipher-spec", sends(CHANGE_CIPHER_SPEC)),
    Case("change-cipher-spec-flood", floods(lambda: b"", CHANGE_CIPHER_SPEC)),
    Case("change-cipher-spec-of-2", sends(b"\x14\x03\x03\0\x01\x02")),
    Case("change-cipher-spec-after-hello", sends(server_hello, CHANGE_CIPHER_SPEC)),
    Case("data", sends(record(DATA, bytes(5)))),
    Case("finished", sends(handshake_message(FINISHED, b""))),
    Case("certificate-first", sends(handshake_message(CERTIFICATE, bytes(6)))),
    Case("empty-records", sends(EMPTY * MANY)),
    Case("empty-data", sends(EMPTY_DATA * MANY)),
    Case("warnings", sends(WARNING * MANY)),
    Case("close-notify", sends(CLOSE_NOTIFY), says="closed the connection in the TLS handshake"),
    Case("hello-of-16-mib", sends(handshake_message(SERVER_HELLO, bytes(LARGEST - 4), size=2**24 - 1))),
    Case(
        "certificate-of-16-mib",
        floods(
            lambda: server_hello() + handshake_message(CERTIFICATE, bytes(LARGEST - 4), size=2**24 - 1),
            record(HANDSHAKE, bytes(LARGEST)),
        ),
    ),
    Case("empty-certificate", sends(server_hello, handshake_message(CERTIFICATE, b"\0\0\x03\0\0\0")), says="ASN1"),
    Case("change-cipher-spec-flood-within", injects(CHANGE_CIPHER_SPEC * MANY), (TlsError, TransportError), says=""),
    Case("flight-again", repeats_its_flight, says=DEMANDED, newest=ssl.TLSVersion.TLSv1_2),
    Case("zeros-within", injects(bytes(10_000)), says="does not speak TLS"),
)
WAITS = (
    Case("dripping", drips, TransportError, NO_HANDSHAKE, waits=True),
    Case("one-warning", sends(WARNING), TransportError, NO_HANDSHAKE, waits=True),
    Case(
        "hello-requests", sends(handshake_message(HELLO_REQUEST, b"") * MANY), TransportError, NO_HANDSHAKE, waits=True
    ),
    Case("hello-alone", sends(server_hello), TransportError, NO_HANDSHAKE, waits=True),
)
AFTER = tuple(
    Case(f"{name}-after-{version.name}", play, says=says, newest=version)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    for name, play, says in (
        ("zeros", follows(bytes(10_000)), f"{NO_TLS} (WRONG_VERSION_NUMBER)"),
        ("change-cipher-spec", follows(CHANGE_CIPHER_SPEC * MANY), NO_TLS),
        ("finished", follows(handshake_message(FINISHED, b"")), NO_TLS),
        ("warning", follows(WARNING * MANY), NO_TLS),
    )
)

CASES = (
    Case("honest-but-dripping", drips_an_honest_handshake, TransportError, "closed the connection"),
    *IN_HANDSHAKE,
    *WAITS,
    *AFTER,
)
