"""One task at a time reads from a consumer: a second one is told so while the first waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import ConcurrentReadError, Consumer, EmbeddedCluster, KafkaError, Record
from tests.consumer.embedded import fill, numbers, values
from tests.consumer.groups import until

pytestmark = pytest.mark.anyio


def consumer_of(cluster: EmbeddedCluster) -> Consumer:
    return Consumer("t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest")


async def loop(consumer: Consumer) -> list[Record]:
    async for record in consumer:
        return [record]
    return []


async def batch(consumer: Consumer) -> list[Record]:
    return (await anext(consumer.batches())).records()


async def getone(consumer: Consumer) -> list[Record]:
    return [await consumer.getone()]


async def process(consumer: Consumer) -> list[Record]:
    records: list[Record] = []

    async def handle(record: Record) -> None:
        records.append(record)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await consumer.process(handle)
    return records


WAYS: dict[str, Callable[[Consumer], Awaitable[list[Record]]]] = {
    "loop": loop,
    "batches": batch,
    "getone": getone,
    "getmany": lambda consumer: consumer.getmany(),
    "process": process,
}


@pytest.mark.parametrize("first", WAYS)
async def test_a_second_reader_is_refused_while_the_first_waits(first: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        seen: list[Record] = []

        async def read() -> None:
            seen.extend(await WAYS[first](consumer))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await until(lambda: consumer._reader.waiting)
                for second in WAYS.values():
                    with pytest.raises(ConcurrentReadError, match="one task at a time reads") as caught:
                        await second(consumer)
                    assert isinstance(caught.value, (KafkaError, RuntimeError))
                await fill(cluster, "t", [b"0"])  # the first one is not disturbed
            assert [record.value for record in seen] == [b"0"]
            await fill(cluster, "t", values(1, 4))
            rest = await consumer.getmany(max_records=1)
            if first == "process":  # whose handler failed
                assert [record.value for record in rest] == [b"0"]
                rest = await consumer.getmany(max_records=1)
            assert [record.value for record in rest] == [b"1"]


async def test_one_after_the_other_they_read_on() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        await fill(cluster, "t", values(0, 40))
        seen: list[int] = []
        for way in ("loop", "getone", "getmany", "loop", "getone"):
            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:

                    async def read(way: str = way) -> None:
                        seen.extend(numbers([record.value for record in await WAYS[way](consumer)]))

                    tasks.start_soon(read)
            if way == "getmany":
                assert seen == list(range(40))
                await fill(cluster, "t", values(40, 45))
        assert seen == list(range(42))


async def test_a_reader_that_was_cancelled_waits_no_more() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        for way in WAYS.values():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(way, consumer)
                await until(lambda: consumer._reader.waiting)
                tasks.cancel_scope.cancel()
        await fill(cluster, "t", [b"0"])
        assert (await consumer.getone(timeout=60)).value == b"0"


async def test_a_handler_does_not_read() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
        await fill(cluster, "t", values(0, 3))

        async def handle(record: Record) -> None:
            await consumer.getone()

        with pytest.raises(ConcurrentReadError, match=r"process\(\) runs"), anyio.fail_after(60):
            await consumer.process(handle)
