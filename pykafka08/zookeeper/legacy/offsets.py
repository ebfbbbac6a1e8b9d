"""Where an old group keeps its offsets: in ZooKeeper, in Kafka (0.8.2 and later), or in both while it moves.

Here is reading and writing them.  What is to be committed, and when, is ``reading``'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import anyio

from pykafka08.cluster.client import Client
from pykafka08.driver import library_logger
from pykafka08.errors import ClosedError, KafkaError, NodeExistsError, NoNodeError
from pykafka08.group.coordinator import GroupCoordinator
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy.settings import LegacyConfig
from pykafka08.zookeeper.nodes.consumers import Offset

__all__ = ["LegacyOffsets"]

Partitions = frozenset[TopicPartition]

log = library_logger("zookeeper")


class LegacyOffsets:
    """The committed offsets of one group; Kafka's are asked for with the client that :meth:`use` gives."""

    def __init__(self, zk: ZooKeeper, config: LegacyConfig) -> None:
        self._zk = zk
        self._config = config
        self._coordinator: GroupCoordinator | None = None

    def use(self, client: Client) -> None:
        """The brokers can be asked from now on."""
        if self._config.offsets_storage == "kafka":
            self._coordinator = GroupCoordinator(client, self._config.group, _Outsider())

    async def aclose(self) -> None:
        if self._coordinator is not None:
            await self._coordinator.aclose()

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | KafkaError | None]:
        """The next offset to read; None where there is none, an error where it cannot be told.

        With both stores in use the greater one counts.
        """
        wanted = tuple(partitions)
        found: dict[TopicPartition, int | KafkaError | None] = dict.fromkeys(wanted)
        if self._config.commits_to_zookeeper:
            await self._read_all(found)
        if self._config.offsets_storage == "kafka":
            in_kafka = await self._in_kafka().committed(wanted)
            for tp, each in in_kafka.items():
                other = found[tp]
                if each is not None and each.offset >= 0 and not isinstance(other, KafkaError):
                    found[tp] = each.offset if other is None else max(each.offset, other)
        return found

    async def _read_all(self, found: dict[TopicPartition, int | KafkaError | None]) -> None:
        async def read(tp: TopicPartition) -> None:
            path = paths.offset(self._config.group_id, *tp)
            try:
                number = Offset.decode((await self._zk.read(path)).data, path).number
                found[tp] = number if number >= 0 else None
            except NoNodeError:
                found[tp] = None
            except KafkaError as error:
                found[tp] = error

        async with anyio.create_task_group() as tasks:
            for tp in found:
                tasks.start_soon(read, tp)

    async def commit(
        self, offsets: Mapping[TopicPartition, int], *, timeout: float
    ) -> dict[TopicPartition, KafkaError]:
        """Write them down; the answer has what was refused, and why.  To ZooKeeper only what Kafka has taken."""
        refused: dict[TopicPartition, KafkaError] = {}
        deadline = anyio.current_time() + timeout
        if self._config.offsets_storage == "kafka":
            wanted = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
            refused |= await self._in_kafka().commit(wanted, timeout=timeout)
        if self._config.commits_to_zookeeper:
            taken = {tp: offset for tp, offset in offsets.items() if tp not in refused}
            refused |= await self._write_all(taken, deadline)
        return refused

    async def _write_all(
        self, offsets: Mapping[TopicPartition, int], deadline: float
    ) -> dict[TopicPartition, KafkaError]:
        refused: dict[TopicPartition, KafkaError] = {}

        async def write(tp: TopicPartition, offset: int) -> None:
            try:
                await self._write(paths.offset(self._config.group_id, *tp), Offset(offset).encode(), deadline)
            except KafkaError as error:
                refused[tp] = error

        async with anyio.create_task_group() as tasks:
            for tp, offset in offsets.items():
                tasks.start_soon(write, tp, offset)
        return refused

    async def _write(self, path: str, data: bytes, deadline: float) -> None:
        for _ in range(3):
            left = max(0.0, deadline - anyio.current_time())
            try:
                await self._zk.write(path, data, timeout=left)
                return
            except NoNodeError:
                pass
            try:
                await self._zk.create(path, data, make_parents=True, timeout=left)
                return
            except NodeExistsError:
                continue  # somebody was quicker; it is written over

    def _in_kafka(self) -> GroupCoordinator:
        if self._coordinator is None:
            raise ClosedError("no broker of the cluster is connected yet: offsets in Kafka cannot be reached")
        return self._coordinator


class _Outsider:
    """Hears nothing: who subscribes to nothing is given nothing."""

    async def partitions_assigned(self, added: Partitions) -> None: ...
    async def partitions_revoked(self, partitions: Partitions) -> None: ...
    async def partitions_lost(self, partitions: Partitions) -> None: ...
