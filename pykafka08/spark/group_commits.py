"""Offsets of groups: what a job has processed is committed, so that lag tools see it as they see any consumer; what a
group has committed is where a read starts.

Where a query goes on is its checkpoint's to say, whatever its group has.  Kafka from 0.8.2 on keeps groups' offsets;
those of older tools and brokers are in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from pykafka08.admin.admin import Admin
from pykafka08.config import ClientConfig, client_settings
from pykafka08.driver import library_logger
from pykafka08.errors import KafkaError, NodeExistsError, NoNodeError
from pykafka08.records.record import TopicPartition
from pykafka08.spark.client_properties import consumer_settings
from pykafka08.spark.committed_group import CommittedGroup, parse_group
from pykafka08.spark.runtime import runtime
from pykafka08.zookeeper import paths
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.consumers import Offset
from pykafka08.zookeeper.reading import group_offsets

__all__ = ["GroupCommits", "commit_offsets", "commit_or_warn", "committed_offsets"]

log = library_logger("spark")

Offsets = Mapping[TopicPartition, int]


def commit_offsets(client: ClientConfig, group: CommittedGroup, offsets: Offsets) -> None:
    """Commit the next offset of each partition; waits until it is done.

    KafkaError where that is not possible: UNKNOWN_MEMBER_ID while consumers are members of the group, for example.
    """
    if not offsets:
        return
    run, keep = runtime().run, runtime().keep
    if group.zookeeper is None:
        admin = keep(("admin", client), lambda: Admin(**client_settings(client)))
        for error in run(admin.alter_group_offsets(group.name, offsets)).values():
            raise error
    else:
        servers = group.zookeeper
        run(_write_all(keep(("zookeeper", servers), lambda: ZooKeeper(servers)), group.name, offsets))


def commit_or_warn(client: ClientConfig, group: CommittedGroup, offsets: Offsets) -> KafkaError | None:
    """:func:`commit_offsets`, whose failure is logged and returned: no query depends on it."""
    try:
        commit_offsets(client, group, offsets)
    except KafkaError as error:
        log.warning("spark.group_commit_failed", group=group.name, cause=str(error))
        return error
    return None


async def _write_all(zk: ZooKeeper, group: str, offsets: Offsets) -> None:
    for (topic, partition), offset in sorted(offsets.items()):
        path, data = paths.offset(group, topic, partition), Offset(offset).encode()
        try:
            await zk.write(path, data)
        except NoNodeError:
            try:
                await zk.create(path, data, make_parents=True)
            except NodeExistsError:
                await zk.write(path, data)


async def committed_offsets(
    config: ClientConfig, group: CommittedGroup, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """The next offset of each of these partitions, as the group has committed it; those without one are left out."""
    if group.zookeeper is None:
        async with Admin(**client_settings(config)) as admin:
            found = await admin.list_group_offsets(group.name, partitions)
        return {tp: each.offset for tp, each in found.items()}
    async with ZooKeeper(group.zookeeper) as zk:
        topics = sorted({tp.topic for tp in partitions})
        kept = await group_offsets(zk, group.name, topics=topics)
    return {tp: offset for tp, offset in kept.items() if tp in partitions}


class GroupCommits:
    """Commits to one group from a thread of its own, since Spark's listeners must not wait; the newest offsets count.

    ``options`` are those of the source: ``kafka.bootstrap.servers`` and other ``kafka.*`` properties.
    """

    def __init__(self, options: Mapping[str, str], group: str) -> None:
        self.group = parse_group(group)
        self._client, _ = consumer_settings({name.lower(): each for name, each in options.items()}, "spark-group")
        self._pool = ThreadPoolExecutor(1, "pykafka08-group-commits")
        self._lock = Lock()
        self._wanted: Offsets = {}
        self.committed: Offsets = {}
        """What was committed last."""
        self.error: KafkaError | None = None
        """Of the last attempt, None if it went well."""

    def commit(self, offsets: Offsets) -> Future[None]:
        """Soon; returns what ends with the attempt, and raises nothing."""
        with self._lock:
            self._wanted = dict(offsets)
        return self._pool.submit(self._commit_newest)

    def _commit_newest(self) -> None:
        with self._lock:
            offsets, self._wanted = self._wanted, {}
        if not offsets or offsets == self.committed:
            return
        self.error = commit_or_warn(self._client, self.group, offsets)
        if self.error is None:
            self.committed = offsets

    def close(self) -> None:
        """When what was wanted has been tried, close the connections."""
        self._pool.submit(lambda: runtime().close())
        self._pool.shutdown()
