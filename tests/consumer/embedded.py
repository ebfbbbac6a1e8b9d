"""Putting records into embedded brokers past their Produce API, and reading them back with a bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio

from pykafka08 import Consumer, EmbeddedCluster, NewRecord, Producer, Record, TopicPartition
from pykafka08.broker.log import PartitionLog, StoredBatch

DEADLINE_S = 90


async def fill(cluster: EmbeddedCluster, topic: str, values: Iterable[bytes], *, partition: int = 0) -> None:
    """Produce the values to one partition, in order."""
    async with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
        await producer.send_many(topic, [NewRecord(value, partition=partition) for value in values])


def log_of(cluster: EmbeddedCluster, topic: str, partition: int = 0) -> PartitionLog:
    return cluster._partition(topic, partition).log


def store(cluster: EmbeddedCluster, topic: str, data: bytes, last_offset: int, *, partition: int = 0) -> None:
    """Append bytes to a log as they are, whatever is wrong with them."""
    log = log_of(cluster, topic, partition)
    log.append(
        StoredBatch(log.end_offset, last_offset, data, max_timestamp_ms=1, appended_at_ms=1, leader_epoch=0),
    )


async def read_values(consumer: Consumer, count: int) -> list[bytes | None]:
    return [record.value for record in await read(consumer, count)]


async def read(consumer: Consumer, count: int) -> list[Record]:
    """The next ``count`` records."""
    records: list[Record] = []
    with anyio.fail_after(DEADLINE_S):
        async for record in consumer:
            records.append(record)
            if len(records) == count:
                break
    return records


def numbers(values: Sequence[bytes | None]) -> list[int]:
    return [int(value or b"") for value in values]


def values(first: int, last: int) -> list[bytes]:
    """``b"first"`` to ``b"last - 1"``."""
    return [b"%d" % number for number in range(first, last)]


def partition(topic: str, number: int = 0) -> TopicPartition:
    return TopicPartition(topic, number)
