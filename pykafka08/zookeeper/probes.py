"""What is there, asked beside the session: is it a Kafka broker, and which release of ZooKeeper is it?

A broker reads ZooKeeper's greeting as a Produce request that wants no answer, and is silent.  ZooKeeper 3.3 drops what
it does not know without a word, so that one has to know before one asks.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

import anyio

from pykafka08.config import Address

__all__ = ["find_kafka", "find_release"]

PROBE_SECONDS = 5.0
MOST_BYTES = 64 * 1024
_RELEASE = re.compile(rb"version: (\d+)\.(\d+)")
CORRELATION_ID = 0x5A4B3F00
# Metadata v1 for no topics, client id "pykafka08": every broker since 0.8.0 answers it.
_BODY = struct.pack(">hhih9si", 3, 1, CORRELATION_ID, 9, b"pykafka08", 0)
_FRAME = struct.pack(">i", len(_BODY)) + _BODY


async def find_kafka(addresses: Sequence[Address], deadline: float) -> str | None:
    """The first address that answers as Kafka, as ``host:port``."""
    found: list[str] = []

    async def ask(host: str, port: int) -> None:
        try:
            async with await anyio.connect_tcp(host, port) as stream:
                await stream.send(_FRAME)
                answer = b""
                while len(answer) < 8:
                    answer += await stream.receive()
        except (OSError, anyio.BrokenResourceError, anyio.EndOfStream):
            return
        if answer[4:8] == CORRELATION_ID.to_bytes(4, "big"):
            found.append(f"{host}:{port}")

    with anyio.CancelScope(deadline=min(deadline, anyio.current_time() + PROBE_SECONDS)):
        async with anyio.create_task_group() as tasks:
            for address in addresses:
                tasks.start_soon(ask, *address)
    return found[0] if found else None


async def find_release(addresses: Sequence[Address], deadline: float) -> tuple[int, int] | None:
    """Such as ``(3, 4)``, of the first server that says it; None if none does."""
    for host, port in addresses:
        answer = b""
        with anyio.CancelScope(deadline=min(deadline, anyio.current_time() + PROBE_SECONDS)):
            answer = await _answer_to_word(host, port)
        found = _RELEASE.search(answer)
        if found:
            return int(found[1]), int(found[2])
    return None


async def _answer_to_word(host: str, port: int) -> bytes:
    answer = b""
    try:
        async with await anyio.connect_tcp(host, port) as stream:
            await stream.send(b"srvr")
            while len(answer) < MOST_BYTES:
                answer += await stream.receive()
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream):
        pass
    return answer
