"""A cluster's ZooKeeper for tests, filled by hand: as if brokers of some release had registered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
from pykafka08.errors import NodeExistsError, NoNodeError
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.admin.admin import ZooKeeperAdmin
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.brokers import Broker, PartitionState, Topic

PARENTS = (
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.CONSUMERS,
    paths.DELETE_TOPICS,
    f"{paths.CONFIG}/topics",
    paths.CONFIG_CHANGES,
)
"""What brokers of 0.8.1 and later make when they start."""

NOBODY = "127.0.0.1:1"

PATIENT = {"session_timeout_ms": 60_000, "request_timeout_ms": 60_000}
PATIENT_CLIENT = {"default_api_timeout_ms": 60_000}
"""For a machine that is busy with other work: sessions and calls that outlive an event loop that stood still."""


@dataclass
class Stage:
    """The ensemble, a client of it, and an administrator over that client."""

    zk: ZooKeeper
    admin: ZooKeeperAdmin
    address: str

    async def put(self, path: str, data: bytes | str = b"") -> None:
        raw = data.encode() if isinstance(data, str) else data
        try:
            await self.zk.create(path, raw, make_parents=True)
        except NodeExistsError:
            await self.zk.write(path, raw)

    async def text(self, path: str) -> str | None:
        try:
            return (await self.zk.read(path)).data.decode()
        except NoNodeError:
            return None

    async def register(self, brokers: Mapping[int, str] | int, version: int = 1) -> None:
        """Brokers by id and address; a number stands for as many that nobody reaches."""
        if isinstance(brokers, int):
            brokers = dict.fromkeys(range(1, brokers + 1), NOBODY)
        for broker_id, address in brokers.items():
            host, _, port = address.rpartition(":")
            endpoints = None if version == 1 else (f"PLAINTEXT://{address}",)
            node = Broker(version=version, host=host, port=int(port), endpoints=endpoints, timestamp="1")
            await self.put(paths.broker(broker_id), node.encode())

    async def topic(self, name: str, partitions: Mapping[int, list[int]]) -> None:
        await self.put(paths.topic(name), Topic(partitions=partitions).encode())
        for number, replicas in partitions.items():
            await self.lead(name, number, replicas)

    async def lead(self, name: str, number: int, replicas: list[int]) -> None:
        state = PartitionState(leader=replicas[0], leader_epoch=0, isr=replicas, controller_epoch=1)
        await self.put(paths.partition_state(name, number), state.encode())

    async def changes(self) -> list[str]:
        """What the notices of changed settings say, in order."""
        names = await self.zk.children(paths.CONFIG_CHANGES)
        return [await self.text(f"{paths.CONFIG_CHANGES}/{name}") or "" for name in names]


@asynccontextmanager
async def staged(
    brokers: Mapping[int, str] | int = 3, version: int = 1, *, force: bool = False
) -> AsyncIterator[Stage]:
    """Brokers that are registered and do nothing; below a chroot, as clusters often are."""
    async with EmbeddedZooKeeper() as server:
        async with ZooKeeper(server.address, **PATIENT) as root:
            await root.create("/chroot")
        address = f"{server.address}/chroot"
        async with (
            ZooKeeper(address, **PATIENT) as zk,
            ZooKeeperAdmin(zk, force=force, client=PATIENT_CLIENT) as admin,
        ):
            stage = Stage(zk, admin, address)
            for path in PARENTS:
                await stage.put(path)
            await stage.register(brokers, version)
            with anyio.fail_after(120):
                yield stage
