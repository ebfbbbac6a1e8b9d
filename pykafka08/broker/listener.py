"""Sockets of one broker, under asyncio and under trio.  What is read goes to a Session, what it writes goes out.

asyncio gets a BufferedProtocol that reads straight into the frames; trio gets a reader and a writer task a connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, cast

import anyio
import anyio.abc

from pykafka08.broker.session import Output
from pykafka08.driver import TaskScope, TaskTree, Wakeup
from pykafka08.errors import TransportError

__all__ = ["Listener", "Peer", "bind", "listen"]

READ_BYTES = 64 * 1024
BACKLOG = 128
TURNS_TO_ANNOUNCE = 3  # of the loop, from asyncio's accept to connection_made
REASONS_TO_TELL = ("CERTIFICATE", "NO_SHARED_CIPHER", "UNSUPPORTED_PROTOCOL")
"""In OpenSSL's reasons for which it makes an alert; for a client without TLS it makes none."""
HANDSHAKE_S = 10.0
"""Seconds that a client may take for the TLS handshake."""
MOST_UNSENT_BYTES = 64 * 1024  # as asyncio has it


class Session(Protocol):
    """What is said over one connection."""

    def next_buffer(self, sizehint: int, /) -> memoryview:
        """Where the next bytes are to go."""

    def bytes_received(self, size: int, /) -> None:
        """``size`` bytes were put there."""

    def output_filled(self) -> None: ...

    def output_drained(self) -> None: ...

    def closed(self) -> None:
        """The connection is gone."""


class Peer(NamedTuple):
    """The client of a connection: its address (empty if it is gone already), and its certificate in DER."""

    host: str
    certificate: bytes | None = None


SessionFactory = Callable[[Peer, Output], Session]


class Listener(Protocol):
    """An open listener with its connections."""

    async def aclose(self) -> None:
        """Close the listener and every connection at once; nothing of them remains afterwards."""


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; its port can be asked for before anybody listens.  TransportError where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise TransportError(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    return bound


async def listen(
    bound: socket.socket, new_session: SessionFactory, tasks: TaskTree, tls: ssl.SSLContext | None = None
) -> Listener:
    """Accept connections on ``bound``, with TLS if a context is given; each gets a session of its own."""
    if tls is not None:
        tls.sslobject_class = _AlertingPeer
    loop = asyncio._get_running_loop()
    if loop is not None:
        return await _AsyncioListener.open(loop, bound, new_session, tls)
    return _StreamListener(bound, new_session, tasks, tls)


class _AlertingPeer(ssl.SSLObject):
    """A TLS connection that tells its client why the handshake failed.

    asyncio and trio close the connection on an SSLError and drop the alert that OpenSSL has made.  They send it, and
    call again once the client has answered, if the handshake seems to want more bytes.
    """

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if not any(word in (error.reason or "") for word in REASONS_TO_TELL):
                raise
            self._failure = error
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the client reads the alert first") from None


class _AsyncioListener:
    def __init__(self) -> None:
        self.connections: set[_AsyncioConnection] = set()
        self._server: asyncio.Server | None = None
        self.is_closed = False
        self._all_gone = Wakeup()

    @classmethod
    async def open(
        cls,
        loop: asyncio.AbstractEventLoop,
        bound: socket.socket,
        new_session: SessionFactory,
        tls: ssl.SSLContext | None,
    ) -> _AsyncioListener:
        listener = cls()
        listener._server = await loop.create_server(
            lambda: _AsyncioConnection(listener, new_session),
            sock=bound,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_S if tls is not None else None,
        )
        return listener

    def gone(self, connection: _AsyncioConnection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._all_gone.set()

    def _stop_accepting(self) -> None:
        # A server that is closed between accept and connection_made leaks the socket (an assertion in its _attach).
        with suppress(NotImplementedError):  # Windows' proactor has no readers
            for listening in self._server.sockets if self._server is not None else ():
                asyncio.get_running_loop().remove_reader(listening.fileno())

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):
            self._stop_accepting()
            for _ in range(TURNS_TO_ANNOUNCE):
                await anyio.lowlevel.checkpoint()
            if self._server is not None:
                self._server.close()
            self.is_closed = True
            for connection in tuple(self.connections):
                connection.abort()
            while self.connections:
                await self._all_gone.wait()


class _AsyncioConnection(asyncio.BufferedProtocol):
    def __init__(self, listener: _AsyncioListener, new_session: SessionFactory) -> None:
        self._listener = listener
        self._new_session = new_session
        self._transport: asyncio.Transport | None = None
        self._session: Session | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        address, tls = transport.get_extra_info("peername"), transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        self._session = self._new_session(Peer(address[0] if address else "", certificate), self)
        self._listener.connections.add(self)
        if self._listener.is_closed:
            self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        assert self._session is not None
        return self._session.next_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        assert self._session is not None
        self._session.bytes_received(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._session is not None:
            self._session.closed()
        self._listener.gone(self)

    def pause_writing(self) -> None:
        if self._session is not None:
            self._session.output_filled()

    def resume_writing(self) -> None:
        if self._session is not None:
            self._session.output_drained()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()


class _StreamListener:
    def __init__(
        self, bound: socket.socket, new_session: SessionFactory, tasks: TaskTree, tls: ssl.SSLContext | None
    ) -> None:
        self._tls = tls
        self._scope = TaskScope()
        self._ended = Wakeup()
        bound.listen(BACKLOG)
        tasks.start("embedded broker", self._run, bound, new_session)

    async def _run(self, bound: socket.socket, new_session: SessionFactory) -> None:
        import trio

        listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound))
        try:
            with self._scope.entered():
                async with trio.open_nursery() as nursery, listener:
                    while True:
                        stream = await listener.accept()
                        nursery.start_soon(self._serve, stream, new_session)
        finally:
            self._ended.set()

    async def _serve(self, stream: Any, new_session: SessionFactory) -> None:
        import trio

        peer = Peer(_host_of(stream))
        if self._tls is not None:
            stream = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
            try:
                with trio.fail_after(HANDSHAKE_S):
                    await stream.do_handshake()
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                await trio.aclose_forcefully(stream)
                return
            peer = peer._replace(certificate=stream.getpeercert(binary_form=True))
        await _StreamConnection(stream, peer, new_session).run()

    async def aclose(self) -> None:
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()


class _StreamConnection:
    def __init__(self, stream: Any, peer: Peer, new_session: SessionFactory) -> None:
        self._stream = stream
        self._raw = getattr(stream, "socket", None)  # a TLS stream has none
        self._written: list[bytes] = []
        self._unsent = 0
        self._is_full = False
        self._to_write = Wakeup()
        self._to_read = Wakeup()
        self._is_paused = False
        self._is_ending = False
        self._session = new_session(peer, self)

    async def run(self) -> None:
        import trio

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write_all, nursery.cancel_scope)
                await self._read_all()
                nursery.cancel_scope.cancel()
        finally:
            self._session.closed()
            await trio.aclose_forcefully(self._stream)

    async def _read_all(self) -> None:
        import trio

        while True:
            while self._is_paused:
                await self._to_read.wait()
            room = self._session.next_buffer(READ_BYTES)
            try:
                size = await self._receive_into(room)
            except (OSError, trio.ClosedResourceError, trio.BrokenResourceError):
                return
            if not size:
                return
            self._session.bytes_received(size)

    async def _receive_into(self, room: memoryview) -> int:
        if self._raw is not None:
            return int(await self._raw.recv_into(room))
        data = await self._stream.receive_some(len(room))
        room[: len(data)] = data
        return len(data)

    async def _write_all(self, scope: Any) -> None:
        import trio

        while True:
            while self._written:
                written, self._written, self._unsent = self._written, [], 0
                try:
                    await self._stream.send_all(b"".join(written))
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    scope.cancel()
                    return
                if self._is_full:
                    self._is_full = False
                    self._session.output_drained()
            if self._is_ending:
                scope.cancel()
                return
            await self._to_write.wait()

    def write(self, data: bytes) -> None:
        self._written.append(data)
        self._unsent += len(data)
        self._to_write.set()
        if self._unsent >= MOST_UNSENT_BYTES and not self._is_full:
            self._is_full = True
            self._session.output_filled()

    def close(self) -> None:
        self._is_ending = True
        self._to_write.set()

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self._to_read.set()


def _host_of(stream: Any) -> str:
    """The client's address; empty if it is gone already."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return ""
