"""TLS under connections, on both event loops: what passes through, and peers that break the handshake."""

from __future__ import annotations

import re
import socket
import ssl
import struct
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import Mock

import anyio
import anyio.abc
import pytest
import trustme
from anyio.streams.tls import TLSStream

from pykafka08.connection.connection import Connection
from pykafka08.connection.secure_dial import dial_for
from pykafka08.connection.transport import Dial, Transport
from pykafka08.driver import TaskTree
from pykafka08.errors import CertificateError, KafkaError, RemoteProtocolError, SecurityError, TlsError, TransportError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.security.settings import SecurityConfig
from tests.connection.answers import answer_to, metadata
from tests.connection.peers import LOOPBACK, Address, Caller, config, peer

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return ("asyncio", {"use_uvloop": True}) if request.param == "uvloop" else request.param


Play = Callable[[Caller], Awaitable[None]]


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return str(path)


def server_context(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*(names or (LOOPBACK, "localhost"))).configure_cert(context)
    return context


def over_tls(play: Play, context: ssl.SSLContext) -> Play:
    """The play behind a TLS handshake."""

    async def secured(caller: Caller) -> None:
        try:
            stream = await TLSStream.wrap(
                caller.stream, server_side=True, ssl_context=context, standard_compatible=False
            )
        except (ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream):
            return  # the client has refused
        caller.stream = stream  # type: ignore[assignment]
        await play(caller)

    return secured


@asynccontextmanager
async def connected(play: Play, security: SecurityConfig, **settings: Any) -> AsyncIterator[Connection]:
    async with peer(play) as address, TaskTree() as tasks:
        connection = Connection(config(**settings), address, tasks, dial=dial_for(security))
        try:
            yield connection
        finally:
            await connection.aclose()


async def failure(connection: Connection) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        await connection.wait_ready()
    return caught.value


def tls(ca_file: str, **settings: Any) -> SecurityConfig:
    return SecurityConfig(security_protocol="SSL", ssl_cafile=ca_file, **settings)


async def test_requests_and_answers_of_every_size_pass(ca: trustme.CA, ca_file: str) -> None:
    records = bytes(range(256)) * 4 * 1024 * 3
    seen: list[int] = []

    async def play(caller: Caller) -> None:
        await caller.greet()
        while (asked := await caller.request()) is not None:
            if asked.name == "Produce":
                seen.append(len(asked.request.topic_data[0].partition_data[0].records))
                await caller.send(answer_to(asked, asked.request.response()))
            else:
                await caller.send(answer_to(asked, metadata([(n, "h" * 200, 1) for n in range(20_000)])))

    async with connected(over_tls(play, server_context(ca)), tls(ca_file)) as connection:
        versions = await connection.wait_ready()
        assert isinstance(versions, BrokerVersions)
        parts = [PartitionProduceData(index=0, records=records)]
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=parts)])
        version = min(12, versions.pick(ProduceRequest))
        written = [connection.submit(request, version=version, timeout=30) for _ in range(5)]
        large = connection.submit(MetadataRequest(topics=[]), timeout=30)
        for each in written:
            await each
        assert len((await large).brokers) == 20_000
    assert seen == [len(records)] * 5


async def test_the_certificate_must_be_of_the_host_and_the_ca(ca: trustme.CA, ca_file: str) -> None:
    other = server_context(trustme.CA())
    wrong_host = server_context(ca, "kafka.example.com")
    for context, reason in ((other, {"unknown CA", "self-signed"}), (wrong_host, {"wrong host"})):
        async with connected(over_tls(lambda caller: caller.serve(), context), tls(ca_file)) as connection:
            error = await failure(connection)
            assert isinstance(error, CertificateError)
            assert error.reason in reason
            assert ("but for kafka.example.com;" in str(error)) == (error.reason == "wrong host")
            assert error.broker is not None


async def test_the_server_is_told_the_host_name(ca: trustme.CA, ca_file: str) -> None:
    """SNI: a name in the first message of the handshake, and no IP address (RFC 6066)."""
    context, named = server_context(ca), list[str | None]()
    context.sni_callback = lambda side, name, initial: named.append(name)
    async with peer(over_tls(lambda caller: caller.serve(), context)) as (_, port), TaskTree() as tasks:
        for host in ("localhost", LOOPBACK):
            connection = Connection(config(), (host, port), tasks, dial=dial_for(tls(ca_file)))
            await connection.wait_ready()
            await connection.aclose()
    assert named == ["localhost", None]


async def silence(caller: Caller) -> None:
    while await caller.stream.receive():
        pass


async def test_a_peer_that_is_silent_in_the_handshake_costs_the_set_up_time(ca_file: str) -> None:
    async with connected(silence, tls(ca_file), socket_connection_setup_timeout_ms=200) as connection:
        error = await failure(connection)
        assert isinstance(error, TransportError)
        # On a busy machine the end of the set-up may come before the dial's own, slightly earlier end.
        assert re.search("no TLS handshake within|could not be reached in time", str(error))


async def test_a_cancelled_handshake_leaves_nothing_behind(ca_file: str) -> None:
    async with connected(silence, tls(ca_file)):
        await anyio.sleep(0.05)  # inside the handshake; the end of the block closes it


async def test_a_dial_that_is_cancelled_at_any_turn_spares_the_next_one(ca: trustme.CA, ca_file: str) -> None:
    async def served(caller: Caller) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await caller.stream.receive()

    async with peer(over_tls(served, server_context(ca))) as address, TaskTree() as tasks:
        dial = dial_for(tls(ca_file))
        given_up = 0
        for turns in range(1, 30):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(cancel_after, scope, turns)
                    transport = await dialled(dial, address, tasks)
                    transport.close()
                    await transport.wait_closed()
            given_up += scope.cancelled_caught
            # The system gives the next socket the number of the one that was closed last.
            transport = await dialled(dial, address, tasks)
            transport.close()
            await transport.wait_closed()
        assert given_up


async def cancel_after(scope: anyio.CancelScope, turns: int) -> None:
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


async def dialled(dial: Dial, address: Address, tasks: TaskTree) -> Transport:
    link = Mock(spec=["data_to_send", "data_sent", "frame_received", "connection_lost"])
    link.data_to_send.return_value = []
    return await dial(link, *address, deadline=anyio.current_time() + 30, max_frame_bytes=MIB, tasks=tasks)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0",
        b"\x16\x03\x03\x40\x00" + bytes(100),
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\0\0\0\x06\0\0\0\0\0\x23",
        bytes(10_000),
        b"\x16\x03\x03\xff\xff" + b"\xff" * 70_000,
    ],
    ids=["close", "a byte", "cut off", "alert", "HTTP", "Kafka", "zeros", "long"],
)
async def test_garbage_in_the_handshake_is_a_tls_error(answer: bytes, ca_file: str) -> None:
    async def play(caller: Caller) -> None:
        await caller.stream.receive()
        if answer:
            await caller.stream.send(answer)

    async with connected(play, tls(ca_file)) as connection:
        with anyio.fail_after(5):
            error = await failure(connection)
        assert isinstance(error, TlsError)
        assert "security_protocol" in str(error) or "ssl_certfile" in str(error)
        assert error.broker is not None


async def test_the_end_of_an_encrypted_connection_is_a_transport_error(ca: trustme.CA, ca_file: str) -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        await caller.request()

    async with connected(over_tls(play, server_context(ca)), tls(ca_file)) as connection:
        await connection.wait_ready()
        with pytest.raises(TransportError, match="closed the connection"):
            await connection.submit(MetadataRequest(topics=[]), timeout=10)


async def test_bytes_that_are_no_tls_end_the_connection(ca: trustme.CA, ca_file: str) -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        await caller.request()
        await caller.stream.transport_stream.send(b"\x17\x03\x03\x00\x05xxxxx")  # type: ignore[attr-defined]
        await caller.frame()

    async with connected(over_tls(play, server_context(ca)), tls(ca_file)) as connection:
        await connection.wait_ready()
        with pytest.raises(TransportError):
            await connection.submit(MetadataRequest(topics=[]), timeout=10)


NOT_KAFKA = [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the peer speaks HTTP"),
    (b"220 mail.example.org ESMTP\r\n", "the peer sent text that begins with '220 '"),
    (b"\xff\xff\xff\xf0" + bytes(60), "a frame of -16 bytes"),
    (b"\x00\x00\x00\x08" + b"\xee" * 8, "a response has correlation id"),
    (b"\x00\x00\x00\x00", "a response of 0 bytes"),
    (b"\x70\x00\x00\x01\x02", "its response is too large, or"),
]


@pytest.mark.parametrize(("data", "text"), NOT_KAFKA)
@pytest.mark.parametrize("is_over_tls", [False, True], ids=["plaintext", "TLS"])
async def test_a_peer_of_another_protocol_is_named_at_once(
    data: bytes, text: str, is_over_tls: bool, ca: trustme.CA, ca_file: str
) -> None:
    callers = 0

    async def play(caller: Caller) -> None:
        nonlocal callers
        callers += 1
        await caller.send(data)
        await caller.frame()

    settings = tls(ca_file) if is_over_tls else SecurityConfig()
    async with connected(over_tls(play, server_context(ca)) if is_over_tls else play, settings) as connection:
        error = await failure(connection)
    assert isinstance(error, RemoteProtocolError)
    assert "the peer does not speak Kafka's protocol" in str(error)
    assert text in str(error)
    assert callers == 1


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28", b"\xee" * 300],
    ids=["HTTP", "alert", "junk"],
)
async def test_a_first_response_that_is_not_tls_is_a_tls_error(data: bytes, ca: trustme.CA, ca_file: str) -> None:
    callers = 0

    async def play(caller: Caller) -> None:
        nonlocal callers
        callers += 1
        await caller.stream.transport_stream.send(data)  # type: ignore[attr-defined]
        await caller.frame()

    async with connected(over_tls(play, server_context(ca)), tls(ca_file)) as connection:
        error = await failure(connection)
    assert isinstance(error, TlsError)
    assert "the peer sent bytes that are not TLS after the TLS handshake" in str(error)
    assert "check the port and security_protocol" in str(error)
    assert callers == 1


async def test_a_reset_in_place_of_the_first_answer_is_no_fault_of_tls(ca: trustme.CA, ca_file: str) -> None:
    """Another connection is tried: the peer may reset for the version of the first request."""
    callers = 0

    async def play(caller: Caller) -> None:
        nonlocal callers
        callers += 1
        await caller.frame()
        raw = caller.stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await anyio.aclose_forcefully(caller.stream)

    async with connected(over_tls(play, server_context(ca)), tls(ca_file)) as connection:
        error = await failure(connection)
    assert not isinstance(error, TlsError)
    assert "the peer closed the connection on our first request" in str(error)
    assert callers > 1


async def test_bytes_that_nobody_can_decrypt_are_a_refusal_only_as_the_first_answer(
    ca: trustme.CA, ca_file: str
) -> None:
    """As of Kafka up to 3.0, which demands a client certificate."""
    garbled = b"\x17\x03\x03\x00\x40" + bytes(64)

    async def refuse(caller: Caller) -> None:
        await caller.stream.transport_stream.send(garbled)  # type: ignore[attr-defined]
        await caller.frame()

    async def greet(caller: Caller) -> None:
        await caller.greet()
        await caller.request()
        await refuse(caller)

    async with connected(over_tls(refuse, server_context(ca)), tls(ca_file)) as connection:
        error = await failure(connection)
        assert isinstance(error, TlsError)
        assert "the broker demands a client certificate: set ssl_certfile" in str(error)
    async with connected(over_tls(greet, server_context(ca)), tls(ca_file)) as connection:
        await connection.wait_ready()
        with pytest.raises(TransportError):
            await connection.submit(MetadataRequest(topics=[]), timeout=10)


async def test_a_peer_without_tls_1_2_is_refused(ca: trustme.CA, ca_file: str) -> None:
    context = server_context(ca)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the old versions
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with connected(over_tls(lambda caller: caller.serve(), context), tls(ca_file)) as connection:
        assert isinstance(await failure(connection), SecurityError)
