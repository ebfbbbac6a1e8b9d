"""``aclose()`` closes everything: after a direct call of ``__aenter__``, it leaves no task and no connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from pykafka08 import (
    Admin,
    ClosedError,
    Consumer,
    EmbeddedCluster,
    GroupMigration,
    LegacyConsumer,
    Mirror,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
from pykafka08.zookeeper.bridge import ZooKeeper

pytestmark = pytest.mark.anyio

BOUND_S = 60


def own_tasks() -> list[str]:
    """Tasks of clients and embedded servers, by their names."""
    names = [str(task.name) for task in anyio.get_running_tasks()]
    return sorted(name for name in names if name == "pykafka08" or name.startswith("pykafka08: "))


@asynccontextmanager
async def servers(**settings: Any) -> AsyncIterator[tuple[str, str]]:
    """Addresses of brokers of 0.8.2 or newer with ZooKeeper, and of the ZooKeeper."""
    async with (
        EmbeddedZooKeeper() as zookeeper,
        EmbeddedCluster(version="1.1", zookeeper=zookeeper, topics={"t": 2}, **settings) as cluster,
    ):
        yield cluster.bootstrap_servers, zookeeper.address


CLIENTS: dict[str, Callable[[str, str], Any]] = {
    "producer": lambda kafka, zk: Producer(kafka),
    "idempotent producer": lambda kafka, zk: Producer(kafka, enable_idempotence=True),
    "transactional producer": lambda kafka, zk: Producer(kafka, transactional_id="tx"),
    "consumer": lambda kafka, zk: Consumer("t", bootstrap_servers=kafka),
    "consumer of a pattern": lambda kafka, zk: Consumer(bootstrap_servers=kafka, pattern="t.*"),
    "consumer that assigns": lambda kafka, zk: Consumer(bootstrap_servers=kafka, group_id="g"),
    "member of a group": lambda kafka, zk: Consumer("t", bootstrap_servers=kafka, group_id="g"),
    "member by a pattern": lambda kafka, zk: Consumer(bootstrap_servers=kafka, group_id="g", pattern="t.*"),
    "admin": lambda kafka, zk: Admin(kafka),
    "mirror": lambda kafka, zk: Mirror(kafka, kafka, topics=["t"], rename={"t": "copy"}),
    "ZooKeeper": lambda kafka, zk: ZooKeeper(zk),
    "administrator of ZooKeeper": lambda kafka, zk: ZooKeeperAdmin(zk),
    "old consumer": lambda kafka, zk: LegacyConsumer("t", zookeeper=zk, group_id="old"),
    "migration": lambda kafka, zk: GroupMigration(zk, kafka, "old"),
    "embedded cluster": lambda kafka, zk: EmbeddedCluster(),
    "embedded ZooKeeper": lambda kafka, zk: EmbeddedZooKeeper(),
}


@pytest.mark.parametrize("kind", CLIENTS)
async def test_a_client_that_is_entered_by_hand_leaves_no_task(kind: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with servers() as (kafka, zk):
            before = own_tasks()
            client = CLIENTS[kind](kafka, zk)
            await client.__aenter__()
            assert len(own_tasks()) > len(before)
            await client.aclose()
            assert own_tasks() == before
            await client.aclose()
            await client.__aexit__(None, None, None)
            assert own_tasks() == before


@pytest.mark.parametrize("kind", CLIENTS)
async def test_a_client_that_was_never_entered_is_closed_too(kind: str) -> None:
    client = CLIENTS[kind]("127.0.0.1:1", "127.0.0.1:1")
    await client.aclose()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_member_leaves_no_task(protocol: str) -> None:
    """Another task waits for records and is ended too."""
    with anyio.fail_after(BOUND_S):
        async with EmbeddedCluster(topics={"t": 2}) as cluster:
            before = own_tasks()
            consumer = Consumer("t", bootstrap_servers=cluster.bootstrap_servers, group_id="g", group_protocol=protocol)
            await consumer.__aenter__()

            async def read() -> None:
                async for _ in consumer:
                    raise AssertionError("there are no records")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                await anyio.wait_all_tasks_blocked()
                await consumer.aclose()
            assert own_tasks() == before
            with pytest.raises(ClosedError):
                await consumer.getone()


class ClosingListener(RebalanceListener):
    """Closes the consumer as soon as it has partitions, in a task that is part of the consumer."""

    consumer: Consumer

    async def partitions_assigned(self, added: frozenset[TopicPartition]) -> None:
        await self.consumer.aclose()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_close_by_the_listener_does_not_wait_for_the_listener(protocol: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with EmbeddedCluster(topics={"t": 2}) as cluster:
            before = own_tasks()
            listener = ClosingListener()
            listener.consumer = consumer = Consumer(
                "t",
                bootstrap_servers=cluster.bootstrap_servers,
                group_id="g",
                group_protocol=protocol,
                listener=listener,
            )
            with suppress(ClosedError):  # where it is closed while it is entered
                await consumer.__aenter__()
            await listener.consumer.aclose()
            assert own_tasks() == before


async def test_records_of_a_producer_that_is_closed_by_hand_are_delivered() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        before = own_tasks()
        producer = await Producer(cluster.bootstrap_servers, linger_ms=60_000).__aenter__()
        delivery = producer.enqueue("t", b"v")
        await producer.aclose()
        assert (await delivery).offset == 0
        assert own_tasks() == before
