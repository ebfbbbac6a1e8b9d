"""TCP and TLS under asyncio and uvloop.

A frame-aware BufferedProtocol receives large frames straight into their own buffer.  A lone request is written in its
caller's turn; where callers are many, all frames that one turn of the loop produced leave in one send.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from pykafka08.connection.tcp_options import set_options
from pykafka08.connection.transport import Link, Security, lost_connection
from pykafka08.driver import Waiter
from pykafka08.errors import KafkaError
from pykafka08.protocol.framing import FrameSplitter
from pykafka08.wire import Buffer

__all__ = ["AsyncioTransport", "connected"]

JOINED_BYTES = 64 * 1024
"""Less than that is copied into one piece, which costs less than telling the system of many."""

NEVER = 365 * 86_400.0
"""Seconds for which asyncio waits for a TLS handshake: the caller's own deadline ends it."""

MOST_PARTS = 512
"""Pieces of one sendmsg; systems take 1024, or 16 by the letter of POSIX."""


async def connected(family: int, address: Any) -> socket.socket:
    """A socket that is connected to ``address``."""
    raw = socket.socket(family, socket.SOCK_STREAM)
    try:
        raw.setblocking(False)
        set_options(raw)
        await asyncio.get_running_loop().sock_connect(raw, address)
    except BaseException:
        raw.close()
        raise
    return raw


class AsyncioTransport(asyncio.BufferedProtocol):
    """TCP or TLS under asyncio and uvloop."""

    def __init__(self, link: Link, raw: socket.socket, max_frame_bytes: int, *, uses_tls: bool = False) -> None:
        self._link: Link | None = link
        self._splitter = FrameSplitter(max_frame_bytes)
        self._loop = asyncio.get_running_loop()
        # asyncio's own loop joins what it is given (until 3.12); uvloop writes in place by itself, and may have bytes
        # yet to write of which it does not tell.
        # Under TLS the bytes on the socket are not ours to write.
        is_ours = isinstance(self._loop, asyncio.SelectorEventLoop) and hasattr(raw, "sendmsg") and not uses_tls
        self._socket = raw if is_ours else None
        self._uses_tls = uses_tls
        self._transport: asyncio.Transport | None = None
        self._is_paused = False
        self._is_flush_due = False
        self._is_shared = False
        self._owes_answer = False
        self._closed: Waiter[None] = Waiter()

    @classmethod
    async def over(
        cls, link: Link, raw: socket.socket, max_frame_bytes: int, security: Security | None
    ) -> AsyncioTransport:
        """Take over a connected socket, and close it if that fails."""
        loop = asyncio.get_running_loop()
        made: list[AsyncioTransport] = []

        def protocol() -> AsyncioTransport:
            made.append(cls(link, raw, max_frame_bytes, uses_tls=security is not None))
            return made[0]

        try:
            if security is None:
                await loop.create_connection(protocol, sock=raw)
            else:
                await loop.create_connection(
                    protocol, sock=raw, ssl=security.context, server_hostname=security.host, ssl_handshake_timeout=NEVER
                )
        except BaseException:
            raw.close()
            raise
        return made[0]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._splitter.next_buffer(sizehint)

    def buffer_updated(self, size: int) -> None:
        self._owes_answer = False
        try:
            self._splitter.bytes_received(size)
            for frame in self._splitter:
                if self._link is None:
                    return
                self._link.frame_received(frame)
        except KafkaError as error:  # what the splitter says
            self._end(error)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.wake_writer()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(lost_connection(error, self._splitter))
        self._closed.set_result(None)

    def wake_writer(self, *, at_once: bool = False) -> None:
        if self._is_flush_due:
            self._is_shared = True
        elif at_once and not self._is_shared and not self._owes_answer:
            self._flush()
        elif not self._is_paused:
            # The peer is at work already, or others have written in the turns before: wait for who else writes in this.
            self._is_flush_due = True
            self._is_shared = False
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        transport = self._transport
        if self._link is None or self._is_paused or transport is None or transport.is_closing():
            return
        parts = self._link.data_to_send()
        if not parts:
            return
        self._owes_answer = True
        if self._uses_tls or len(parts) > MOST_PARTS or sum(map(len, parts)) < JOINED_BYTES:
            # Under TLS each part would be a TLS record of its own, and its bytes are copied anyway.
            transport.write(b"".join(parts))
        else:
            self._send_in_place(transport, parts)
        self._link.data_sent()

    def _send_in_place(self, transport: asyncio.Transport, parts: list[Buffer]) -> None:
        """Hand large parts to the socket where they are; what it does not take goes through the event loop."""
        if self._socket is None:
            transport.writelines(parts)
            return
        sent = 0
        if not transport.get_write_buffer_size():
            try:
                sent = self._socket.sendmsg(parts)
            except OSError:  # it takes nothing now, or is broken: the event loop finds out which
                sent = 0
        for part in parts:
            if sent >= len(part):
                sent -= len(part)
            else:
                transport.write(memoryview(part)[sent:] if sent else part)
                sent = 0

    def _end(self, error: KafkaError) -> None:
        link, self._link = self._link, None
        if self._transport is not None:
            self._transport.abort()
        if link is not None:
            link.connection_lost(error)

    def allow_frames(self, max_frame_bytes: int) -> None:
        self._splitter.max_frame_bytes = max_frame_bytes

    def close(self) -> None:
        self._link = None
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        await self._closed
