"""Where an old group keeps its offsets: in ZooKeeper, in Kafka (0.8.2 and later), or in both while it moves.

Here is reading and writing them.  What is to be committed, and when, is ``reading``'s to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import anyio

from pykafka08.cluster.client import Client
from pykafka08.driver import library_logger
from pykafka08.errors import (
    AuthorizationError,
    BadVersionError,
    ClosedError,
    KafkaError,
    NodeExistsError,
    NoNodeError,
    SecurityError,
)
from pykafka08.group.coordinator import GroupCoordinator
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.legacy.claims import Objection
from pykafka08.zookeeper.legacy.settings import LegacyConfig
from pykafka08.zookeeper.nodes.consumers import Offset

__all__ = ["LegacyOffsets"]

Partitions = frozenset[TopicPartition]

log = library_logger("zookeeper")

WRITES = 5
"""Tries of one offset, if others write it at the same time."""


class LegacyOffsets:
    """The committed offsets of one group; Kafka's are asked for with the client that :meth:`use` gives."""

    def __init__(self, zk: ZooKeeper, config: LegacyConfig) -> None:
        self._zk = zk
        self._config = config
        self._coordinator: GroupCoordinator | None = None
        self._client: Client | None = None
        self._versions: dict[TopicPartition, int] = {}
        """Of the nodes, as they were read or written last: a write that comes late must not undo another's."""

    def use(self, client: Client) -> None:
        """The brokers can be asked from now on."""
        self._client = client
        if self._config.offsets_storage == "kafka":
            self._coordinator = GroupCoordinator(client, self._config.group, _Outsider())

    def refusal(self) -> SecurityError | None:
        """That of the brokers that keep the offsets, if they do."""
        if self._client is None or self._coordinator is None:
            return None
        node = self._coordinator.node_id
        return self._client.refusal(None if node is None else [node])

    def forget(self, tp: TopicPartition) -> None:
        """The partition is given up."""
        self._versions.pop(tp, None)

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
            for tp, each in (await self._read_kafka(wanted)).items():
                other = found[tp]
                if isinstance(other, KafkaError):
                    continue
                if isinstance(each, KafkaError):
                    found[tp] = each
                elif each is not None and each.offset >= 0:
                    found[tp] = each.offset if other is None else max(each.offset, other)
        return found

    async def _read_kafka(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | KafkaError | None]:
        """With an AuthorizationError where the user may not read the offset."""
        found: dict[TopicPartition, OffsetAndMetadata | KafkaError | None] = {}
        left = set(partitions)
        while left:
            try:
                return {**found, **await self._in_kafka().committed(left)}
            except AuthorizationError as error:  # noqa: PERF203 - the others are asked for again
                refused = {tp for tp in left if error.topic in (None, tp.topic)}
                found.update(dict.fromkeys(refused, error))
                left -= refused
        return found

    async def _read_all(self, found: dict[TopicPartition, int | KafkaError | None]) -> None:
        async def read(tp: TopicPartition) -> None:
            path = paths.offset(self._config.group_id, *tp)
            try:
                node = await self._zk.read(path)
                self._versions[tp] = node.stat.version
                number = Offset.decode(node.data, path).number
                found[tp] = number if number >= 0 else None
            except NoNodeError:
                self._versions.pop(tp, None)
                found[tp] = None
            except KafkaError as error:
                found[tp] = error

        async with anyio.create_task_group() as tasks:
            for tp in found:
                tasks.start_soon(read, tp)

    async def commit(
        self, offsets: Mapping[TopicPartition, int], objection: Objection, *, timeout: float
    ) -> dict[TopicPartition, KafkaError]:
        """Write them down; the answer has what was refused, and why.  To ZooKeeper only what Kafka has taken.

        ``objection`` is asked before each thing that is sent.
        """
        refused: dict[TopicPartition, KafkaError] = {}
        deadline = anyio.current_time() + timeout
        if self._config.offsets_storage == "kafka":
            wanted = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
            refused |= await self._in_kafka().commit(wanted, timeout=timeout, objection=objection)
        if self._config.commits_to_zookeeper:
            taken = {tp: offset for tp, offset in offsets.items() if tp not in refused}
            refused |= await self._write_all(taken, objection, deadline)
        return refused

    async def _write_all(
        self, offsets: Mapping[TopicPartition, int], objection: Objection, deadline: float
    ) -> dict[TopicPartition, KafkaError]:
        refused: dict[TopicPartition, KafkaError] = {}

        async def write(tp: TopicPartition, offset: int) -> None:
            try:
                await self._write(tp, Offset(offset).encode(), objection, deadline)
            except KafkaError as error:
                refused[tp] = error

        async with anyio.create_task_group() as tasks:
            for tp, offset in offsets.items():
                tasks.start_soon(write, tp, offset)
        return refused

    async def _write(self, tp: TopicPartition, data: bytes, objection: Objection, deadline: float) -> None:
        """Over what was read last.  If somebody has written meanwhile, over that too, while the partition is ours."""
        path = paths.offset(self._config.group_id, *tp)
        for _ in range(WRITES):
            if (why := objection(tp)) is not None:
                raise why
            left = max(0.0, deadline - anyio.current_time())
            version = self._versions.get(tp)
            try:
                if version is None:
                    await self._zk.create(path, data, make_parents=True, timeout=left)
                    self._versions[tp] = 0
                else:
                    self._versions[tp] = (await self._zk.write(path, data, version=version, timeout=left)).version
                return
            except NoNodeError:
                self._versions.pop(tp, None)
            except (BadVersionError, NodeExistsError):
                stat = await self._zk.exists(path, timeout=left)
                if stat is None:
                    self._versions.pop(tp, None)
                else:
                    self._versions[tp] = stat.version
        raise BadVersionError(f"others wrote the offset {WRITES} times while it was committed", path=path)

    def _in_kafka(self) -> GroupCoordinator:
        if self._coordinator is None:
            raise ClosedError("no broker of the cluster is connected yet: offsets in Kafka cannot be reached")
        return self._coordinator


class _Outsider:
    """Hears nothing: who subscribes to nothing is given nothing."""

    async def partitions_assigned(self, added: Partitions) -> None: ...
    async def partitions_revoked(self, partitions: Partitions) -> None: ...
    async def partitions_lost(self, partitions: Partitions) -> None: ...
