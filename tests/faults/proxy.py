"""A TCP proxy in this process that knows Kafka's frames: for faults between a client and real brokers.

Clients reach brokers at the addresses that brokers advertise; :func:`redirected` sends a client's connections to the
proxies instead, where it resolves names, so that brokers need no setting.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from pykafka08.connection import tcp

__all__ = ["Faults", "Proxy", "proxied"]

REQUEST, ANSWER = "request", "answer"
SLICED_BYTES = 200
GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass
class Faults:
    """What the proxies of one test do to frames."""

    chance: random.Random = field(default_factory=lambda: random.Random(1))
    cut: tuple[str, int | None, int] | None = None
    """Direction, API key (None: any), and the byte of the frame, its length included, after which to close; once."""
    delay_s: float = 0.0
    """Each frame is held for so long, in both directions."""
    slice_bytes: int = 0
    """A frame's beginning is passed on in pieces of so many bytes; 0 for whole."""
    swallows: frozenset[str] = frozenset()
    """Directions in which nothing is passed on any more, while connections stay open: a black hole."""
    life_s: tuple[float, float] | None = None
    """How long a new connection lives."""
    cuts: int = 0
    """How many connections were cut at a byte."""

    def take_cut(self, direction: str, key: int | None) -> int | None:
        """The byte to cut this frame at, if it is the one."""
        if self.cut is None or self.cut[0] != direction or self.cut[1] not in (None, key):
            return None
        at, self.cut = self.cut[2], None
        self.cuts += 1
        return at


class Proxy:
    """Stands before one broker."""

    def __init__(self, faults: Faults, host: str, port: int) -> None:
        self._faults = faults
        self._target = (host, port)
        self.port = 0

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
            task_status.started()
            await listener.serve(self._connected)

    async def _connected(self, client: anyio.abc.SocketStream) -> None:
        keys: dict[int, int] = {}
        try:
            async with client, await anyio.connect_tcp(*self._target) as broker, anyio.create_task_group() as tasks:
                tasks.start_soon(self._pass_on, REQUEST, client, broker, keys, tasks.cancel_scope)
                tasks.start_soon(self._pass_on, ANSWER, broker, client, keys, tasks.cancel_scope)
                if self._faults.life_s is not None:
                    await anyio.sleep(self._faults.chance.uniform(*self._faults.life_s))
                    tasks.cancel_scope.cancel()
        except OSError:
            return  # the broker is down: the client's connection ends

    async def _pass_on(
        self,
        direction: str,
        source: anyio.abc.SocketStream,
        target: anyio.abc.SocketStream,
        keys: dict[int, int],
        scope: anyio.CancelScope,
    ) -> None:
        faults, received = self._faults, BufferedByteReceiveStream(source)
        try:
            while True:
                size = await received.receive_exactly(4)
                frame = size + await received.receive_exactly(int.from_bytes(size, "big"))
                key = self._key_of(direction, frame, keys)
                if faults.delay_s:
                    await anyio.sleep(faults.delay_s)
                if direction in faults.swallows:
                    continue
                at = faults.take_cut(direction, key)
                await self._send(target, frame if at is None else frame[:at])
                if at is not None:
                    break
        except GONE:
            pass
        scope.cancel()

    async def _send(self, target: anyio.abc.SocketStream, data: bytes) -> None:
        step = self._faults.slice_bytes
        beginning = min(len(data), SLICED_BYTES) if step else 0
        for first in range(0, beginning, step or 1):
            await target.send(data[first : min(first + step, beginning)])
        await target.send(data[beginning:])

    @staticmethod
    def _key_of(direction: str, frame: bytes, keys: dict[int, int]) -> int | None:
        """Which API: the request says so, the answer has its correlation id."""
        if direction == ANSWER:
            return keys.pop(int.from_bytes(frame[4:8], "big"), None)
        keys[int.from_bytes(frame[8:12], "big")] = int.from_bytes(frame[4:6], "big")
        return keys[int.from_bytes(frame[8:12], "big")]


@asynccontextmanager
async def proxied(addresses: Iterable[tuple[str, int]]) -> AsyncIterator[Faults]:
    """Proxies before these brokers, (host, port) each; every client of this process goes through them."""
    faults = Faults()
    ports: dict[int, int] = {}
    async with anyio.create_task_group() as tasks:
        for host, port in addresses:
            proxy = Proxy(faults, host, port)
            await tasks.start(proxy.serve)
            ports[port] = proxy.port
        with redirected(ports):
            yield faults
        tasks.cancel_scope.cancel()


@contextmanager
def redirected(ports: dict[int, int]) -> Iterator[None]:
    """Connections to one port of this machine go to another one."""
    resolve = tcp.resolve

    async def resolve_elsewhere(host: str, port: int, deadline: float) -> Any:
        return await resolve("127.0.0.1" if port in ports else host, ports.get(port, port), deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tcp, "resolve", resolve_elsewhere)
        yield
