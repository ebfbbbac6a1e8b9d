"""Moving a group's offsets from ZooKeeper to Kafka (0.8.2 and later): at once, or helped by dual commit.

At once: while nobody of the group is alive, what ZooKeeper has is committed to Kafka, forward only.  With dual commit
the members do it themselves: they are restarted one by one with ``offsets.storage=kafka`` and
``dual.commit.enabled=true``, and, when :meth:`GroupMigration.plan` says that Kafka has caught up everywhere, once more
with ``dual.commit.enabled=false``.  Sources: Kafka 0.9's implementation page, "Migrating offsets from ZooKeeper to
Kafka"; the old consumer's ``commitOffsets`` and ``fetchOffsets``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pykafka08.admin.admin import Admin
from pykafka08.consumer.consumer import Consumer
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AdminRefusedError,
    BrokerError,
    ClosedError,
    KafkaError,
    MalformedNodeError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.records.record import TopicPartition
from pykafka08.setting_hints import hint
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.same_cluster import why_two_clusters
from pykafka08.zookeeper.settings import without_secrets

__all__ = ["GroupMigration", "MigratedPartition", "MigrationReport", "Outcome"]


class Outcome(Enum):
    """What is, or was, to be done with one partition's offset."""

    TO_COMMIT = "to be committed to Kafka"
    COMMITTED = "committed to Kafka"
    SAME = "the same in both"
    KAFKA_AHEAD = "further on in Kafka; left as it is"
    BEYOND_END = "beyond the end of the log; not committed unless forced"
    NO_PARTITION = "the topic has no such partition any more; left out"
    REFUSED = "refused by the brokers"


OPEN = (Outcome.TO_COMMIT, Outcome.BEYOND_END, Outcome.REFUSED)
"""Kafka lacks what ZooKeeper has."""


@dataclass(frozen=True)
class MigratedPartition:
    """One partition: the offset read next as each store has it, and where the log begins and ends."""

    topic: str
    partition: int
    zookeeper_offset: int
    kafka_offset: int | None
    log_start: int | None
    log_end: int | None
    outcome: Outcome
    error: str | None = None

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class MigrationReport:
    """``members`` are those who are alive in ZooKeeper: while there are some, only they move offsets."""

    group_id: str
    members: Sequence[str]
    partitions: Sequence[MigratedPartition]

    @property
    def is_in_kafka(self) -> bool:
        """True if Kafka has everything, at ZooKeeper's offset or further: dual commit may be switched off."""
        return not any(each.outcome in OPEN for each in self.partitions)


class GroupMigration:
    """One group, to be moved: ``async with GroupMigration("zk:2181", "kafka:9092", "billing") as migration``.

    ``zookeeper_settings`` are those of :class:`ZooKeeperConfig`, ``settings`` those of :class:`ClientConfig`.
    """

    def __init__(
        self,
        zookeeper: str,
        bootstrap_servers: str | Iterable[str],
        group_id: str,
        *,
        zookeeper_settings: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        paths.consumer_group(group_id)  # a name that cannot be is told at once
        self._group_id = group_id
        zookeeper_settings = without_secrets(zookeeper_settings or {})
        self._zookeeper = ZooKeeper(zookeeper, **zookeeper_settings)
        self._admin = Admin(bootstrap_servers, **settings)
        self._consumer = Consumer(bootstrap_servers=bootstrap_servers, **settings)
        self._opened: AsyncExitStack | None = None

    async def __aenter__(self) -> GroupMigration:
        if self._opened is not None:
            raise ClosedError("a migration cannot be reused; create a new one")
        self._opened = AsyncExitStack()
        try:
            await self._opened.enter_async_context(self._zookeeper)
            await self._opened.enter_async_context(self._admin)
            await self._opened.enter_async_context(self._consumer)
        except BaseException:
            await self._opened.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections to Kafka and ZooKeeper; leaving the block does it.  Any task may call it."""
        if self._opened is not None:
            await self._opened.aclose()

    async def plan(self, *, force: bool = False) -> MigrationReport:
        """Where the group is in both stores, and what :meth:`run` would do; nothing is changed.

        AdminRefusedError if ZooKeeper does not know the group or has no offsets of it, or belongs to another cluster
        than the brokers (not with ``force``); UnsupportedVersionError where the brokers keep no offsets (before 0.8.2).
        """
        why = None if force else await why_two_clusters(self._zookeeper, self._admin)
        if why is not None:
            raise AdminRefusedError(
                f"{why}; offsets of one mean nothing in the other. Carry them over with a mirror; use force if a proxy "
                "only gives the brokers other addresses",
                path=paths.BROKER_IDS,
            )
        if not await self._admin.keeps_offsets(self._group_id):
            raise UnsupportedVersionError(
                "the brokers keep no offsets in Kafka, which came with 0.8.2; upgrade them first"
            )
        group = await self._group()
        # ZooKeeper first: a member with dual commit writes to Kafka before it writes there.
        offsets = {tp: offset for tp, offset in group.offsets.items() if offset >= 0}
        if not offsets:
            raise AdminRefusedError(
                f"group {self._group_id!r} has no offsets in ZooKeeper: there is nothing to move",
                path=paths.group_offsets(self._group_id),
            )
        there = await self._partitions({tp.topic for tp in offsets})
        known = [tp for tp in offsets if tp in there]
        in_kafka = await self._admin.list_group_offsets(self._group_id, known) if known else {}
        starts = await self._consumer.beginning_offsets(known) if known else {}
        ends = await self._consumer.end_offsets(known) if known else {}
        rows = []
        for tp in sorted(offsets):
            committed = in_kafka.get(tp)
            kafka_offset = None if committed is None else committed.offset
            row = MigratedPartition(*tp, offsets[tp], kafka_offset, starts.get(tp), ends.get(tp), Outcome.NO_PARTITION)
            rows.append(replace(row, outcome=_outcome(row, force=force)))
        return MigrationReport(self._group_id, _alive(group), rows)

    async def run(self, *, force: bool = False) -> MigrationReport:
        """Commit to Kafka what ZooKeeper has, and read it back; never an offset that is behind Kafka's own.

        AdminRefusedError, and nothing is changed, while members or owners of the group are alive.  ``force`` commits
        offsets beyond the end of a log too, and does not compare the clusters.
        """
        report = await self.plan(force=force)
        self._refuse_beside(report.members)
        wanted = {row.tp: row.zookeeper_offset for row in report.partitions if row.outcome is Outcome.TO_COMMIT}
        refused = await self._commit(wanted) if wanted else {}
        rows = [_after(row, refused) for row in report.partitions]
        told = await self._admin.list_group_offsets(self._group_id, list(wanted)) if wanted else {}
        for row in rows:
            found = told.get(row.tp)
            if row.outcome is Outcome.COMMITTED and (found is None or found.offset < row.zookeeper_offset):
                raise KafkaError(
                    f"group {self._group_id!r}: the offset {row.zookeeper_offset} was acknowledged, and is not there",
                    topic=row.topic,
                    partition=row.partition,
                )
        members = _alive(await self._group())
        if members:
            raise AdminRefusedError(
                f"group {self._group_id!r}: {members[0]!r} came while the offsets were moved, and may have gone on in "
                "ZooKeeper; stop it and run this again",
                path=paths.consumer_ids(self._group_id),
            )
        return MigrationReport(self._group_id, members, rows)

    async def _commit(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, KafkaError]:
        try:
            return await self._admin.alter_group_offsets(self._group_id, wanted)
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_MEMBER_ID:
                raise
            raise AdminRefusedError(
                f"group {self._group_id!r} has members in Kafka already, who alone may commit there; nothing was moved"
            ) from error

    def _refuse_beside(self, members: Sequence[str]) -> None:
        if members:
            raise AdminRefusedError(
                f"group {self._group_id!r} is alive: {', '.join(map(repr, members[:3]))}. Stop its members, or restart "
                "them one by one with offsets.storage=kafka and dual.commit.enabled=true",
                path=paths.consumer_ids(self._group_id),
            )

    async def _group(self) -> reading.Group:
        def raise_it(error: MalformedNodeError) -> None:
            if error.path is not None and error.path.startswith(paths.group_offsets(self._group_id)):
                raise error

        group = await reading.group(self._zookeeper, self._group_id, raise_it)
        if group is None:
            names = await reading.group_names(self._zookeeper)
            told = hint(self._group_id, set(names))
            raise AdminRefusedError(
                f"ZooKeeper has no group {self._group_id!r}{f' ({told})' if told else ''}; it has {len(names)}",
                path=paths.CONSUMERS,
            )
        return group

    async def _partitions(self, topics: set[str]) -> set[TopicPartition]:
        present = topics & set(await self._admin.list_topics(internal=True))
        if topics - present:
            with suppress(UnknownTopicError):  # AuthorizationError for one that is there and hidden from the user
                await self._admin.describe_topics(topics - present)
        described = await self._admin.describe_topics(present) if present else {}
        return {TopicPartition(name, number) for name, each in described.items() for number in each.partitions}


def _alive(group: reading.Group) -> list[str]:
    """Members, and owners of partitions that have no registration."""
    owners = {thread.rpartition("-")[0] or thread for thread in group.owners.values()}
    return sorted({*group.members, *owners})


def _outcome(row: MigratedPartition, *, force: bool) -> Outcome:
    if row.log_end is None:
        return Outcome.NO_PARTITION
    if row.kafka_offset is not None and row.kafka_offset >= row.zookeeper_offset:
        return Outcome.SAME if row.kafka_offset == row.zookeeper_offset else Outcome.KAFKA_AHEAD
    if row.zookeeper_offset > row.log_end and not force:
        return Outcome.BEYOND_END
    return Outcome.TO_COMMIT


def _after(row: MigratedPartition, refused: Mapping[TopicPartition, KafkaError]) -> MigratedPartition:
    if row.outcome is not Outcome.TO_COMMIT:
        return row
    if row.tp in refused:
        return replace(row, outcome=Outcome.REFUSED, error=refused[row.tp].message)
    return replace(row, outcome=Outcome.COMMITTED, kafka_offset=row.zookeeper_offset)
