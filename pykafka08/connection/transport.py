"""Bytes to and from one peer: TCP under asyncio, TCP under trio, and memory for tests, behind one small border.

Here: name resolution, sockets, the joining of writes, and the one place where exceptions of the operating system and of
the event loops become ours.  Not here: what the frames mean (``machine``).

Under asyncio (and uvloop) a frame-aware BufferedProtocol receives large frames straight into their own buffer, and all
frames that one turn of the loop produced leave in one send.  Under trio a reader and a writer task stand over anyio's
stream.  A frame that was started is written whole or the connection is closed: no caller's cancellation reaches here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import Callable
from typing import Any, Protocol

import anyio
import anyio.abc

from pykafka08.driver import TaskTree, Waiter, Wakeup
from pykafka08.errors import KafkaError, RemoteProtocolError, TransportError
from pykafka08.protocol.framing import FrameSplitter
from pykafka08.wire import Buffer

__all__ = ["Dial", "Link", "MemoryTransport", "Transport", "open_tcp"]

READ_SIZE = 65_536

SocketAddress = tuple[int, Any]
"""Address family, and what ``socket.connect`` takes."""


class Link(Protocol):
    """What a transport asks of its owner.  Plain calls, all in the event loop's thread."""

    def data_to_send(self) -> list[Buffer]: ...

    def data_sent(self) -> None: ...

    def frame_received(self, frame: Buffer) -> None: ...

    def connection_lost(self, error: KafkaError) -> None:
        """The last call, made once, unless the owner closed it."""


class Transport(Protocol):
    """An open connection."""

    def wake_writer(self) -> None:
        """The link has data to send: take and send it in this turn of the loop or as soon as the peer takes more."""

    def close(self) -> None:
        """Close at once; what is not sent is dropped and the link hears no more."""

    async def wait_closed(self) -> None:
        """Return when no socket and no task is left."""


class Dial(Protocol):
    """Opens a transport before ``deadline`` (event loop's clock), or raises TransportError (without the broker)."""

    async def __call__(
        self, link: Link, host: str, port: int, *, deadline: float, max_frame_bytes: int, tasks: TaskTree
    ) -> Transport: ...


async def open_tcp(
    link: Link, host: str, port: int, *, deadline: float, max_frame_bytes: int, tasks: TaskTree
) -> Transport:
    """Connect to the first address of ``host`` that answers; the time left is shared among those not tried yet."""
    addresses = await _resolve(host, port, deadline)
    failures = []
    for index, (family, address) in enumerate(addresses):
        now = anyio.current_time()
        share = max(0.0, deadline - now) / (len(addresses) - index)
        try:
            with anyio.fail_after(share):
                if asyncio._get_running_loop() is not None:
                    return await _AsyncioTransport.connect(link, family, address, max_frame_bytes)
                return await _StreamTransport.connect(link, address, max_frame_bytes, tasks)
        except TimeoutError:
            failures.append(f"{address[0]}: no answer within {share:.3g} s")
        except OSError as error:
            failures.append(f"{address[0]}: {_reason(error)}")
    raise TransportError(f"cannot connect to {host}:{port} ({'; '.join(failures)})")


async def _resolve(host: str, port: int, deadline: float) -> list[SocketAddress]:
    """All addresses of ``host``, in the system's order, each once."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        pass
    else:
        return [(socket.AF_INET6, (host, port, 0, 0)) if version == 6 else (socket.AF_INET, (host, port))]
    try:
        with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise TransportError(f"the name {host!r} was not resolved in time") from None
    except (OSError, UnicodeError) as error:
        raise TransportError(f"the name {host!r} cannot be resolved: {_reason(error)}") from error
    return list(dict.fromkeys((int(family), address) for family, _, _, _, address in found))


def _reason(error: BaseException) -> str:
    """The operating system's words for an error, which anyio may have wrapped."""
    inner: BaseException | None = error
    while inner is not None and not (isinstance(inner, OSError) and inner.errno):
        inner = inner.__cause__ or inner.__context__
    if isinstance(inner, socket.gaierror):  # its numbers are not those of the system
        return inner.strerror or str(inner)
    if isinstance(inner, OSError) and inner.errno:
        return os.strerror(inner.errno)
    return str(error) or type(error).__name__


def _lost(error: BaseException | None, splitter: FrameSplitter) -> TransportError:
    """Ours for the end of a stream: a close by the peer when ``error`` is None."""
    if error is None:
        return TransportError("the peer closed the connection" + " inside a frame" * splitter.is_mid_frame)
    lost = TransportError(f"the connection was lost: {_reason(error)}")
    lost.__cause__ = error
    return lost


def _set_options(raw: socket.socket) -> None:
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class _AsyncioTransport(asyncio.BufferedProtocol):
    """TCP under asyncio and uvloop."""

    def __init__(self, link: Link, max_frame_bytes: int) -> None:
        self._link: Link | None = link
        self._splitter = FrameSplitter(max_frame_bytes)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_flush_due = False
        self._closed: Waiter[None] = Waiter()

    @classmethod
    async def connect(cls, link: Link, family: int, address: Any, max_frame_bytes: int) -> _AsyncioTransport:
        loop = asyncio.get_running_loop()
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.setblocking(False)
            _set_options(raw)
            await loop.sock_connect(raw, address)
            _, protocol = await loop.create_connection(lambda: cls(link, max_frame_bytes), sock=raw)
        except BaseException:
            raw.close()
            raise
        return protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._splitter.next_buffer(sizehint)

    def buffer_updated(self, size: int) -> None:
        try:
            self._splitter.bytes_received(size)
            _deliver(self._splitter, lambda: self._link)
        except RemoteProtocolError as error:
            self._end(error)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.wake_writer()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(_lost(error, self._splitter))
        self._closed.set_result(None)

    def wake_writer(self) -> None:
        if not self._is_flush_due and not self._is_paused:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._link is None or self._is_paused or self._transport is None or self._transport.is_closing():
            return
        parts = self._link.data_to_send()
        if parts:
            self._transport.writelines(parts)
            self._link.data_sent()

    def _end(self, error: KafkaError) -> None:
        link, self._link = self._link, None
        if self._transport is not None:
            self._transport.abort()
        if link is not None:
            link.connection_lost(error)

    def close(self) -> None:
        self._link = None
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        await self._closed


def _deliver(splitter: FrameSplitter, link: Callable[[], Link | None]) -> None:
    """Hand whole frames to the link, which may go away while it takes one."""
    for frame in splitter:
        receiver = link()
        if receiver is None:
            return
        receiver.frame_received(frame)


class _StreamTransport:
    """TCP over anyio's stream, for trio."""

    def __init__(self, link: Link, stream: anyio.abc.SocketStream, max_frame_bytes: int) -> None:
        self._link: Link | None = link
        self._stream = stream
        self._splitter = FrameSplitter(max_frame_bytes)
        self._wakeup = Wakeup()
        self._scope = anyio.CancelScope()
        self._closed: Waiter[None] = Waiter()

    @classmethod
    async def connect(cls, link: Link, address: Any, max_frame_bytes: int, tasks: TaskTree) -> _StreamTransport:
        stream = await anyio.connect_tcp(address[0], address[1])
        try:
            _set_options(stream.extra(anyio.abc.SocketAttribute.raw_socket))  # noqa: S610 - not Django
            transport = cls(link, stream, max_frame_bytes)
            tasks.start(f"bytes of {address[0]}:{address[1]}", transport._run)
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return transport

    async def _run(self) -> None:
        try:
            with self._scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._read)
                    group.start_soon(self._write)
        finally:
            try:
                with anyio.CancelScope(shield=True):
                    await anyio.aclose_forcefully(self._stream)
            finally:
                self._closed.set_result(None)

    async def _read(self) -> None:
        try:
            while True:
                self._splitter.feed(await self._stream.receive(READ_SIZE))
                _deliver(self._splitter, lambda: self._link)
        except RemoteProtocolError as error:
            self._end(error)
        except anyio.EndOfStream:
            self._end(_lost(None, self._splitter))
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._end(_lost(error, self._splitter))

    async def _write(self) -> None:
        try:
            while True:
                await self._wakeup.wait()
                while self._link is not None and (parts := self._link.data_to_send()):
                    await self._stream.send(b"".join(parts))
                    if self._link is not None:
                        self._link.data_sent()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._end(_lost(error, self._splitter))

    def wake_writer(self) -> None:
        self._wakeup.set()

    def _end(self, error: KafkaError) -> None:
        link = self._link
        self.close()
        if link is not None:
            link.connection_lost(error)

    def close(self) -> None:
        self._link = None
        self._scope.cancel()

    async def wait_closed(self) -> None:
        await self._closed


class MemoryTransport:
    """No network: a test plays the peer.  ``written`` is what the link has sent, joined."""

    def __init__(self, link: Link, max_frame_bytes: int) -> None:
        self.written = bytearray()
        self.is_closed = False
        self._link = link
        self._splitter = FrameSplitter(max_frame_bytes)

    def wake_writer(self) -> None:
        if not self.is_closed and (parts := self._link.data_to_send()):
            self.written += b"".join(parts)
            self._link.data_sent()

    def peer_sends(self, data: bytes) -> None:
        try:
            self._splitter.feed(data)
            _deliver(self._splitter, lambda: None if self.is_closed else self._link)
        except RemoteProtocolError as error:
            self.peer_closes(error)

    def peer_closes(self, error: KafkaError | None = None) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._link.connection_lost(error or _lost(None, self._splitter))

    def close(self) -> None:
        self.is_closed = True

    async def wait_closed(self) -> None:
        await anyio.lowlevel.checkpoint()
