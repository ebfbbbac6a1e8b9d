"""Consumers in groups on embedded clusters, with short waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import anyio

from pykafka08 import Consumer, EmbeddedCluster, NewRecord, Producer, TopicPartition

QUICK: dict[str, Any] = {
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 50,
    "max_poll_interval_ms": 20_000,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 50,
}
DEADLINE_S = 90


def consumer(cluster: EmbeddedCluster, *topics: str, **settings: Any) -> Consumer:
    return Consumer(*topics, bootstrap_servers=cluster.bootstrap_servers, **{**QUICK, **settings})


async def spread(cluster: EmbeddedCluster, topic: str, partitions: int, each: int, *, first: int = 0) -> None:
    """So many records to each partition, with values ``b"partition:number"``."""
    async with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
        records = [
            NewRecord(b"%d:%d" % (partition, number), key=b"k%d" % (number % 5), partition=partition)
            for number in range(first, first + each)
            for partition in range(partitions)
        ]
        await producer.send_many(topic, records)


async def until(condition: Any, within: float = DEADLINE_S) -> None:
    """Until ``condition()`` holds, looked at often: what it looks at has no events of its own."""
    with anyio.fail_after(within):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.005)


async def committed_in(
    cluster: EmbeddedCluster, partitions: Iterable[TopicPartition], group: str = "g"
) -> dict[int, int]:
    """Partition number to committed offset, of those that have one."""
    async with consumer(cluster, group_id=group) as outsider:
        found = await outsider.committed(partitions)
    return {tp.partition: each.offset for tp, each in sorted(found.items()) if each is not None}
