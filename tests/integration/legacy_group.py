"""Steps and looks that the tests of old groups on real brokers share: who owns what, and what our streams have read."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from operator import itemgetter
from typing import Any

import anyio
import pytest

from pykafka08 import Producer, TopicPartition
from pykafka08.errors import NoNodeError
from pykafka08.records.record import Record
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.assignment import range_assignment
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy.streams import LegacyStream
from tests.brokers import probe
from tests.brokers.releases import version_tuple
from tests.brokers.tools import release_tool_command
from tests.integration.clusters import RealCluster
from tests.integration.java_old_consumer import JavaMember

SOAK = os.environ.get("PYKAFKA08_SOAK") == "1"
PAIRS = [("0.8.2.2", "0.8.2.2")]
"""Brokers, and the JVM consumer beside ours."""
if SOAK:
    PAIRS += [
        ("0.8.1.1", "0.8.1.1"),
        ("0.9.0.1", "0.9.0.1"),
        ("0.10.2.2", "0.10.2.2"),
        ("0.11.0.3", "0.11.0.3"),
        ("1.1.1", "1.1.1"),
        ("2.8.2", "1.1.1"),
        ("3.9.2", "1.1.1"),
    ]
DEADLINE_S = 150
"""For one step; a busy machine takes ten times as long as a quiet one."""
OFFSET_FETCH = 9
STEADY: dict[str, Any] = {"auto_commit_interval_ms": 500, "auto_offset_reset": "smallest"}


async def until(condition: Callable[[], Any], what: str) -> None:
    with anyio.move_on_after(DEADLINE_S):
        while True:
            answer = condition()
            if hasattr(answer, "__await__"):
                answer = await answer
            if answer:
                return
            await anyio.sleep(0.1)
    pytest.fail(f"not within {DEADLINE_S} s: {what}")


async def owners(zk: ZooKeeper, group: str, topic: str) -> dict[TopicPartition, str]:
    found = {}
    with suppress(NoNodeError):  # some may go while they are read
        for name in await zk.children(paths.owners(group, topic)):
            node = await zk.read(paths.owner(group, topic, int(name)))
            found[TopicPartition(topic, int(name))] = node.data.decode()
    return found


async def wait_owners(zk: ZooKeeper, group: str, expected: dict[TopicPartition, str]) -> None:
    topics = sorted({tp.topic for tp in expected})
    seen: dict[TopicPartition, str] = {}

    async def agree() -> bool:
        seen.clear()
        for topic in topics:
            seen.update(await owners(zk, group, topic))
        return seen == expected

    try:
        await until(agree, "owners")
    except pytest.fail.Exception:
        raise AssertionError(f"owners are {seen}, expected {expected}") from None


def by_range(topic: str, partitions: int, *threads: Iterable[str]) -> dict[TopicPartition, str]:
    return range_assignment({topic: range(partitions)}, {topic: [each for ids in threads for each in ids]})


class Values:
    """What our streams have read, in the background."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.look: Callable[[Record], Awaitable[None]] | None = None
        """Done with each record while it is in hand."""

    async def follow(self, stream: LegacyStream) -> None:
        async for record in stream:
            if self.look is not None:
                await self.look(record)
            self.read.append((record.value or b"").decode())


async def send(brokers: RealCluster, topic: str, partitions: int, values: list[str]) -> None:
    """As many to each partition."""
    async with Producer(bootstrap_servers=brokers.bootstrap, enable_idempotence=False) as producer:
        for at, value in enumerate(values):
            await producer.send(topic, value.encode(), partition=at % partitions)


def named(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def zookeeper_of(brokers: RealCluster) -> str:
    assert brokers.zookeeper is not None
    return brokers.zookeeper


def has_all(ours: Values, java: JavaMember, values: list[str]) -> bool:
    return set(values) <= {*ours.read, *java.lines()}


def told_by_broker(brokers: RealCluster, group: str, topic: str, partitions: int) -> list[int | tuple[int, int]]:
    """The offsets in ZooKeeper as a broker tells them (OffsetFetch v0), or what it says instead and the error."""
    numbers = struct.pack(f">ii{partitions}i", 1, partitions, *range(partitions))
    body = probe.string(group) + numbers[:4] + probe.string(topic) + numbers[4:]
    reader = probe.call(brokers.recorded().port(1), OFFSET_FETCH, 0, body)

    def partition() -> tuple[int, int | tuple[int, int]]:
        number, offset, _metadata, error = reader.number("i"), reader.number("q"), reader.string(), reader.number("h")
        return number, (offset, error) if error else offset

    ((_name, found),) = reader.array(lambda: (reader.string(), reader.array(partition)))
    return [each for _, each in sorted(found, key=itemgetter(0))]


def told_by_tool(java: str, zookeeper: str, group: str) -> str:
    """What the JVM's own tool shows of a group."""
    words, tool = ["--zookeeper", zookeeper, "--describe", "--group", group], "consumer-groups"
    if version_tuple(java) < (0, 9):
        tool = "kafka.tools.ConsumerOffsetChecker"
        words = ["--zookeeper" if version_tuple(java) >= (0, 8, 2) else "--zkconnect", zookeeper, "--group", group]
    command = release_tool_command(java, tool, *words)
    run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    return run.stdout + run.stderr
