"""TCP or TLS over anyio's stream, for trio: a reader and a writer task stand over it."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream

from pykafka08.connection.tcp_options import set_options
from pykafka08.connection.transport import Link, Security, deliver, lost_connection
from pykafka08.driver import TaskScope, TaskTree, Waiter, Wakeup
from pykafka08.errors import KafkaError
from pykafka08.protocol.framing import FrameSplitter

__all__ = ["StreamTransport", "connected"]

READ_SIZE = 65_536


async def connected(address: Any) -> anyio.abc.SocketStream:
    """A stream that is connected to ``address``."""
    return await anyio.connect_tcp(address[0], address[1])


class StreamTransport:
    """TCP or TLS over anyio's stream, for trio."""

    def __init__(self, link: Link, stream: anyio.abc.ByteStream, max_frame_bytes: int) -> None:
        self._link: Link | None = link
        self._stream = stream
        self._splitter = FrameSplitter(max_frame_bytes)
        self._wakeup = Wakeup()
        self._scope = TaskScope()
        self._closed: Waiter[None] = Waiter()

    @classmethod
    async def over(
        cls,
        link: Link,
        connected: anyio.abc.SocketStream,
        max_frame_bytes: int,
        tasks: TaskTree,
        security: Security | None,
    ) -> StreamTransport:
        """Take over a connected stream, and close it if that fails."""
        stream: anyio.abc.ByteStream = connected
        try:
            set_options(connected.extra(anyio.abc.SocketAttribute.raw_socket))  # noqa: S610 - not Django
            if security is not None:
                # Kafka's brokers do not say good-bye in TLS; frames have sizes, so that none can be cut off unseen.
                stream = await TLSStream.wrap(
                    connected, hostname=security.host, ssl_context=security.context, standard_compatible=False
                )
            transport = cls(link, stream, max_frame_bytes)
            tasks.start("bytes of a connection", transport._run)
        except BaseException:
            await anyio.aclose_forcefully(connected)
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
        except KafkaError as error:  # what the splitter says
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

    def allow_frames(self, max_frame_bytes: int) -> None:
        self._splitter.max_frame_bytes = max_frame_bytes

    def close(self) -> None:
        self._link = None
        self._scope.cancel()

    async def wait_closed(self) -> None:
        await self._closed
