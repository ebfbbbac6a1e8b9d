"""What leaves a transport and what comes in: order, pieces, and who is told when; on each event loop that is served."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest

from pykafka08.connection.tcp import open_tcp
from pykafka08.connection.transport import Transport
from pykafka08.driver import TaskTree, Waiter
from pykafka08.errors import KafkaError
from pykafka08.wire import Buffer

pytestmark = [pytest.mark.anyio]


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    if request.param == "uvloop":
        return ("asyncio", {"use_uvloop": True})
    return request.param


class Owner:
    """The other side of the border: writes what it is given, keeps what comes."""

    def __init__(self) -> None:
        self.out: list[Buffer] = []
        self.takes = 0
        self.sent = 0
        self.frames: list[bytes] = []
        self.expected = 0
        self.complete: Waiter[None] = Waiter()
        self.lost: Waiter[KafkaError] = Waiter()

    def data_to_send(self) -> list[Buffer]:
        self.takes += bool(self.out)
        out, self.out = self.out, []
        return out

    def data_sent(self) -> None:
        self.sent += 1

    def frame_received(self, frame: Buffer) -> None:
        self.frames.append(bytes(frame))
        if len(self.frames) == self.expected:
            self.complete.set_result(None)

    def connection_lost(self, error: KafkaError) -> None:
        self.lost.set_result(error)


@asynccontextmanager
async def opened(owner: Owner) -> AsyncIterator[tuple[Transport, anyio.abc.SocketStream]]:
    """A transport, and the peer's end of it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        port = listening.getsockname()[1]
        async with TaskTree() as tasks:
            transport = await open_tcp(
                owner, "127.0.0.1", port, deadline=anyio.current_time() + 60, max_frame_bytes=1 << 24, tasks=tasks
            )
            await anyio.wait_readable(listening)
            accepted, _ = listening.accept()
            accepted.setblocking(False)
            async with await anyio.abc.SocketStream.from_socket(accepted) as stream:
                yield transport, stream
                transport.close()
                await transport.wait_closed()


async def read_exactly(stream: anyio.abc.SocketStream, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        found += await stream.receive(1 << 20)
    return bytes(found)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize("largest", [200, 70_000, 900_000])
async def test_pieces_of_any_size_arrive_in_order(largest: int) -> None:
    numbers = random.Random(largest)
    owner, written = Owner(), bytearray()
    async with opened(owner) as (transport, stream):
        async with anyio.create_task_group() as group:
            received: list[bytes] = []
            total = 0
            for _ in range(12):
                for _ in range(numbers.randrange(1, 4)):
                    pieces = [numbers.randbytes(numbers.randrange(largest)) for _ in range(numbers.randrange(1, 6))]
                    written += b"".join(pieces)
                    owner.out += [memoryview(piece) if len(piece) % 2 else piece for piece in pieces]
                    transport.wake_writer(at_once=numbers.random() < 0.5)
                if numbers.random() < 0.5:  # else more is written in the same turn
                    size = len(written) - total
                    total = len(written)
                    received.append(await read_exactly(stream, size))
            received.append(await read_exactly(stream, len(written) - total))
            group.cancel_scope.cancel()
    assert b"".join(received) == bytes(written)
    assert owner.sent == owner.takes


async def test_many_small_pieces_leave_whole() -> None:
    owner = Owner()
    async with opened(owner) as (transport, stream):
        pieces = [bytes((number % 256,)) * 100 for number in range(3000)]
        owner.out += pieces
        transport.wake_writer()
        assert await read_exactly(stream, 300_000) == b"".join(pieces)


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})])
async def test_a_lone_request_leaves_in_its_callers_turn_and_those_of_many_leave_together(
    anyio_backend: object,
) -> None:
    owner = Owner()
    async with opened(owner) as (transport, stream):
        owner.out.append(framed(b"alone"))
        transport.wake_writer(at_once=True)
        assert owner.takes == 1
        assert await read_exactly(stream, 9) == framed(b"alone")
        for _ in range(3):  # the answer to the first is due: these come together
            owner.out.append(framed(b"many"))
            transport.wake_writer(at_once=True)
        assert owner.takes == 1
        assert await read_exactly(stream, 24) == framed(b"many") * 3
        assert owner.takes == 2
        owner.expected = 1
        await stream.send(framed(b"answer"))
        await owner.complete
        for _ in range(2):  # where there were many in the last turn, the first waits for the others
            owner.out.append(framed(b"many"))
            transport.wake_writer(at_once=True)
        assert owner.takes == 2
        assert await read_exactly(stream, 16) == framed(b"many") * 2


async def test_frames_of_all_sizes_come_in_as_they_were_sent() -> None:
    numbers = random.Random(5)
    sizes = [1, 20, 8_000, 9_000, 70_000, 300_000, 1_048_700, 1_048_600, 1_048_650, 5_000_000, 30, 1_048_660]
    bodies = [numbers.randbytes(size) for size in sizes]
    owner = Owner()
    owner.expected = len(bodies)
    async with opened(owner) as (_, stream):
        await stream.send(b"".join(map(framed, bodies)))
        await owner.complete
        assert owner.frames == bodies
        await stream.aclose()
        assert "closed the connection" in str(await owner.lost)


async def test_a_lost_connection_is_told_once_and_what_is_written_then_goes_nowhere() -> None:
    owner = Owner()
    async with opened(owner) as (transport, stream):
        await stream.aclose()
        await owner.lost
        owner.out.append(bytes(1 << 20))
        transport.wake_writer(at_once=True)
        assert owner.takes == 0
