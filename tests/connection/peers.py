"""A scripted TCP server on loopback: it plays a broker that a test wants to be strange."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from pykafka08.config import ClientConfig
from tests.connection.answers import Address, Asked, read_request, usual_answer

LOOPBACK = "127.0.0.1"


class Caller:
    """One accepted connection, as the server sees it."""

    def __init__(self, stream: anyio.abc.SocketStream, address: Address, number: int) -> None:
        self.stream = stream
        self.address = address
        self.number = number
        self._read = bytearray()

    async def frame(self) -> bytes | None:
        """The next whole frame; None at the end of the stream, which must not cut one off."""
        while not (len(self._read) >= 4 and len(self._read) >= 4 + struct.unpack_from(">i", self._read)[0]):
            try:
                self._read += await self.stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return None
        (size,) = struct.unpack_from(">i", self._read)
        frame = bytes(self._read[4 : 4 + size])
        del self._read[: 4 + size]
        return frame

    @property
    def left(self) -> int:
        """Bytes received that are not a whole frame."""
        return len(self._read)

    async def request(self) -> Asked | None:
        frame = await self.frame()
        return None if frame is None else read_request(frame)

    async def send(self, data: bytes) -> None:
        await self.stream.send(data)

    async def greet(self, release: str = "4.3", *, glued_on: bytes = b"") -> bool:
        """Play the handshake to its end, whose last bytes are ``glued_on``; False if this release closes instead."""
        while (asked := await self.request()) is not None:
            answer = usual_answer(asked, release, self.address)
            if answer is None:
                return False
            is_last = asked.name in ("ApiVersions", "ListGroups")
            await self.send(answer + glued_on if is_last else answer)
            if is_last:
                return True
        return False

    async def serve(self, release: str = "4.3") -> None:
        """Answer as usual for as long as the client stays."""
        while (asked := await self.request()) is not None:
            answer = usual_answer(asked, release, self.address)
            if answer is None:
                return
            await self.send(answer)


Play = Callable[[Caller], Awaitable[None]]


@asynccontextmanager
async def peer(play: Play) -> AsyncIterator[Address]:
    """A server that runs ``play`` for each connection and closes it at the end of the play."""
    count = 0
    async with await anyio.create_tcp_listener(local_host=LOOPBACK) as listener:
        address = (LOOPBACK, listener.extra(anyio.abc.SocketAttribute.local_port))

        async def accept(stream: anyio.abc.SocketStream) -> None:
            nonlocal count
            count += 1
            async with stream:
                try:
                    await play(Caller(stream, address, count))
                except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                    return  # the client was faster

        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, accept)
            yield address
            group.cancel_scope.cancel()


@asynccontextmanager
async def refusing_address() -> AsyncIterator[Address]:
    """An address that refuses connections: bound, so that nobody else is given it meanwhile, and not listening."""
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))
        yield bound.getsockname()


def config(*addresses: Address, **settings: object) -> ClientConfig:
    return ClientConfig(bootstrap_servers=addresses or ((LOOPBACK, 1),), **settings)  # type: ignore[arg-type]
