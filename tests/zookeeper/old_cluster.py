"""An embedded cluster of old brokers beside an embedded ZooKeeper, registered as such brokers register themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from pykafka08 import EmbeddedCluster, NewRecord, Producer
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer

__all__ = ["DEADLINE_S", "GROUP", "SHORT_SESSION_MS", "OldCluster", "old_cluster", "until"]

DEADLINE_S = 60
SESSION_MS = 20_000
"""Long: on a busy machine a short one ends by itself."""
SHORT_SESSION_MS = 1000
"""For tests in which it is to end."""
GROUP = "g"


class OldCluster:
    """``consumer()`` makes members of the group "g" with short times."""

    def __init__(self, brokers: EmbeddedCluster, zookeeper: EmbeddedZooKeeper, chroot: str = "/kafka") -> None:
        self.brokers = brokers
        self.chroot = chroot
        self.zookeeper = zookeeper
        self.session = zookeeper.open_session()

    def register_brokers(self, brokers: EmbeddedCluster | None = None) -> None:
        for each in (brokers or self.brokers).brokers:
            document = {"version": 1, "host": each.host, "port": each.port, "jmx_port": -1, "timestamp": "1"}
            path = f"/kafka/brokers/ids/{each.node_id}"
            self.zookeeper.create(path, json.dumps(document).encode(), session_id=self.session)

    def register_topic(self, name: str, partitions: int) -> None:
        document = {"version": 1, "partitions": {str(each): [0] for each in range(partitions)}}
        path, data = f"/kafka/brokers/topics/{name}", json.dumps(document).encode()
        if self.zookeeper.exists(path):
            self.zookeeper.write(path, data)
        else:
            self.zookeeper.create(path, data)

    def new_topic(self, name: str, partitions: int) -> None:
        self.brokers.create_topic(name, partitions)
        self.register_topic(name, partitions)

    def add_partitions(self, name: str, partitions: int) -> None:
        """On the brokers; :meth:`register_topic` writes it down."""
        topics = self.brokers._state.topics
        topic = topics.find(name)
        assert topic is not None
        topics.grow(topic, partitions, 1)

    def consumer(self, *topics: str, name: str | None = None, **settings: Any) -> LegacyConsumer:
        return LegacyConsumer(
            *topics,
            **{
                "zookeeper": self.zookeeper.address + self.chroot,
                "group_id": GROUP,
                "consumer_id": name,
                "zookeeper_session_timeout_ms": SESSION_MS,
                "rebalance_backoff_ms": 500,
                "auto_offset_reset": "smallest",
                **settings,
            },
        )

    async def send(self, topic: str, values: Iterable[str], partitions: int = 1) -> None:
        """In turn to each partition."""
        records = [NewRecord(each.encode(), partition=at % partitions) for at, each in enumerate(values)]
        async with Producer(bootstrap_servers=self.brokers.bootstrap_servers, linger_ms=0) as producer:
            await producer.send_many(topic, records)

    def owners(self, topic: str, group: str = GROUP) -> dict[int, str]:
        """What the owner nodes say."""
        start = f"/kafka/consumers/{group}/owners/{topic}"
        if not self.zookeeper.exists(start):
            return {}
        return {int(each): self.zookeeper.read(f"{start}/{each}").decode() for each in self.zookeeper.children(start)}

    def offset(self, topic: str, partition: int = 0, group: str = GROUP) -> str | None:
        path = f"/kafka/consumers/{group}/offsets/{topic}/{partition}"
        return self.zookeeper.read(path).decode() if self.zookeeper.exists(path) else None

    def session_of(self, member: str, group: str = GROUP) -> int:
        return self.zookeeper.ephemeral_owner(f"/kafka/consumers/{group}/ids/{member}")


@asynccontextmanager
async def old_cluster(
    topics: dict[str, int] | None = None, *, brokers: int = 1, version: str = "0.8.2", registers: bool = True
) -> AsyncIterator[OldCluster]:
    async with (
        EmbeddedZooKeeper(release="3.4") as zookeeper,
        EmbeddedCluster(brokers, version=version, topics=topics or {}) as cluster,
    ):
        old = OldCluster(cluster, zookeeper)
        zookeeper.create("/kafka/brokers/topics")
        zookeeper.create("/kafka/consumers")
        if registers:
            old.register_brokers()
        for name, count in (topics or {}).items():
            old.register_topic(name, count)
        yield old


async def until(condition: Callable[[], object], what: str) -> None:
    with anyio.move_on_after(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - nobody sets an event
            await anyio.sleep(0.01)
        return
    raise AssertionError(f"not within {DEADLINE_S} s: {what}")
