"""TCP under asyncio and uvloop.

A frame-aware BufferedProtocol receives large frames straight into their own buffer, and all frames that one turn of the
loop produced leave in one send.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from pykafka08.connection.tcp_options import set_options
from pykafka08.connection.transport import Link, deliver, lost_connection
from pykafka08.driver import Waiter
from pykafka08.errors import KafkaError, RemoteProtocolError
from pykafka08.protocol.framing import FrameSplitter

__all__ = ["AsyncioTransport"]


class AsyncioTransport(asyncio.BufferedProtocol):
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
    async def connect(cls, link: Link, family: int, address: Any, max_frame_bytes: int) -> AsyncioTransport:
        loop = asyncio.get_running_loop()
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.setblocking(False)
            set_options(raw)
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
            deliver(self._splitter, lambda: self._link)
        except RemoteProtocolError as error:
            self._end(error)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.wake_writer()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(lost_connection(error, self._splitter))
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
