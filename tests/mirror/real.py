"""What the test with real brokers needs: a topic to copy, digests of what both sides hold, a mirror that is killed."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any

import anyio

from pykafka08 import Consumer, Producer, TopicPartition
from pykafka08.admin import Admin
from pykafka08.mirror.ranges import next_within
from tests.cli.console import start

__all__ = ["Digest", "Ends", "Filler", "digests", "killed_amid"]

KILL_WITHIN_S = 300


class Filler:
    """Numbered records of 100 bytes, a key on every other one, ``per_chunk`` to each partition in turn."""

    def __init__(self, servers: str, topic: str, partitions: int, count: int, per_chunk: int) -> None:
        self._producer = Producer(servers, batch_size=256 * 1024, compression_type="gzip")
        self._topic = topic
        self._partitions = partitions
        self._per_chunk = per_chunk
        self.left = count
        self.filled = 0

    async def __aenter__(self) -> Filler:
        await self._producer.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        await self._producer.__aexit__(*exc_info)

    async def fill(self, count: int) -> None:
        """So many more, or what is left."""
        wanted = min(count, self.left)
        while wanted > 0:
            size = min(self._per_chunk, wanted)
            partition = self.filled // self._per_chunk % self._partitions
            values: list[bytes | None] = [b"%0100d" % (self.filled + number) for number in range(size)]
            keys = [b"k%d" % number if number % 2 else None for number in range(size)]
            await self._producer.enqueue_columns(self._topic, partition, values, keys)
            self.filled += size
            self.left -= size
            wanted -= size
        await self._producer.flush()
        assert self._producer.counters.acknowledged == self.filled


class Digest:
    """Of keys and values in their order."""

    def __init__(self) -> None:
        self.records = 0
        self._hash = hashlib.sha256()
        self._seen: set[bytes | None] = set()
        self.duplicates = 0

    def add(self, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        for key, value in pairs:
            self.records += 1
            self.duplicates += value in self._seen
            self._seen.add(value)
            self._hash.update(b"%r %r;" % (key, value))

    @property
    def shown(self) -> tuple[int, str]:
        return self.records, self._hash.hexdigest()


async def digests(servers: str, topic: str, partitions: int) -> dict[int, Digest]:
    """What a reader of committed records sees, by partition."""
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    found = {number: Digest() for number in range(partitions)}
    settings: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(bootstrap_servers=servers, **settings) as consumer:
        consumer.assign(tps)
        ends = await consumer.end_offsets(tps)
        batches = consumer.batches()
        while any([await consumer.position(tp) < ends[tp] for tp in tps]):
            batch = await next_within(batches, 0.1)
            if batch is not None:
                found[batch.partition].add((record.key, record.value) for record in batch)
    return found


async def killed_amid(
    words: tuple[str, ...], filler: Filler, servers: str, topic: str, partitions: int, *, least: int, ahead: int
) -> None:
    """Run a mirror that follows, and SIGKILL it while it copies: the target has ``least`` records, and more come.

    The source is kept ``ahead`` records before the target, so that there is something to copy at that moment.
    """
    process = start(*words, stdout=subprocess.DEVNULL)
    try:
        with anyio.fail_after(KILL_WITHIN_S):
            copied = 0
            async with AsyncExitStack() as opened:
                ends = await opened.enter_async_context(Ends(servers, topic, partitions))
                while copied < least:
                    if filler.filled < copied + ahead:
                        await filler.fill(ahead // 4)
                    if process.poll() is not None:
                        assert process.stderr is not None
                        raise AssertionError(process.stderr.read().decode())
                    copied = await ends.committed()
                await filler.fill(ahead)
    finally:
        process.kill()
        process.communicate()


class Ends:
    """How many committed records (and markers) the target has."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self._admin = Admin(servers)
        self._consumer = Consumer(bootstrap_servers=servers, isolation_level="read_committed")
        self._tps = [TopicPartition(topic, number) for number in range(partitions)]
        self._is_there = False

    async def __aenter__(self) -> Ends:
        await self._admin.__aenter__()
        await self._consumer.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:
        await self._consumer.__aexit__(*exc_info)
        await self._admin.__aexit__(None, None, None)

    async def committed(self) -> int:
        if not self._is_there:
            await anyio.sleep(0.05)
            self._is_there = self._tps[0].topic in await self._admin.list_topics()
            return 0
        return sum((await self._consumer.end_offsets(self._tps)).values())
