"""Leaders and replicas of partitions that the controller is asked to move.

Sources: PreferredReplicaLeaderElectionCommand, ReassignPartitionsCommand of 0.8.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from pykafka08.errors import AdminRefusedError, ConfigError, NodeExistsError
from pykafka08.protocol.messages import ApiKey
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.guarded import Guarded, wait_until
from pykafka08.zookeeper.admin.placement import wrong_assignment
from pykafka08.zookeeper.admin.topics import no_such_topic
from pykafka08.zookeeper.nodes.brokers import Topic
from pykafka08.zookeeper.nodes.commands import PartitionName, PartitionReassignment, PreferredElection, Reassignment

__all__ = ["Move", "PartitionAdministration"]


Moves = Mapping[TopicPartition, Sequence[int]] | Mapping[tuple[str, int], Sequence[int]]
"""The brokers that each partition shall have, the one that shall lead first."""


class Move(Enum):
    """How far a partition is on its way to other brokers."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """The controller has given it up: see its log."""


class PartitionAdministration(Guarded):
    """Where partitions are, and who leads them."""

    async def elect_preferred_leaders(
        self,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        wait: bool = True,
        timeout: float | None = None,
    ) -> list[TopicPartition]:
        """Let the first replica of each partition lead again, of all without ``partitions``; those asked for.

        AdminRefusedError while another election runs.  ``wait``: return when the controller has taken it on.
        """
        await self._check_writable("no election is begun", ApiKey.ELECT_LEADERS)
        wanted = await self._all_partitions() if partitions is None else [TopicPartition(*each) for each in partitions]
        if not wanted:
            raise ConfigError("there is no partition to elect a leader of")
        await self._check_partitions(wanted)
        named = [PartitionName(topic=each.topic, partition=each.partition) for each in sorted(set(wanted))]
        node = PreferredElection(partitions=named)
        await self._ask(paths.PREFERRED_ELECTION, node.encode(), "another election of preferred leaders runs")
        if wait:
            await self._wait_taken(paths.PREFERRED_ELECTION, "the election", timeout)
        return sorted(set(wanted))

    async def reassign(
        self,
        moves: Moves,
        *,
        wait: bool = True,
        timeout: float | None = None,
    ) -> dict[TopicPartition, Move]:
        """Move partitions to these brokers, the first of which shall lead.  How far each is: see ``reassignment``.

        AdminRefusedError while another reassignment runs: the controller takes one at a time.
        """
        found = await self._check_writable("no partition is moved", ApiKey.ALTER_PARTITION_REASSIGNMENTS)
        wanted = {TopicPartition(*each): list(ids) for each, ids in moves.items()}
        if not wanted:
            raise ConfigError("there is no partition to move")
        await self._check_partitions(list(wanted))
        for tp, ids in wanted.items():
            wrong = wrong_assignment({tp.partition: ids}, sorted(found.brokers))
            if wrong:
                raise ConfigError(f"topic {tp.topic!r}: {wrong}")
        entries = [
            PartitionReassignment(topic=tp.topic, partition=tp.partition, replicas=ids)
            for tp, ids in sorted(wanted.items())
        ]
        await self._ask(paths.REASSIGNMENT, Reassignment(partitions=entries).encode(), "another reassignment runs")
        if wait:
            await self._wait_taken(paths.REASSIGNMENT, "the reassignment", timeout)
        return await self.reassignment(wanted)

    async def reassignment(self, moves: Moves) -> dict[TopicPartition, Move]:
        """How far partitions are on their way to these brokers."""
        running = await reading.node(self.zk, Reassignment, paths.REASSIGNMENT)
        moving = {TopicPartition(each.topic, each.partition) for each in running.partitions} if running else set()
        states: dict[TopicPartition, Move] = {}
        for (name, number), target in moves.items():
            topic = await reading.node(self.zk, Topic, paths.topic(name))
            now = list(topic.partitions.get(number, ())) if topic is not None else []
            tp = TopicPartition(name, number)
            is_there = now == list(target)
            states[tp] = Move.RUNNING if tp in moving else Move.DONE if is_there else Move.FAILED
        return states

    async def _all_partitions(self) -> list[TopicPartition]:
        found = []
        for name in await reading.topic_names(self.zk):
            topic = await reading.node(self.zk, Topic, paths.topic(name))
            found += [TopicPartition(name, number) for number in sorted(topic.partitions)] if topic else []
        return found

    async def _check_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        topics: dict[str, Topic] = {}
        for name, number in partitions:
            if name not in topics:
                topic = await reading.node(self.zk, Topic, paths.topic(name))
                if topic is None:
                    raise no_such_topic(name)
                topics[name] = topic
            if number not in topics[name].partitions:
                raise ConfigError(f"topic {name!r} has no partition {number}")
            if await self.zk.exists(paths.deleted_topic(name)) is not None:
                raise AdminRefusedError(f"topic {name!r} is being deleted", path=paths.deleted_topic(name))

    async def _ask(self, path: str, data: bytes, busy: str) -> None:
        try:
            await self.zk.create(path, data, make_parents=True)
        except NodeExistsError:
            raise AdminRefusedError(f"{busy}; try again when the controller has deleted the node", path=path) from None

    async def _wait_taken(self, path: str, what: str, timeout: float | None) -> None:
        async def is_taken() -> bool:
            return await self.zk.exists(path) is None

        await wait_until(is_taken, f"{what} is asked for, but not over: see the controller's log", timeout)
