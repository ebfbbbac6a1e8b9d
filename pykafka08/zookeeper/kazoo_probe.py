"""Is that a Kafka broker?  Asked of an address that takes connections and does not answer as ZooKeeper does.

A broker reads ZooKeeper's greeting as a Produce request that wants no answer, and is silent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import anyio

from pykafka08.config import Address

__all__ = ["find_kafka"]

PROBE_SECONDS = 2.0
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
