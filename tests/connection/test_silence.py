"""When a silent peer is missed, in virtual time: by what it owes now, whatever the sweep was waiting for before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel

from pykafka08.connection.connection import Connection
from pykafka08.connection.memory import MemoryTransport
from pykafka08.connection.silence import SILENCE
from pykafka08.driver import TaskTree
from pykafka08.protocol.messages.fetch import FetchRequest, FetchResponse
from pykafka08.protocol.messages.metadata import MetadataRequest
from tests.connection.answers import answer_to, metadata, read_requests
from tests.connection.peers import config
from tests.virtual_loop import VirtualLoop

ASK = MetadataRequest(topics=[])
LONG_POLL = FetchRequest(max_wait_ms=20_000, min_bytes=1)
TIMEOUT = 30.0


class Peer:
    """A broker that answers when the test says so; ``suspected`` are the times at which it was missed."""

    def __init__(self, tasks: TaskTree) -> None:
        self.suspected: list[float] = []
        self.connection = Connection(
            config(broker_version="2.8"),
            ("memory", 1),
            tasks,
            dial=self._dial,
            on_silence=lambda _: self.suspected.append(asyncio.get_running_loop().time()),
        )

    async def _dial(self, link: Any, host: str, port: int, *, max_frame_bytes: int, **_: object) -> MemoryTransport:
        self.transport = MemoryTransport(link, max_frame_bytes)
        return self.transport

    def answer(self, answer: Any, *, count: int = 1) -> None:
        """Answer the requests that came since the last call; ``count`` of them, the rest never."""
        asked = read_requests(bytes(self.transport.written))
        self.transport.written.clear()
        for each in asked[:count]:
            self.transport.peer_sends(answer_to(each, answer))


def run(test: Callable[[Peer], Coroutine[Any, Any, None]]) -> None:
    async def opened() -> None:
        async with TaskTree() as tasks:
            peer = Peer(tasks)
            await peer.connection.wait_ready()
            await test(peer)
            await peer.connection.aclose()
            tasks.check()

    loop = VirtualLoop()
    try:
        loop.run_until_complete(opened())
    finally:
        loop.close()


def test_the_first_call_after_a_pause_is_missed_as_soon_as_any() -> None:
    async def test(peer: Peer) -> None:
        call = peer.connection.submit(ASK, timeout=TIMEOUT)
        peer.answer(metadata())
        await call
        # Past the moment in which an answer to that call would have been missed: nothing is due but its deadline.
        await anyio.sleep(2 * SILENCE)
        asked = anyio.current_time()
        peer.connection.submit(ASK, timeout=TIMEOUT)
        await anyio.sleep(2.5 * SILENCE)
        assert peer.suspected == [asked + SILENCE, asked + 2 * SILENCE]

    run(test)


def test_after_a_long_poll_what_was_asked_behind_it_is_missed_in_its_own_time() -> None:
    async def test(peer: Peer) -> None:
        poll = peer.connection.submit(LONG_POLL, timeout=TIMEOUT)
        peer.connection.submit(ASK, timeout=TIMEOUT)
        await anyio.sleep(1)
        peer.answer(FetchResponse())
        await poll
        answered = anyio.current_time()
        await anyio.sleep(1.5 * SILENCE)
        assert peer.suspected == [answered + SILENCE]

    run(test)


def test_a_peer_that_answers_is_not_missed() -> None:
    async def test(peer: Peer) -> None:
        for pause in (0.1, SILENCE, 0.1, 2 * SILENCE, 40, 0.1):
            call = peer.connection.submit(ASK, timeout=TIMEOUT)
            await anyio.sleep(SILENCE * 0.9)
            peer.answer(metadata())
            await call
            await anyio.sleep(pause)
        assert peer.suspected == []

    run(test)


def test_a_peer_that_sends_a_byte_a_second_counts_as_silent() -> None:
    async def test(peer: Peer) -> None:
        peer.connection.submit(ASK, timeout=TIMEOUT)
        asked = anyio.current_time()
        frame = (1000).to_bytes(4, "big") + bytes(1000)
        for at in range(int(2.5 * SILENCE)):
            peer.transport.peer_sends(frame[at : at + 1])
            await anyio.sleep(1)
        assert peer.suspected == [asked + SILENCE, asked + 2 * SILENCE]

    run(test)


def test_only_the_first_call_after_a_pause_wakes_the_sweep() -> None:
    """A wake-up costs a turn of the loop: a request has none of its own."""

    async def test(peer: Peer) -> None:
        sweeps = []
        machine = peer.connection._machine
        poll = machine.poll
        machine.poll = lambda now: sweeps.append(now) or poll(now)  # type: ignore[func-returns-value, method-assign]
        for _ in range(100):
            call = peer.connection.submit(ASK, timeout=TIMEOUT)
            await anyio.lowlevel.checkpoint()
            peer.answer(metadata())
            await call
        assert len(sweeps) <= 2

    run(test)
