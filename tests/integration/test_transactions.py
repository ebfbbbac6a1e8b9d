"""Transactions on real brokers: commit, abort, offsets, a zombie, a copy; and what a Java consumer sees of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pykafka08 import (
    Consumer,
    PartitionRevokedError,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortedError,
)
from tests.integration.clusters import Clusters, RealCluster

pytestmark = pytest.mark.anyio

RELEASES = ["0.11.0.3", "2.8.2", "4.3.1"]
READ_S = 60
LAST = 5
"""Of the transactions numbered from 0; the odd ones are aborted."""


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def kafka(release: str, clusters: Clusters) -> RealCluster:
    return await anyio.to_thread.run_sync(clusters.running, release)


@asynccontextmanager
async def opened(kafka: RealCluster, transactional_id: str) -> AsyncIterator[Producer]:
    async with Producer(kafka.bootstrap, transactional_id=transactional_id, linger_ms=0) as producer:
        yield producer


async def new_topic(kafka: RealCluster, prefix: str, partitions: int = 1) -> str:
    return await anyio.to_thread.run_sync(kafka.new_topic, prefix, partitions)


def reader(kafka: RealCluster, *topics: str, **settings: Any) -> Consumer:
    defaults = {"auto_offset_reset": "earliest", "isolation_level": "read_committed", "enable_auto_commit": False}
    return Consumer(*topics, bootstrap_servers=kafka.bootstrap, **{**defaults, **settings})


async def settled(consumer: Consumer, expected: Mapping[TopicPartition, int]) -> None:
    """Wait until the group has these committed offsets, and with them nothing pending of that producer.

    Before Kafka 4 the coordinator takes the offsets of an ended transaction over in a thread of its own, after all
    answers.  Where that thread is late, it takes over, or drops, those of the producer's next transaction instead: an
    aborted one's offset is committed, a committed one's lost (seen on 0.11.0.3 with the thread held).  So the next
    transaction waits here, and no transaction follows an aborted one that had offsets.
    """
    with anyio.fail_after(READ_S):
        while True:
            committed = await consumer.committed(list(expected))
            if {tp: offset and offset.offset for tp, offset in committed.items()} == expected:
                return


async def seen_by_all(kafka: RealCluster, topic: str, expected: list[str]) -> None:
    """Our consumer and the release's own, both of committed records, see exactly these in their one partition."""
    async with reader(kafka, topic) as consumer:
        ours = [(await consumer.getone(timeout=READ_S)).value for _ in expected]
        assert ours == [value.encode() for value in expected]
        assert await consumer.getmany(timeout=0.5) == []

    def consume() -> list[str]:
        return kafka.console.consume(topic, len(expected), isolation_level="read_committed")

    assert await anyio.to_thread.run_sync(consume) == expected


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the JVM is too dear to show trio again
async def test_committed_and_aborted(kafka: RealCluster) -> None:
    topic = await new_topic(kafka, "transactions")
    expected: list[str] = []
    tp = TopicPartition(topic, 0)
    async with opened(kafka, f"id of {topic}") as producer, reader(kafka, group_id=f"group of {topic}") as consumer:
        for number in range(LAST + 1):
            is_good = number % 2 == 0
            values = [f"{'good' if is_good else 'bad'} {number}-{index}" for index in range(50)]
            try:
                async with producer.transaction():
                    await producer.send_many(topic, [value.encode() for value in values])
                    if is_good or number == LAST:
                        await producer.send_offsets({tp: number}, f"group of {topic}")
                    if not is_good:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                continue
            await settled(consumer, {tp: number})
            expected += values
        committed = (await consumer.committed([tp]))[tp]
        assert committed is not None
        assert committed.offset == LAST - 1
    await seen_by_all(kafka, topic, expected)


async def test_a_zombie_is_fenced(kafka: RealCluster) -> None:
    topic = await new_topic(kafka, "zombies")
    name = f"id of {topic}"

    async def outlive(zombie: Producer) -> None:
        async with zombie.transaction():
            await zombie.send(topic, b"old")
            async with opened(kafka, name) as successor, successor.transaction():
                await successor.send(topic, b"new")
            await zombie.send(topic, b"late")

    async def write(producer: Producer, value: bytes) -> None:
        async with producer.transaction():
            await producer.send(topic, value)

    async with opened(kafka, name) as zombie:
        with pytest.raises(ProducerFencedError):
            await outlive(zombie)
        with pytest.raises(ProducerFencedError):
            await write(zombie, b"again")
    async with opened(kafka, name) as successor:
        await write(successor, b"newer")
    await seen_by_all(kafka, topic, ["new", "newer"])


async def test_a_copy_job(kafka: RealCluster) -> None:
    """One copier, of which every third transaction is aborted: a member where brokers can fence it (KIP-447)."""
    source, target = await new_topic(kafka, "source", 2), await new_topic(kafka, "target")
    count = 400
    values = [f"{number:03}" for number in range(count)]
    async with Producer(kafka.bootstrap) as filler:
        for number, value in enumerate(values):
            filler.enqueue(source, value.encode(), partition=number % 2)
    done = 0
    is_member = not kafka.version.startswith("0.11")
    is_settled_at_once = kafka.version.startswith("4.")
    topics = [source] * is_member
    async with (
        opened(kafka, f"id of {source}") as producer,
        reader(kafka, *topics, group_id=f"group of {source}", session_timeout_ms=10_000) as consumer,
    ):
        if not is_member:
            consumer.assign(TopicPartition(source, partition) for partition in range(2))
        turn = 0
        with anyio.fail_after(READ_S):
            while done < count:
                turn += 1
                try:
                    async with producer.transaction():
                        records = await consumer.getmany(max_records=30, timeout=1)
                        for record in records:
                            producer.enqueue(target, record.value)
                        if is_settled_at_once or turn % 3:
                            await producer.send_offsets(consumer)
                        if turn % 3 == 0:
                            raise TransactionAbortedError("the test wants it")
                except (TransactionAbortedError, PartitionRevokedError):
                    await consumer.seek_to_committed()
                else:
                    done += len(records)
                    if records and not is_settled_at_once:
                        await settled(consumer, {TopicPartition(source, r.partition): r.offset + 1 for r in records})
    async with reader(kafka, target) as consumer:
        copied = [(await consumer.getone(timeout=READ_S)).value for _ in range(count)]
        assert await consumer.getmany(timeout=0.5) == []
    assert sorted(filter(None, copied)) == [value.encode() for value in values]
    for parity in range(2):
        share = [value for value in copied if int(value or b"0") % 2 == parity]
        assert share == sorted(filter(None, share))
