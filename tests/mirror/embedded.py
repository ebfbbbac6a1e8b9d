"""What the tests of the mirror fill their clusters with, and how they compare what both hold."""

from __future__ import annotations

from typing import NamedTuple

from pykafka08 import Consumer, EmbeddedCluster, NewRecord, Producer, TopicPartition

__all__ = ["Held", "fill", "held", "new_records"]


class Held(NamedTuple):
    """A record without its offset."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def new_records(first: int, last: int, *, with_headers: bool = False) -> list[NewRecord]:
    """Some without key, some without value."""
    return [
        NewRecord(
            None if number % 11 == 0 and number % 3 else b"value %d" % number,
            key=b"key %d" % (number % 50) if number % 3 else None,
            headers=(("number", b"%d" % number),) if with_headers and number % 2 else (),
            timestamp_ms=1_600_000_000_000 + number,
        )
        for number in range(first, last)
    ]


async def fill(
    cluster: EmbeddedCluster, topic: str, first: int, last: int, *, partition: int = 0, with_headers: bool = False
) -> None:
    records = new_records(first, last, with_headers=with_headers)
    async with Producer(cluster.bootstrap_servers, batch_size=1000) as producer:
        await producer.send_many(topic, [record._replace(partition=partition) for record in records])


async def held(cluster: EmbeddedCluster, topic: str, partitions: int = 1) -> dict[int, list[Held]]:
    """What a reader of committed records sees, by partition."""
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    found: dict[int, list[Held]] = {number: [] for number in range(partitions)}
    settings = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        consumer.assign(tps)
        ends = await consumer.end_offsets(tps)
        while any([await consumer.position(tp) < ends[tp] for tp in tps]):
            for record in await consumer.getmany(timeout=0.1):
                found[record.partition].append(Held(record.key, record.value, record.headers, record.timestamp_ms))
    return found
