"""Topics made, grown and deleted by what is written to ZooKeeper; the controller does the rest.

Sources: AdminUtils, TopicCommand, TopicDeletionManager of 0.8.2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pykafka08.errors import (
    AdminRefusedError,
    BadVersionError,
    ConfigError,
    NodeExistsError,
    NoNodeError,
    UnknownTopicError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.protocol.messages import ApiKey
from pykafka08.records.topic_name import INTERNAL_TOPICS
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.changes import change
from pykafka08.zookeeper.admin.guarded import Guarded, wait_until
from pykafka08.zookeeper.admin.names import check_topic_name, colliding
from pykafka08.zookeeper.admin.placement import place, wrong_assignment
from pykafka08.zookeeper.admin.release import Capabilities
from pykafka08.zookeeper.nodes.brokers import PartitionState, Topic
from pykafka08.zookeeper.nodes.configs import Config
from pykafka08.zookeeper.operations import Create, Operation, Write

__all__ = ["TopicAdministration", "no_such_topic"]

Assignment = Mapping[int, Sequence[int]]
"""Partition -> broker ids, the preferred leader first."""


@dataclass(frozen=True)
class _NewTopic:
    name: str
    data: bytes
    config: bytes | None
    """None where the brokers are of 0.8.0, which has no settings of topics."""


class TopicAdministration(Guarded):
    """Topics."""

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        *,
        configs: Mapping[str, str] | None = None,
        assignment: Assignment | None = None,
        validate_only: bool = False,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Assignment:
        """Create a topic, and return which brokers have each partition.

        ``assignment`` says that by hand, and replaces both numbers.  ``wait``: return when each partition has a leader,
        or raise RequestTimeoutError.  NodeExistsError if there is one of that name; AdminRefusedError; ConfigError.
        """
        check_topic_name(name)
        found = await self._check_writable(f"topic {name!r} is not created", ApiKey.CREATE_TOPICS)
        has_settings = await self.zk.exists(f"{paths.CONFIG}/topics") is not None
        if configs and not has_settings:
            raise AdminRefusedError(
                "the brokers are of 0.8.0, which has no settings of topics", path=paths.topic_config(name)
            )
        if configs and not self.is_forced:
            await self._check_settings(f"topics/{name}", configs, found)
        await self._check_name_is_free(name)
        chosen = self._placed(found, partitions, replication_factor, assignment)
        topic = Topic(partitions=chosen)
        config = Config(config=dict(configs or {})).encode() if has_settings else None
        if validate_only:
            return chosen
        await self._create(_NewTopic(name, topic.encode(), config))
        if wait:
            await self._wait_led(name, list(chosen), timeout)
        return chosen

    async def _check_name_is_free(self, name: str) -> None:
        others = await reading.topic_names(self.zk)
        if name in others:
            raise NodeExistsError(f"there is a topic {name!r} already", path=paths.topic(name))
        if await self.zk.exists(paths.deleted_topic(name)) is not None:
            raise AdminRefusedError(
                f"topic {name!r} is marked for deletion, and would be deleted at once", path=paths.deleted_topic(name)
            )
        other = colliding(name, others)
        if other is not None and not self.is_forced:
            raise AdminRefusedError(
                f"topic {name!r} would share its metrics with topic {other!r}, as '.' and '_' are one in their names",
                path=paths.topic(name),
            )

    def _placed(
        self, found: Capabilities, partitions: int, replicas: int, assignment: Assignment | None
    ) -> dict[int, list[int]]:
        alive = sorted(found.brokers)
        if assignment is not None:
            if sorted(assignment) != list(range(len(assignment))) or not assignment:
                raise ConfigError(f"the partitions of a topic are numbered from 0 on, not {sorted(assignment)}")
            wrong = wrong_assignment(assignment, alive)
            if wrong:
                raise ConfigError(wrong)
            return {partition: list(assignment[partition]) for partition in sorted(assignment)}
        if partitions < 1 or replicas < 1:
            raise ConfigError(f"partitions={partitions}, replication_factor={replicas}: both are at least 1")
        size = max(1, len(alive))
        start, shift = random.randrange(size), random.randrange(size)  # noqa: S311 - spreads load
        return place(alive, partitions, replicas, start=start, shift=shift, racks=_racks(found))

    async def _create(self, topic: _NewTopic) -> None:
        """Both nodes at once, so that of two creators one has done everything and the other nothing."""
        path, config_path = paths.topic(topic.name), paths.topic_config(topic.name)
        operations: list[Operation] = []
        before = await self._left_behind(config_path) if topic.config is not None else None
        if topic.config is not None:
            operations.append(
                Create(config_path, topic.config) if before is None else Write(config_path, topic.config, before[1])
            )
        operations.append(Create(path, topic.data))
        try:
            await self.zk.multi(operations)
        except UnsupportedVersionError:
            await self._create_in_steps(topic, before)
        except (NodeExistsError, BadVersionError, NoNodeError) as error:
            raise NodeExistsError(f"somebody else created topic {topic.name!r} just now", path=path) from error

    async def _left_behind(self, config_path: str) -> tuple[bytes, int] | None:
        """The settings of a topic that is no more, and their version."""
        try:
            data, stat = await self.zk.read(config_path)
        except NoNodeError:
            return None
        return data, stat.version

    async def _create_in_steps(self, topic: _NewTopic, before: tuple[bytes, int] | None) -> None:
        """For ZooKeeper 3.3, beside Kafka 0.8.0 and 0.8.1, which cannot do both at once."""
        path, config_path = paths.topic(topic.name), paths.topic_config(topic.name)
        lost = NodeExistsError(f"somebody else created topic {topic.name!r} just now", path=path)
        written = None
        try:
            if topic.config is not None and before is None:
                await self.zk.create(config_path, topic.config)
            elif topic.config is not None and before is not None:
                written = await self.zk.write(config_path, topic.config, version=before[1])
        except (NodeExistsError, BadVersionError, NoNodeError):
            raise lost from None
        try:
            await self.zk.create(path, topic.data)
        except NodeExistsError:
            if before is not None and written is not None:
                await self._put_back(config_path, before[0], written.version)
            raise lost from None

    async def _put_back(self, path: str, data: bytes, version: int) -> None:
        try:
            await self.zk.write(path, data, version=version)
        except (BadVersionError, NoNodeError):
            return  # the winner has written his own

    async def _wait_led(self, name: str, numbers: Sequence[int], timeout: float | None) -> None:
        async def is_led() -> bool:
            for number in numbers:
                state = await reading.node(self.zk, PartitionState, paths.partition_state(name, number))
                if state is None or state.leader < 0:
                    return False
            return True

        what = f"topic {name!r} is written, but not all of its partitions have a leader: is there a controller?"
        await wait_until(is_led, what, timeout)

    async def add_partitions(
        self,
        name: str,
        total: int,
        *,
        assignment: Assignment | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> Assignment:
        """Let a topic grow to ``total`` partitions; those that were added, and their brokers.

        ``assignment`` places the new ones by hand.  What is there is not touched.  UnknownTopicError; ConfigError if
        ``total`` is not more than there are; AdminRefusedError.
        """
        found = await self._check_writable(f"topic {name!r} does not grow", ApiKey.CREATE_PARTITIONS)
        if name in INTERNAL_TOPICS:
            raise AdminRefusedError(
                f"{name} keeps each key's partition for ever: what it holds could not be found any more",
                path=paths.topic(name),
            )
        if await self.zk.exists(paths.deleted_topic(name)) is not None:
            raise AdminRefusedError(f"topic {name!r} is being deleted", path=paths.deleted_topic(name))
        if await self.zk.exists(paths.REASSIGNMENT) is not None:
            raise AdminRefusedError("partitions are being moved; try again when that is over", path=paths.REASSIGNMENT)
        added: dict[int, list[int]] = {}

        def grow(topic: Topic | None) -> Topic:
            if topic is None:
                raise no_such_topic(name)
            added.clear()
            added.update(self._added(found, topic, total, assignment))
            return replace(topic, partitions={**topic.partitions, **added})

        await change(self.zk, Topic, paths.topic(name), grow)
        if wait:
            await self._wait_led(name, list(added), timeout)
        return added

    def _added(
        self, found: Capabilities, topic: Topic, total: int, assignment: Assignment | None
    ) -> Mapping[int, list[int]]:
        size = len(topic.partitions)
        if total <= size:
            raise ConfigError(f"the topic has {size} partitions, and partitions are never taken away")
        numbers = list(range(size, total))
        replicas = len(topic.partitions[0]) if 0 in topic.partitions else 1
        alive = sorted(found.brokers)
        if assignment is None:
            first = topic.partitions[0][0] if topic.partitions.get(0) else -1
            start = alive.index(first) if first in alive else 0
            return place(
                alive, total - size, replicas, start=start, shift=start, first_partition=size, racks=_racks(found)
            )
        if sorted(assignment) != numbers:
            raise ConfigError(f"the new partitions are {numbers}, not {sorted(assignment)}")
        wrong = wrong_assignment(assignment, alive)
        if wrong is None and len(assignment[size]) != replicas:
            wrong = f"the topic has {replicas} replicas of each partition, not {len(assignment[size])}"
        if wrong:
            raise ConfigError(wrong)
        return {number: list(assignment[number]) for number in numbers}

    async def delete_topic(self, name: str, *, wait: bool = True, timeout: float | None = None) -> bool:
        """Mark a topic for deletion; False if it was marked already.  ``wait``: return when it is gone.

        Brokers delete only with ``delete.topic.enable``, which is false before 1.0: with it false older ones leave the
        mark for ever (RequestTimeoutError), and 0.11 and later take it away.  0.8.0 cannot: AdminRefusedError.
        """
        await self._check_writable(f"topic {name!r} is not deleted", ApiKey.DELETE_TOPICS)
        if name in INTERNAL_TOPICS and not self.is_forced:
            raise AdminRefusedError(f"{name} is Kafka's own", path=paths.topic(name))
        if await self.zk.exists(paths.topic(name)) is None:
            raise no_such_topic(name)
        if await self.zk.exists(paths.DELETE_TOPICS) is None:
            raise AdminRefusedError("brokers of 0.8.0 cannot delete a topic", path=paths.DELETE_TOPICS)
        is_new = True
        try:
            await self.zk.create(paths.deleted_topic(name))
        except NodeExistsError:
            is_new = False
        if wait:
            await self._wait_deleted(name, timeout)
        return is_new

    async def _wait_deleted(self, name: str, timeout: float | None) -> None:
        async def is_gone() -> bool:
            mark, topic = await self.zk.exists(paths.deleted_topic(name)), await self.zk.exists(paths.topic(name))
            if mark is None and topic is not None:
                raise AdminRefusedError(
                    f"the brokers took the mark away and kept topic {name!r}: they have delete.topic.enable=false",
                    path=paths.topic(name),
                )
            return mark is None

        what = (
            f"topic {name!r} is marked for deletion and still there: delete.topic.enable may be false, or a broker down"
        )
        await wait_until(is_gone, what, timeout)


def _racks(found: Capabilities) -> dict[int, str] | None:
    """None unless every broker has one."""
    racks = {broker_id: each.rack for broker_id, each in found.brokers.items() if each.rack}
    return racks if racks and len(racks) == len(found.brokers) else None


def no_such_topic(name: str) -> UnknownTopicError:
    error = broker_error(3, "ZooKeeper has no such topic", topic=name)
    assert isinstance(error, UnknownTopicError)
    return error
