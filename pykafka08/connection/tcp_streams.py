"""TCP over anyio's stream, for trio: a reader and a writer task stand over it."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.abc

from pykafka08.connection.tcp_options import set_options
from pykafka08.connection.transport import Link, deliver, lost_connection
from pykafka08.driver import TaskScope, TaskTree, Waiter, Wakeup
from pykafka08.errors import KafkaError, RemoteProtocolError
from pykafka08.protocol.framing import FrameSplitter

__all__ = ["StreamTransport"]

READ_SIZE = 65_536


class StreamTransport:
    """TCP over anyio's stream, for trio."""

    def __init__(self, link: Link, stream: anyio.abc.SocketStream, max_frame_bytes: int) -> None:
        self._link: Link | None = link
        self._stream = stream
        self._splitter = FrameSplitter(max_frame_bytes)
        self._wakeup = Wakeup()
        self._scope = TaskScope()
        self._closed: Waiter[None] = Waiter()

    @classmethod
    async def connect(cls, link: Link, address: Any, max_frame_bytes: int, tasks: TaskTree) -> StreamTransport:
        stream = await anyio.connect_tcp(address[0], address[1])
        try:
            set_options(stream.extra(anyio.abc.SocketAttribute.raw_socket))  # noqa: S610 - not Django
            transport = cls(link, stream, max_frame_bytes)
            tasks.start(f"bytes of {address[0]}:{address[1]}", transport._run)
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise
        return transport

    async def _run(self) -> None:
        try:
            with self._scope.entered():
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
                deliver(self._splitter, lambda: self._link)
        except RemoteProtocolError as error:
            self._end(error)
        except anyio.EndOfStream:
            self._end(lost_connection(None, self._splitter))
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._end(lost_connection(error, self._splitter))

    async def _write(self) -> None:
        try:
            while True:
                await self._wakeup.wait()
                while self._link is not None and (parts := self._link.data_to_send()):
                    await self._stream.send(b"".join(parts))
                    if self._link is not None:
                        self._link.data_sent()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            self._end(lost_connection(error, self._splitter))

    def wake_writer(self, *, at_once: bool = False) -> None:
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
