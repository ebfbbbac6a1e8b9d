"""Calls are cancelled at each point where they wait, in turn: nothing hangs, nothing is lost, doubled or left behind.

A call is run until it waits for the first time and cancelled there, again until it waits for the second time, and so on
until it ends before it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, Producer, TopicPartition
from tests.consumer.embedded import fill, values
from tests.faults.stage import FAST
from tests.faults.steps import cancelled_at, nothing_left

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)
SOON_S = 100


async def at_each_wait(call: Callable[[int], Coroutine[Any, Any, object]]) -> int:
    """Cancel `call(n)` at its nth wait, n = 1, 2, ... until it ends; how often it was cancelled."""
    with anyio.fail_after(SOON_S):
        wait = 1
        while await cancelled_at(wait, partial(call, wait)):
            wait += 1
        return wait - 1


async def test_send() -> None:
    """With a full buffer too: the record is taken, and then delivered once, or it is not."""
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, linger_ms=0, buffer_memory=2_000, **FAST) as producer:

            async def send(number: int) -> None:
                await producer.send_many("t", [b"%d.%d" % (number, part) + bytes(300) for part in range(12)])

            cancelled = await at_each_wait(send)
            await producer.flush()
            counters = producer.counters
            assert counters.in_buffer == 0
            assert counters.acknowledged == counters.enqueued == cluster.log_end_offset("t", 0)
        stored = [(record.value or b"").rstrip(b"\0") for record in cluster.records("t", 0)]
        assert len(set(stored)) == len(stored)
        for number in range(1, cancelled + 2):
            mine = [value for value in stored if value.startswith(b"%d." % number)]
            assert mine == [b"%d.%d" % (number, part) for part in range(len(mine))]
        assert sum(value.startswith(b"%d." % (cancelled + 1)) for value in stored) == 12
        assert cancelled > 1


async def test_a_producer_from_its_beginning_to_its_end() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:

        async def live(number: int) -> None:
            async with Producer(cluster.bootstrap_servers, linger_ms=0, **FAST) as producer:
                for part in range(3):
                    await producer.send("t", b"%d.%d" % (number, part), partition=part % 2)

        async with nothing_left():
            cancelled = await at_each_wait(live)
        for partition in range(2):
            stored = [record.value for record in cluster.records("t", partition)]
            assert len(set(stored)) == len(stored)
        assert cancelled > 3


async def test_reading_in_a_group_and_committing() -> None:
    """A consumer's whole life; what the last ones committed is where the next goes on, and nothing is left out."""
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 300))
        handed_out: list[int] = []
        starts: list[int] = []

        async def live(_: int) -> None:
            cluster._state.groups.expire("g", None)  # who was cancelled may not have left
            async with member(cluster) as consumer:
                first = await consumer.getone()
                starts.append(first.offset)
                handed_out.append(first.offset)
                handed_out.extend(record.offset for record in await consumer.getmany(max_records=2))
                await consumer.commit()

        async with nothing_left():
            cancelled = await at_each_wait(live)
        assert cancelled > 5
        # Each goes on where one before it had committed: never beyond what was handed out, and never back.
        assert starts == sorted(starts)
        assert set(range(max(handed_out) + 1)) == set(handed_out)
        cluster._state.groups.expire("g", None)
        async with member(cluster) as consumer:
            assert (await consumer.getone(timeout=20)).offset == max(handed_out) + 1


async def test_a_commit() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 10))
        async with member(cluster) as consumer:
            await consumer.getmany(max_records=10)
            cancelled = await at_each_wait(lambda number: consumer.commit({T0: min(number, 10)}))
            found = (await consumer.committed([T0]))[T0]
            assert found is not None
            assert found.offset == min(cancelled + 1, 10)
            assert await consumer.position(T0) == 10
        assert cancelled > 0


async def test_a_transaction() -> None:
    """Cancelled anywhere, it is aborted or it was committed as a whole, and the producer's next one can begin."""
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers, transactional_id="x", linger_ms=0, **FAST) as producer:

            async def write(number: int) -> None:
                async with producer.transaction():
                    for part in range(3):
                        await producer.send("t", b"%d.%d" % (number, part))

            cancelled = await at_each_wait(write)
        stored = [record.value or b"" for record in cluster.records("t", 0, committed=True)]
        numbers = sorted({int(value.partition(b".")[0]) for value in stored})
        assert stored == [b"%d.%d" % (number, part) for number in numbers for part in range(3)]
        assert cancelled + 1 in numbers
        assert cancelled > 2


def member(cluster: EmbeddedCluster) -> Consumer:
    return Consumer(
        "t",
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=20_000,  # none ends by the clock
        heartbeat_interval_ms=50,
        **FAST,
    )
