"""What peers may do to a connection over real sockets: each is one typed error for all callers, soon, and no memory."""

from __future__ import annotations

import re
import struct
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from pykafka08.connection.connection import Connection
from pykafka08.driver import TaskTree
from pykafka08.errors import (
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    TlsError,
    TransportError,
)
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataResponse
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.connection.answers import answer_to, framed, metadata
from tests.connection.peers import Caller, Play, config, peer

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


@asynccontextmanager
async def connected(play: Play, **settings: object) -> AsyncIterator[Connection]:
    async with peer(play) as address, TaskTree() as tasks:
        connection = Connection(config(**settings), address, tasks)
        yield connection
        await connection.aclose()
        tasks.check()


async def failure(connection: Connection, timeout: float = 20) -> KafkaError:
    """The error that two pipelined calls fail with: it must be the same one."""
    calls = [connection.submit(MetadataRequest(topics=[]), timeout=timeout) for _ in range(2)]
    errors = []
    for call in calls:
        with pytest.raises(KafkaError) as caught:
            await call
        errors.append(caught.value)
    assert errors[0] is errors[1]
    assert not connection.is_open
    assert errors[0].broker == connection.broker
    return errors[0]


def sends(data: bytes) -> Play:
    """After a good handshake: wait for one request, send ``data``, and wait for the client to go."""

    async def play(caller: Caller) -> None:
        await caller.greet()
        await caller.request()
        await caller.send(data)
        while await caller.request() is not None:
            pass

    return play


@pytest.mark.parametrize("size", [0, -1, -(2**31)])
async def test_an_impossible_frame_size_is_refused_at_once(size: int) -> None:
    async with connected(sends(struct.pack(">i", size))) as connection:
        error = await failure(connection)
        assert isinstance(error, RemoteProtocolError)
        assert str(size) in str(error)


async def test_two_gibibytes_of_zeros_are_not_kept() -> None:
    accepted = 0

    async def play(caller: Caller) -> None:
        nonlocal accepted
        await caller.greet()
        await caller.request()
        await caller.send(struct.pack(">i", 2**31 - 1))
        zeros = bytes(MIB)
        while accepted < 600:
            await caller.send(zeros)
            accepted += 1

    async with connected(play) as connection:
        await connection.wait_ready()
        tracemalloc.start()
        try:
            await too_large(connection)
            assert tracemalloc.get_traced_memory()[1] < 5 * MIB
        finally:
            tracemalloc.stop()
    assert accepted < 100, "the sender was not stopped"


@pytest.mark.parametrize(("size", "limit"), [(2001, 2000), (100 * MIB + 1, 100 * MIB), (2**31 - 1, 100 * MIB)])
async def test_an_answer_above_the_limit_names_the_setting(size: int, limit: int) -> None:
    async with connected(sends(struct.pack(">i", size)), receive_message_max_bytes=limit) as connection:
        error = await too_large(connection)
        assert f"{size} bytes" in str(error)
        assert f"receive_message_max_bytes={limit}" in str(error)
        assert (error.broker, error.api) == (connection.broker, "Metadata")


async def too_large(connection: Connection) -> ResponseTooLargeError:
    """The error of the call with the large answer; the call after it may be sent again elsewhere."""
    calls = [connection.submit(MetadataRequest(topics=[]), timeout=20) for _ in range(2)]
    with pytest.raises(ResponseTooLargeError) as caught:
        await calls[0]
    with pytest.raises(TransportError, match="another request's answer"):
        await calls[1]
    return caught.value


@pytest.mark.parametrize(
    "data",
    [
        framed(b"\0\0"),
        framed(b"\0\0\0\x02"),
        framed(b"\0\0\x30\x39" + bytes(20)),
        framed(b"\xff\xff\xff\xff" + bytes(20)),
        framed(b"\0\0\0\x02" + b"\xff" * 40),
        framed(b"\0\0\0\x02\0" + bytes(4) + b"\xff\xff\xff\xff\x0f"),
    ],
    ids=["2 bytes", "no body", "unknown id", "negative id", "garbage", "huge array"],
)
async def test_a_wrong_frame_poisons_the_connection(data: bytes) -> None:
    async with connected(sends(data)) as connection:
        assert isinstance(await failure(connection), RemoteProtocolError)


async def test_answers_nobody_asked_for_close_the_connection() -> None:
    async def play(caller: Caller) -> None:
        await caller.greet(glued_on=framed(b"\0\0\0\x07hello"))
        await caller.frame()

    async with connected(play) as connection:
        await connection.wait_ready()
        assert "nobody asked for" in str(await failure(connection))


async def test_an_answer_sent_twice_hurts_only_what_comes_after() -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        asked = await caller.request()
        assert asked is not None
        await caller.send(2 * answer_to(asked, metadata()))
        await caller.frame()

    async with connected(play) as connection:
        assert await connection.submit(MetadataRequest(topics=[]), timeout=20) == metadata()
        assert isinstance(await failure(connection), RemoteProtocolError)


async def test_a_close_at_any_byte_of_the_answer_fails_the_calls() -> None:
    """Every cut of the stream: before the size, inside it, inside the id, inside the body."""
    whole = 0

    async def play(caller: Caller) -> None:
        nonlocal whole
        await caller.greet()
        asked = await caller.request()
        if asked is not None:
            frame = answer_to(asked, metadata([(1, "h", 9092)]))
            whole = len(frame)
            await caller.send(frame[: caller.number - 1])

    async with peer(play) as address, TaskTree() as tasks:
        cut = 0
        while not whole or cut < whole:
            connection = Connection(config(), address, tasks)
            error = await failure(connection)
            assert type(error) is TransportError
            assert ("inside a frame" in str(error)) is (cut > 0)
            cut += 1
    assert cut == whole > 20


async def test_a_close_at_any_byte_of_the_handshake_is_an_error_of_ours() -> None:
    async def play(caller: Caller) -> None:
        asked = await caller.request()
        if asked is not None and asked.name == "Metadata":
            await caller.send(answer_to(asked, metadata())[: caller.number // 2])

    async with peer(play) as address, TaskTree() as tasks:
        for _ in range(12):
            connection = Connection(config(), address, tasks)
            error = await failure(connection)
            assert "not a Kafka listener?" in str(error)
            assert isinstance(error, TransportError)


@pytest.mark.parametrize(
    ("data", "meaning"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
    ],
)
async def test_other_protocols_are_named(data: bytes, meaning: str) -> None:
    async def play(caller: Caller) -> None:
        await caller.stream.receive()
        await caller.send(data)
        await caller.frame()

    async with connected(play) as connection:
        error = await failure(connection)
        assert isinstance(error, TlsError if meaning == "TLS" else RemoteProtocolError)
        assert meaning in str(error)


async def stay_silent(caller: Caller) -> None:
    while await caller.frame() is not None:
        pass


async def test_silence_in_the_handshake_ends_with_the_set_up_time() -> None:
    async with connected(stay_silent, socket_connection_setup_timeout_ms=100) as connection:
        error = await failure(connection)
        assert isinstance(error, TransportError)
        assert re.search(
            r"accepted the connection but did not answer within 0\.\d+ s: not a Kafka listener", str(error)
        )


async def test_a_call_that_ends_in_the_handshake_says_what_the_peer_does() -> None:
    async with connected(stay_silent) as connection:
        with pytest.raises(RequestTimeoutError, match="has not answered yet: not a Kafka listener"):
            await connection.submit(MetadataRequest(topics=[]), timeout=3)


async def test_silence_after_the_handshake_ends_the_wait_then_the_connection() -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        await stay_silent(caller)

    async with connected(play, request_timeout_ms=1000) as connection:
        await connection.wait_ready()
        patient = connection.submit(MetadataRequest(topics=[]), timeout=1)
        with pytest.raises(RequestTimeoutError, match="no answer to Metadata"):
            await connection.submit(MetadataRequest(topics=[]), timeout=0.01)
        assert connection.is_open
        with pytest.raises(KafkaError, match="no answer to Metadata"):
            await patient
        assert "the connection is closed" in str(await failure(connection))


def large_produce(acks: int, megabytes: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(megabytes * MIB))
    return ProduceRequest(acks=acks, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])


async def test_a_caller_cancelled_in_mid_write_leaves_the_frame_whole() -> None:
    frames: list[str] = []
    may_read = anyio.Event()

    async def play(caller: Caller) -> None:
        await caller.greet()
        await may_read.wait()
        while (asked := await caller.request()) is not None:
            frames.append(asked.name)
            if asked.name == "Metadata":
                await caller.send(answer_to(asked, metadata()))
        assert caller.left == 0

    async with connected(play) as connection:
        await connection.wait_ready()
        with anyio.move_on_after(0.01):
            await connection.submit(large_produce(0, 8), version=3, timeout=20)
            await connection.submit(large_produce(0, 8), version=3, timeout=20)
        silent = connection.submit(large_produce(0, 1), version=3, timeout=20)
        asked = connection.submit(MetadataRequest(topics=[]), version=1, timeout=20)
        may_read.set()
        await silent
        assert isinstance(await asked, MetadataResponse)
    assert frames[-2:] == ["Produce", "Metadata"]
    assert set(frames[:-2]) == {"Produce"}


async def test_writes_that_the_peer_does_not_take_are_bounded_by_their_deadline() -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        await anyio.sleep_forever()

    async with connected(play) as connection:
        await connection.wait_ready()
        with pytest.raises(KafkaError, match="takes no more bytes"):
            await write_one_by_one(connection)


async def write_one_by_one(connection: Connection) -> None:
    """The first may fit into buffers on the way; with the second at the latest the writer stands still."""
    for _ in range(2):
        await connection.submit(large_produce(0, 16), version=3, timeout=0.3)
