"""Bytes and small requests: CPU of this client's connection beside asyncio's streams and aiokafka's connection.

    python benchmarks/transport.py [--rounds N] [--uvloop] [--package DIRECTORY]

Prints medians over the rounds, and the medians of the ratios within a round.  Each figure is the CPU time of this
process alone; the peer that answers is a process of its own, and answers from memory.  ``--package`` measures the
pykafka08 of another directory (an older checkout, a compiled tree).

The bare socket shows what of 1 MiB answers is the kernel's copy, which all pay: where the memory of asyncio's streams
is warm, it alone is about a third of what they cost.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

PORT = 0
LARGE = 1 << 20
LARGE_ANSWERS = 400
REQUESTS = 20_000
CALLERS = (1, 8, 64)
HEARTBEAT, FETCH, API_VERSIONS = 12, 1, 18


# --- the peer, in a process of its own ------------------------------------------------------------------------------


def answer_of(frame: bytes) -> list[bytes]:
    """Heartbeat v1 and Fetch v4 from memory; what a handshake asks in the library's own words."""
    api, version, correlation_id = struct.unpack_from(">hhi", frame)
    if api == HEARTBEAT:
        return [struct.pack(">ii", 10 if version else 6, correlation_id), bytes(6 if version else 2)]
    if api == FETCH:
        body = struct.pack(">ii", 0, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">i", 1)
        body += struct.pack(">ihqqi", 0, 0, 0, 0, -1) + struct.pack(">i", LARGE)
        return [struct.pack(">ii", 4 + len(body) + LARGE, correlation_id), body, RECORDS]
    if api == API_VERSIONS:
        ranges = [(HEARTBEAT, 0, 1), (FETCH, 0, 4), (API_VERSIONS, 0, 0), (3, 0, 1)]
        body = struct.pack(">hi", 0, len(ranges)) + b"".join(struct.pack(">hhh", *each) for each in ranges)
        return [struct.pack(">ii", 4 + len(body), correlation_id), body]
    raise ValueError(f"this peer has no answer to API {api}")


RECORDS = bytes(LARGE)


def serve_one(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pending = bytearray()
    while data := connection.recv(1 << 16):
        pending += data
        at, out = 0, []
        while len(pending) - at >= 4:
            (size,) = struct.unpack_from(">i", pending, at)
            if len(pending) - at - 4 < size:
                break
            out += answer_of(bytes(pending[at + 4 : at + 4 + size]))
            at += 4 + size
        del pending[:at]
        connection.sendall(b"".join(out))


def serve() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve_one, args=(connection,), daemon=True).start()


# --- the clients ----------------------------------------------------------------------------------------------------


class Ours:
    """The connection of this client, decoding included."""

    name = "pykafka08"

    async def __aenter__(self) -> Ours:
        from pykafka08.config import ClientConfig
        from pykafka08.connection.connection import Connection
        from pykafka08.driver import TaskTree
        from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
        from pykafka08.protocol.messages.heartbeat import HeartbeatRequest

        config = ClientConfig(bootstrap_servers=(("127.0.0.1", PORT),), broker_version="0.11.0")
        self._tasks = TaskTree()
        await self._tasks.__aenter__()
        self._connection = Connection(config, ("127.0.0.1", PORT), self._tasks)
        await self._connection.wait_ready()
        self._heartbeat = HeartbeatRequest(group_id="a-group", generation_id=7, member_id="a-member-id-of-some-length")
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=LARGE)
        self._fetch = FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.aclose()
        await self._tasks.__aexit__(None, None, None)

    async def small(self) -> None:
        assert (await self._connection.submit(self._heartbeat, version=1, timeout=30)).error_code == 0

    async def large(self) -> int:
        answer = await self._connection.submit(self._fetch, version=4, timeout=30)
        return len(answer.responses[0].partitions[0].records)


class Aiokafka:
    """aiokafka's connection, decoding included.  What it is asked for large answers is left to ``Streams``."""

    name = "aiokafka"

    async def __aenter__(self) -> Aiokafka:
        from aiokafka.conn import AIOKafkaConnection
        from aiokafka.protocol.group import HeartbeatRequest

        self._connection = AIOKafkaConnection("127.0.0.1", PORT)
        await self._connection.connect()
        self._heartbeat = HeartbeatRequest("a-group", 7, "a-member-id-of-some-length")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._connection.close()

    async def small(self) -> None:
        assert (await self._connection.send(self._heartbeat)).error_code == 0


class Streams:
    """asyncio's streams, one write and one readexactly pair per request, nothing decoded: the least that they cost."""

    name = "asyncio streams"

    async def __aenter__(self) -> Streams:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", PORT, limit=1 << 20)
        self._waiting: list[asyncio.Future[bytes]] = []
        self._task = asyncio.create_task(self._read())
        heartbeat = struct.pack(">h7sih26s", 7, b"a-group", 7, 26, b"a-member-id-of-some-length")
        self._heartbeat = struct.pack(">hhihi", HEARTBEAT, 1, 0, -1, 0)[:10] + heartbeat
        self._fetch = struct.pack(">hhih", FETCH, 4, 0, -1)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self._writer.close()

    async def _read(self) -> None:
        while True:
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            frame = await self._reader.readexactly(size)
            self._waiting.pop(0).set_result(frame)

    def _send(self, body: bytes) -> asyncio.Future[bytes]:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._writer.write(struct.pack(">i", len(body)) + body)
        return answer

    async def small(self) -> None:
        await self._send(self._heartbeat)

    async def large(self) -> int:
        return len(await self._send(self._fetch))


class Bare:
    """No event loop and no frames to keep: recv_into the same memory again and again.  What nobody can be below."""

    name = "bare socket"

    async def __aenter__(self) -> Bare:
        self._socket = socket.create_connection(("127.0.0.1", PORT))
        self._memory = memoryview(bytearray(2 * LARGE))
        body = struct.pack(">hhih", FETCH, 4, 0, -1)
        self._fetch = struct.pack(">i", len(body)) + body
        self._socket.sendall(self._fetch)  # the other clients have two in flight as well
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()

    async def large(self) -> int:
        self._socket.sendall(self._fetch)
        self._receive(4)
        size = int.from_bytes(self._memory[:4], "big")
        self._receive(size)
        return size

    def _receive(self, size: int) -> None:
        at = 0
        while at < size:
            at += self._socket.recv_into(self._memory[at:size])


# --- the measure ----------------------------------------------------------------------------------------------------


async def spent(callers: int, count: int, call: Callable[[], Awaitable[object]]) -> float:
    """CPU seconds of ``count`` calls, ``callers`` at a time."""

    async def calls(share: int) -> None:
        for _ in range(share):
            await call()

    await calls(20)
    begin = time.process_time()
    await asyncio.gather(*(calls(count // callers) for _ in range(callers)))
    return time.process_time() - begin


async def turn(client: type[Ours | Aiokafka | Streams | Bare]) -> dict[str, float]:
    """What each job cost: microseconds per small request, seconds per GiB."""
    found = {}
    async with client() as opened:
        if not isinstance(opened, Bare):
            for callers in CALLERS:
                found[f"small, {callers} callers"] = await spent(callers, REQUESTS, opened.small) / REQUESTS * 1e6
        if not isinstance(opened, Aiokafka):
            found["1 MiB answers"] = await spent(2, LARGE_ANSWERS, opened.large) / LARGE_ANSWERS * 1024
    return found


def main() -> None:
    global PORT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--uvloop", action="store_true")
    parser.add_argument("--package", default=str(Path(__file__).resolve().parent.parent))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
    sys.path.insert(0, options.package)
    run: Callable[..., dict[str, float]] = asyncio.run
    if options.uvloop:
        import uvloop

        run = uvloop.run
    clients: list[type[Ours | Aiokafka | Streams | Bare]] = [Ours, Aiokafka, Streams, Bare]
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdout is not None
        PORT = int(peer.stdout.readline())
        try:
            rounds = []
            for number in range(options.rounds):
                order = clients[number % 4 :] + clients[: number % 4]
                rounds.append({client: run(turn(client)) for client in order})
        finally:
            peer.kill()
    print(f"{'job':20}" + "".join(f"{client.name:>20}" for client in clients) + "   ours : each")
    for job in rounds[0][Ours]:
        line, ratios = f"{job:20}", ""
        for client in clients:
            if job not in rounds[0][client]:
                line += f"{'-':>20}"
                continue
            unit = "us" if job.startswith("small") else "s/GiB"
            line += f"{median(each[client][job] for each in rounds):14.2f} {unit:<5}"
            ratios += f"  {median(each[Ours][job] / each[client][job] for each in rounds):.2f}"
        print(line + "  " + ratios)


if __name__ == "__main__":
    main()
