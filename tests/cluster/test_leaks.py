"""Nothing is left of what was closed: tasks, sockets, timers and objects, counted, not timed."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.connection.connection import Connection
from pykafka08.consumer.consumer import Consumer
from pykafka08.driver import TaskTree
from pykafka08.protocol.messages.metadata import MetadataRequest

pytestmark = pytest.mark.anyio

WARM_UP = 20

QUICK: dict[str, Any] = {
    "group_id": "g",
    "heartbeat_interval_ms": 20,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
}


def objects() -> Counter[str]:
    """What the garbage collector knows of, by type."""
    gc.collect()
    return Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())


def descriptors() -> int:
    listed = Path("/proc/self/fd")
    return len(os.listdir(listed)) if listed.exists() else 0


def timers() -> int:
    """Timers of asyncio's loop that are still to fire; trio's belong to tasks."""
    loop = asyncio._get_running_loop()
    return 0 if loop is None else sum(not each.cancelled() for each in loop._scheduled)  # type: ignore[attr-defined]


def tasks() -> int:
    loop = asyncio._get_running_loop()
    if loop is not None:
        return len(asyncio.all_tasks(loop))
    import trio

    return int(trio.lowlevel.current_statistics().tasks_living)


MOST_TURNS = 20_000
"""Of the event loop, until the server's side of what was closed has ended, too: it ends when it has read of it."""


LOOPS_KEEP = {
    "asyncio": (
        (
            "asyncio.events.TimerHandle",
            "_contextvars.Context",
            "builtins.hamt",
            "builtins.hamt_bitmap_node",
            "weakref.ReferenceType",
        ),
        150,
    ),
    "trio": (("builtins.tuple", "trio.CancelScope", "trio._core._run.CancelReason"), 1100),
}
"""The loops leave up to 100 and up to 1,000 cancelled timers in their heaps, asyncio's with their contexts."""


async def nothing_is_left(cycle: Callable[[], Awaitable[None]], times: int, cluster: EmbeddedCluster) -> None:
    gc.collect()
    empty = descriptors(), tasks()

    async def cycles(count: int) -> None:
        for _ in range(count):
            await cycle()
        for _ in range(MOST_TURNS):
            if (descriptors(), tasks()) == empty:
                break
            await anyio.lowlevel.checkpoint()
        cluster.requests.clear()

    await cycles(WARM_UP)
    before, timers_before = objects(), timers()
    await cycles(times)
    after = objects()
    assert (descriptors(), tasks()) == empty
    assert timers() <= timers_before + 2, "a retention check of the cluster's own may be due"
    grown = {kind: count - before[kind] for kind, count in after.items() if count - before[kind] > times // 4}
    kept, most = LOOPS_KEEP["asyncio" if asyncio._get_running_loop() is not None else "trio"]
    assert {kind: count for kind, count in grown.items() if kind not in kept or count > most} == {}


async def owns(consumer: Consumer, partitions: int, *others: Consumer) -> None:
    """Reads, and lets the others read, until it owns so many."""
    with anyio.fail_after(90):
        while len(consumer.assignment()) != partitions:
            for each in (consumer, *others):
                await each.getmany(timeout=0.005)


def configured(cluster: EmbeddedCluster) -> ClientConfig:
    return ClientConfig(bootstrap_servers=parse_bootstrap_servers(cluster.bootstrap_servers))


async def test_a_thousand_connections() -> None:
    async with EmbeddedCluster() as cluster, TaskTree() as tree:
        config = configured(cluster)

        async def connect() -> None:
            connection = Connection(config, config.bootstrap_servers[0], tree)
            await connection.submit(MetadataRequest(topics=[]), timeout=60)
            await connection.aclose()

        await nothing_is_left(connect, 1000 if asyncio._get_running_loop() is not None else 200, cluster)


async def test_many_clients() -> None:
    async with EmbeddedCluster(topics={"t": 3}) as cluster:

        async def use() -> None:
            async with Client(configured(cluster)) as client:
                await client.wait_for_topics(["t"])

        await nothing_is_left(use, 60, cluster)


async def test_rebalances() -> None:
    async with (
        EmbeddedCluster(topics={"t": 4}) as cluster,
        Consumer("t", bootstrap_servers=cluster.bootstrap_servers, **QUICK) as staying,
    ):

        async def another_comes_and_goes(times: int) -> None:
            for _ in range(times):
                async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, **QUICK) as coming:
                    await owns(coming, 2, staying)
                await owns(staying, 4)
                cluster.requests.clear()

        # What stays opens its own connections, each when it first needs it.
        await another_comes_and_goes(4)
        before = descriptors(), tasks()
        await another_comes_and_goes(16)
        for _ in range(MOST_TURNS):
            if descriptors() <= before[0] and tasks() <= before[1]:
                break
            await anyio.lowlevel.checkpoint()
        assert descriptors() <= before[0]
        assert tasks() <= before[1]
