"""A connection's life over real sockets: dialling, the probe of each release, pipelining, and its end."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pykafka08.connection import tcp
from pykafka08.connection.connection import Connection
from pykafka08.connection.memory import MemoryTransport
from pykafka08.driver import TaskTree
from pykafka08.errors import ClosedError, RequestTimeoutError, TransportError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.wire import Buffer
from tests.connection.answers import answer_to, metadata, read_requests, topic, usual_answer
from tests.connection.peers import LOOPBACK, Caller, config, peer, refusing_address

pytestmark = pytest.mark.anyio

ASK = MetadataRequest(topics=[])


@asynccontextmanager
async def tree() -> AsyncIterator[TaskTree]:
    async with TaskTree() as tasks:
        yield tasks
        tasks.check()


@pytest.mark.parametrize(
    ("release", "guess", "dials"),
    [("0.8.0", "0.8", 2), ("0.8.2", "0.8", 2), ("0.9.0", "0.9.0", 1), ("0.10.0", "0.10.0", 1), ("4.3", "4.3", 1)],
)
async def test_the_probe_tells_the_release(release: str, guess: str, dials: int) -> None:
    numbers = []

    async def play(caller: Caller) -> None:
        numbers.append(caller.number)
        await caller.serve(release)

    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(), address, tasks)
        held = connection.submit(MetadataRequest(topics=[]), timeout=20)
        versions = await connection.wait_ready()
        assert versions.release_guess == guess
        assert connection.versions is versions
        assert (await held).brokers[0].port == address[1]
        await connection.aclose()
    assert len(numbers) == dials


async def test_a_hint_skips_the_probe() -> None:
    names = []

    async def play(caller: Caller) -> None:
        while (asked := await caller.request()) is not None:
            names.append((asked.name, asked.header.api_version))
            await caller.send(answer_to(asked, metadata()))

    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(broker_version="0.8.2.2"), address, tasks)
        await connection.submit(MetadataRequest(topics=[]), timeout=20)
        await connection.aclose()
    assert names == [("Metadata", 0)]


async def test_many_calls_of_one_turn_leave_in_one_piece_and_come_back_in_order() -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        number = 0
        while (asked := await caller.request()) is not None:
            await caller.send(answer_to(asked, metadata([(number, "h", 1)])))
            number += 1

    pieces = []

    class Watched(Connection):
        def data_to_send(self) -> list[Buffer]:
            data = super().data_to_send()
            if data:
                pieces.append(len(read_requests(b"".join(data))))
            return data

    async with peer(play) as address, tree() as tasks:
        connection = Watched(config(), address, tasks)
        await connection.wait_ready()
        pieces.clear()
        calls = [connection.submit(ASK, timeout=20) for _ in range(300)]
        assert [(await call).brokers[0].node_id for call in calls] == list(range(300))
        await connection.aclose()
    assert pieces == [300]


async def test_answers_may_come_in_any_pieces() -> None:
    """Byte by byte, and far larger than any buffer on the way."""
    large = metadata([(1, "h", 1)], [topic("t" * 100 + str(number), [1] * 50) for number in range(200)])

    async def play(caller: Caller) -> None:
        await caller.greet()
        asked = await caller.request()
        assert asked is not None
        for byte in answer_to(asked, metadata()):
            await caller.send(bytes((byte,)))
        asked, after = await caller.request(), await caller.request()
        assert asked is not None
        assert after is not None
        await caller.send(answer_to(asked, large) + answer_to(after, metadata()))
        await caller.frame()

    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(), address, tasks)
        assert await connection.submit(ASK, timeout=20) == metadata()
        calls = connection.submit(ASK, timeout=20), connection.submit(ASK, timeout=20)
        assert await calls[0] == large
        assert await calls[1] == metadata()
        await connection.aclose()


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_under_uvloop(anyio_backend: Any) -> None:
    async with peer(lambda caller: caller.serve()) as address, tree() as tasks:
        connection = Connection(config(), address, tasks)
        calls = [connection.submit(ASK, timeout=20) for _ in range(20)]
        for call in calls:
            assert (await call).brokers
        await connection.aclose()


# --- dialling ---


async def test_a_refused_connection_names_address_and_reason() -> None:
    async with refusing_address() as address, tree() as tasks:
        connection = Connection(config(), address, tasks)
        with pytest.raises(TransportError, match=r"127\.0\.0\.1:\d+ \(Connection refused\)") as caught:
            await connection.submit(ASK, timeout=20)
        assert caught.value.broker == f"127.0.0.1:{address[1]}"
        with pytest.raises(TransportError):
            await connection.wait_ready()


async def test_a_name_that_is_not_found_is_said() -> None:
    async with tree() as tasks:
        connection = Connection(config(), ("no-such-host.invalid", 9092), tasks)
        with pytest.raises(TransportError, match=r"the name 'no-such-host\.invalid' cannot be resolved"):
            await connection.submit(ASK, timeout=20)


def resolve_to(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    async def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in hosts]

    monkeypatch.setattr(tcp.anyio, "getaddrinfo", getaddrinfo)


async def test_all_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.3", LOOPBACK)
    async with peer(lambda caller: caller.serve()) as address, tree() as tasks:
        connection = Connection(config(), ("kafka.invalid", address[1]), tasks)
        assert await connection.submit(ASK, timeout=20)
        await connection.aclose()


async def test_every_address_that_failed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.2")
    async with refusing_address() as (_, port), tree() as tasks:
        connection = Connection(config(), ("kafka.invalid", port), tasks)
        with pytest.raises(TransportError) as caught:
            await connection.wait_ready()
        assert "127.0.0.2: Connection refused; 127.0.0.3: Connection refused)" in str(caught.value)


async def test_an_address_that_never_answers_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []

    def silent_for(host: str, connect: Any) -> Any:
        async def maybe(*args: Any) -> Any:
            if any(isinstance(each, tuple) and each[0] == host for each in args):
                shares.append(anyio.current_effective_deadline() - anyio.current_time())
                raise TimeoutError  # as when that time has passed
            return await connect(*args)

        return maybe

    resolve_to(monkeypatch, "192.0.2.1", LOOPBACK)
    for module in (tcp.tcp_asyncio, tcp.tcp_streams):
        monkeypatch.setattr(module, "connected", silent_for("192.0.2.1", module.connected))
    async with peer(lambda caller: caller.serve()) as address, tree() as tasks:
        connection = Connection(config(socket_connection_setup_timeout_ms=60_000), ("h.invalid", address[1]), tasks)
        assert await connection.submit(ASK, timeout=60)
        await connection.aclose()
    assert len(shares) == 1
    assert shares[0] <= 30, "more than half of the time was given to the first of two"


async def test_a_connection_that_cannot_be_made_in_time_fails() -> None:
    async def hang(*args: Any, **options: Any) -> Any:
        await anyio.sleep_forever()

    async with tree() as tasks:
        connection = Connection(config(socket_connection_setup_timeout_ms=50), ("h", 1), tasks, dial=hang)
        with pytest.raises(TransportError, match="could not be reached in time"):
            await connection.submit(ASK, timeout=20)


async def test_a_delayed_dial_holds_calls_within_their_deadlines() -> None:
    callers = []

    async def play(caller: Caller) -> None:
        callers.append(caller)
        await caller.serve()

    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(), address, tasks, dial_at=anyio.current_time() + 3600)
        with pytest.raises(RequestTimeoutError, match="still in state connecting"):
            await connection.submit(ASK, timeout=0.05)
        assert connection.is_open
        await connection.aclose()
    assert not callers


# --- the end ---


async def test_closing_while_dialling_or_waiting_to_dial() -> None:
    async def hang(*args: Any, **options: Any) -> Any:
        await anyio.sleep_forever()

    async with tree() as tasks:
        for options in ({"dial": hang}, {"dial_at": anyio.current_time() + 3600}):
            connection = Connection(config(), ("h", 1), tasks, **options)
            call = connection.submit(ASK, timeout=3600)
            await connection.aclose()
            with pytest.raises(ClosedError):
                await call
            with pytest.raises(ClosedError):
                await connection.wait_ready()


async def test_closing_takes_the_socket_with_it_and_the_callbacks_are_called_once() -> None:
    gone = anyio.Event()
    told: list[str] = []

    async def play(caller: Caller) -> None:
        await caller.greet()
        while await caller.frame() is not None:
            pass
        gone.set()

    async with peer(play) as address, tree() as tasks:
        connection = Connection(
            config(),
            address,
            tasks,
            on_ready=lambda ready: told.append("ready"),
            on_end=lambda ended: told.append("end"),
        )
        await connection.wait_ready()
        call = connection.submit(ASK, timeout=20)
        await connection.aclose()
        await connection.aclose()
        with pytest.raises(ClosedError):
            await call
        await gone.wait()
    assert told == ["ready", "end"]


async def test_leaving_the_task_tree_closes_everything() -> None:
    gone = anyio.Event()

    async def play(caller: Caller) -> None:
        await caller.greet()
        while await caller.frame() is not None:
            pass
        gone.set()

    async with peer(play) as address:
        async with TaskTree() as tasks:
            connection = Connection(config(), address, tasks)
            await connection.wait_ready()
            call = connection.submit(ASK, timeout=20)
        with pytest.raises(ClosedError):
            await call
        await gone.wait()


async def test_an_unused_connection_is_closed() -> None:
    gone = anyio.Event()

    async def play(caller: Caller) -> None:
        await caller.greet()
        await caller.frame()
        gone.set()

    ended: list[Connection] = []
    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(connections_max_idle_ms=20), address, tasks, on_end=ended.append)
        await gone.wait()
        assert connection.was_idle
        assert not connection.is_open
    assert ended == [connection]


async def test_known_versions_of_a_sibling_are_used() -> None:
    names = []

    async def play(caller: Caller) -> None:
        while (asked := await caller.request()) is not None:
            names.append(asked.name)
            answer = usual_answer(asked, "2.8", caller.address)
            assert answer is not None
            await caller.send(answer)

    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(), address, tasks, known=BrokerVersions.of_release("2.8"))
        await connection.submit(ASK, timeout=20)
        await connection.aclose()
    assert names == ["Metadata"]


# --- memory instead of a network ---


async def test_a_peer_that_closes_before_the_dial_returns_is_dialled_again_as_after_it() -> None:
    """Some event loops tell the end of a stream before they tell that it is open."""
    dials = 0

    async def dial(link: Any, host: str, port: int, *, deadline: float, max_frame_bytes: int, tasks: TaskTree) -> Any:
        nonlocal dials
        dials += 1
        transport = MemoryTransport(link, max_frame_bytes)
        transport.peer_closes()
        return transport

    async with tree() as tasks:
        connection = Connection(config(), ("memory", 1), tasks, dial=dial)
        with pytest.raises(TransportError, match="not a Kafka listener"):
            await connection.submit(ASK, timeout=20)
    assert dials == 2


async def test_a_dial_that_returns_after_the_close_changes_nothing() -> None:
    machine_closed = anyio.Event()

    async def dial(link: Any, host: str, port: int, *, deadline: float, max_frame_bytes: int, tasks: TaskTree) -> Any:
        transport = MemoryTransport(link, max_frame_bytes)
        link.close()
        machine_closed.set()
        return transport

    async with tree() as tasks:
        connection = Connection(config(), ("memory", 1), tasks, dial=dial)
        await machine_closed.wait()
        await connection.aclose()
        with pytest.raises(ClosedError):
            await connection.submit(ASK, timeout=20)


async def test_a_connection_over_memory() -> None:
    transports: list[MemoryTransport] = []

    async def dial(link: Any, host: str, port: int, *, deadline: float, max_frame_bytes: int, tasks: TaskTree) -> Any:
        transports.append(MemoryTransport(link, max_frame_bytes))
        return transports[0]

    async with tree() as tasks:
        connection = Connection(config(broker_version="2.8"), ("memory", 1), tasks, dial=dial)
        call = connection.submit(ASK, timeout=20)
        await connection.wait_ready()
        (asked,) = read_requests(bytes(transports[0].written))
        transports[0].peer_sends(answer_to(asked, metadata()))
        assert await call == metadata()
        call = connection.submit(ASK, timeout=20)
        transports[0].peer_closes()
        with pytest.raises(TransportError, match="the peer closed the connection"):
            await call
    assert transports[0].is_closed


async def test_a_throttled_connection_is_quiet_for_as_long_as_it_was_told() -> None:
    arrived = []

    async def play(caller: Caller) -> None:
        await caller.greet()
        while (asked := await caller.request()) is not None:
            arrived.append(anyio.current_time())
            answer = metadata()
            answer.throttle_time_ms = 200 if len(arrived) == 1 else 0
            await caller.send(answer_to(asked, answer))

    async with peer(play) as address, tree() as tasks:
        connection = Connection(config(), address, tasks)
        assert (await connection.submit(ASK, timeout=20)).throttle_time_ms == 200
        told = anyio.current_time()
        with anyio.fail_after(20):
            for call in [connection.submit(ASK, timeout=60) for _ in range(3)]:
                assert (await call).throttle_time_ms == 0
        await connection.aclose()
    assert len(arrived) == 4
    assert arrived[1] >= told + 0.19
