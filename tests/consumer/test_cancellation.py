"""A cancelled call loses nothing, doubles nothing and leaves nothing behind, wherever it was.

Each test lets a call run for 0, 1, 2, ... turns of the event loop, cancels it, and counts what came.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from tests.consumer.embedded import read, store
from tests.consumer.world import batch_bytes

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)
RECORDS = 400
TURNS = 12


def filled(cluster: EmbeddedCluster) -> None:
    for first in range(0, RECORDS, 10):
        store(cluster, "t", batch_bytes(first, range(first, first + 10)), first + 9)


def consumer_of(cluster: EmbeddedCluster) -> Consumer:
    return Consumer(
        "t",
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=500,
    )


async def cancelled_after(turns: int, call: Callable[[], Awaitable[object]]) -> bool:
    """Run ``call`` and cancel it after some turns of the loop; True if it was cancelled, False if it ended before."""
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await call()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        scope.cancel()
    return scope.cancelled_caught


@pytest.mark.parametrize("way", ["getone", "getmany", "loop", "batches"])
async def test_reading(way: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        filled(cluster)
        seen: list[int] = []
        cancelled = 0
        async with consumer_of(cluster) as consumer:
            batches = consumer.batches()

            async def take() -> None:
                if way == "getone":
                    seen.append((await consumer.getone()).offset)
                elif way == "getmany":
                    seen.extend(record.offset for record in await consumer.getmany(max_records=7))
                elif way == "batches":
                    seen.extend(record.offset for record in await anext(batches))
                else:
                    async for record in consumer:
                        seen.append(record.offset)
                        if len(seen) % 3 == 0:
                            break

            with anyio.fail_after(40):
                turns = 0
                while len(seen) < RECORDS - 60:
                    # In turn short and long, so that it gets on.
                    cancelled += await cancelled_after(turns % TURNS, take)
                    turns += 1
            assert await consumer.position(T0) == len(seen)
            seen += [record.offset for record in await read(consumer, RECORDS - len(seen))]
        assert seen == list(range(RECORDS))
        assert cancelled > 0


@pytest.mark.parametrize("way", ["records", "batches", "arrow"])
async def test_an_iterator_goes_on_after_a_step_was_cancelled(way: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        iterators: dict[str, Any] = {
            "records": aiter(consumer),
            "batches": aiter(consumer.batches()),
            "arrow": aiter(consumer.arrow()),
        }
        step = iterators[way]
        for turns in (0, 1, 2, 50):  # nothing is there to be read
            assert await cancelled_after(turns, lambda: anext(step))
        filled(cluster)
        with anyio.fail_after(40):
            found = await anext(step)
            first = found if way == "records" else found.to_pylist()[0] if way == "arrow" else next(iter(found))
            assert (first["offset"] if way == "arrow" else first.offset) == 0


@pytest.mark.parametrize("way", ["seek", "seek_to_end", "position", "end_offsets", "lag", "offsets_for_times"])
async def test_calls_about_offsets(way: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        filled(cluster)
        calls: dict[str, Callable[[Consumer], Awaitable[object]]] = {
            "seek": lambda consumer: consumer.seek(T0, 7),
            "seek_to_end": lambda consumer: consumer.seek_to_end(),
            "position": lambda consumer: consumer.position(T0),
            "end_offsets": lambda consumer: consumer.end_offsets([T0]),
            "lag": lambda consumer: consumer.lag(T0),
            "offsets_for_times": lambda consumer: consumer.offsets_for_times({T0: 1100}),
        }
        async with consumer_of(cluster) as consumer:
            for turns in range(20):
                await cancelled_after(turns, lambda: calls[way](consumer))
            await consumer.seek(T0, 100)
            assert [record.offset for record in await read(consumer, 300)] == list(range(100, 400))


async def test_entering() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        filled(cluster)
        before = len(anyio.get_running_tasks())
        turns, is_cancelled = 0, True

        async def enter() -> None:
            async with consumer_of(cluster):
                pass

        with anyio.fail_after(40):
            while is_cancelled:
                is_cancelled = await cancelled_after(turns, enter)
                turns += 1 + turns // 4
        assert turns > 1
        with anyio.fail_after(20):
            # The brokers' sides of the connections end by themselves.
            while len(anyio.get_running_tasks()) > before:
                await anyio.lowlevel.checkpoint()


async def test_leaving_by_an_exception() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        filled(cluster)

        async def fail() -> None:
            async with consumer_of(cluster) as consumer:
                async for record in consumer:
                    if record.offset == 5:
                        raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()


async def test_cancelled_as_a_whole() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        filled(cluster)
        seen = []
        with anyio.fail_after(20), anyio.CancelScope() as scope:
            async with consumer_of(cluster) as consumer:
                async for record in consumer:
                    seen.append(record.offset)
                    if len(seen) == RECORDS:
                        scope.cancel()
        assert scope.cancelled_caught
        assert seen == list(range(RECORDS))
