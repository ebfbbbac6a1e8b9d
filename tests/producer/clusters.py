"""What the producer's tests on embedded clusters share."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pykafka08 import EmbeddedCluster, Producer, Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

FAST = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 20}


@asynccontextmanager
async def producing(
    *, brokers: int = 1, version: str = "4.3", topics: dict[str, int] | None = None, **settings: Any
) -> AsyncIterator[tuple[EmbeddedCluster, Producer]]:
    """A cluster with topic ``t``, and a producer with short backoffs."""
    async with EmbeddedCluster(brokers=brokers, version=version, topics=topics or {"t": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers, **{**FAST, **settings}) as producer:
            yield cluster, producer


def logs(cluster: EmbeddedCluster, topic: str = "t") -> list[list[Record]]:
    """The records of each partition."""
    return [cluster.records(topic, partition) for partition in range(cluster.topics[topic])]


def log_values(cluster: EmbeddedCluster, topic: str = "t") -> list[bytes | None]:
    return [record.value for log in logs(cluster, topic) for record in log]


def assert_in_order(numbers: Iterable[int]) -> None:
    """Each number for the first time after all smaller ones of its partition; repeated ones are retries."""
    seen: set[int] = set()
    last = -1
    for number in numbers:
        if number not in seen:
            assert number > last, f"{number} came after {last}"
            seen.add(number)
            last = number
