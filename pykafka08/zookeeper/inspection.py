"""How far an old group is: its offsets in ZooKeeper and in Kafka, beside the end of each log.

Not here: the reading of nodes (``reading``), nor how it is printed (``cli``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pykafka08.admin.admin import Admin
from pykafka08.consumer.consumer import Consumer
from pykafka08.errors import AuthorizationError, KafkaError, MalformedNodeError, SecurityError
from pykafka08.records.record import TopicPartition
from pykafka08.zookeeper import paths, reading
from pykafka08.zookeeper.admin.release import bootstrap_servers
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.nodes.brokers import Topic
from pykafka08.zookeeper.same_cluster import why_two_clusters

__all__ = ["GroupProgress", "PartitionProgress", "group_progress"]

OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class PartitionProgress:
    """One partition of a group; None is what nobody has, or what could not be found out."""

    topic: str
    partition: int
    zookeeper: int | None
    """The offset read next, as ZooKeeper has it."""
    kafka: int | None
    """The same as Kafka has it."""
    end: int | None
    owner: str | None

    @property
    def lag(self) -> int | None:
        """Records between the higher of the two offsets and the end of the log."""
        known = [each for each in (self.zookeeper, self.kafka) if each is not None]
        return max(0, self.end - max(known)) if known and self.end is not None else None


@dataclass(frozen=True)
class GroupProgress:
    """All partitions of a group.  ``trouble`` has what could not be found out, and why, in words."""

    group: str
    is_alive: bool
    partitions: Sequence[PartitionProgress]
    trouble: Sequence[str]
    refusal: SecurityError | AuthorizationError | None = None
    """The error of brokers that refused the credentials or the request; ``trouble`` does not repeat it."""


async def group_progress(
    zk: ZooKeeper, name: str, servers: Sequence[str], *, has_ends: bool = True, client: Mapping[str, Any] | None = None
) -> GroupProgress | None:
    """What a group has in both stores; None if neither knows it.

    ``servers`` are brokers to ask for offsets in Kafka and, with ``has_ends``, for the ends of logs; ``client`` has
    settings of :class:`ClientConfig`.  SecurityError or AuthorizationError if ZooKeeper does not know the group and the
    brokers refuse to answer.
    """
    trouble: list[str] = []

    def heard(error: MalformedNodeError) -> None:
        trouble.append(str(error))

    group = await reading.group(zk, name, heard)
    offsets = dict(group.offsets) if group is not None else {}
    owners = dict(group.owners) if group is not None else {}
    candidates = await _partitions(zk, heard)
    asked = _Brokers(servers, {"default_api_timeout_ms": 10_000, **(client or {})}, trouble)
    protocol = str((client or {}).get("security_protocol", "PLAINTEXT"))
    if set(servers) - set(bootstrap_servers(await reading.brokers(zk), protocol)):
        await asked.compare(zk)
    # asking for a group makes its brokers create this topic: without it Kafka has no offsets
    has_offsets = any(each.topic == OFFSETS_TOPIC for each in candidates)
    in_kafka = await asked.group_offsets(name, candidates) if has_offsets else {}
    if group is None and not in_kafka:
        if asked.refusal is not None:
            raise asked.refusal
        return None
    wanted = sorted({*offsets, *owners, *in_kafka})
    ends = await asked.ends([each for each in wanted if each in set(candidates)]) if has_ends else {}
    rows = [PartitionProgress(*tp, offsets.get(tp), in_kafka.get(tp), ends.get(tp), owners.get(tp)) for tp in wanted]
    return GroupProgress(name, group is not None and group.is_alive, rows, trouble, asked.refusal)


async def _partitions(zk: ZooKeeper, heard: reading.Trouble) -> list[TopicPartition]:
    """All there are."""
    found = []
    for name in await reading.topic_names(zk):
        try:
            topic = await reading.node(zk, Topic, paths.topic(name))
        except MalformedNodeError as error:
            heard(error)
            continue
        found += [TopicPartition(name, number) for number in sorted(topic.partitions)] if topic else []
    return found


class _Brokers:
    """The brokers, as far as they answer."""

    def __init__(self, servers: Sequence[str], settings: Mapping[str, Any], trouble: list[str]) -> None:
        self._servers = list(servers)
        self._settings = dict(settings)
        self._trouble = trouble
        self.refusal: SecurityError | AuthorizationError | None = None
        if not servers:
            trouble.append("no broker can be asked: offsets in Kafka and the ends of logs are not known")

    async def compare(self, zk: ZooKeeper) -> None:
        """Trouble if they belong to another cluster than ZooKeeper does."""
        try:
            async with Admin(self._servers, **self._settings) as admin:
                why = await why_two_clusters(zk, admin)
        except (SecurityError, AuthorizationError) as error:
            self._refuse(error)
            return
        except KafkaError:
            return  # told of by what is asked next
        if why is not None:
            self._trouble.append(f"{why}: what is shown of Kafka is not of this group")

    async def group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not self._servers or not wanted or isinstance(self.refusal, SecurityError):
            return {}
        try:
            async with Admin(self._servers, **self._settings) as admin:
                found = await admin.list_group_offsets(group, wanted)
        except (SecurityError, AuthorizationError) as error:
            self._refuse(error)
            return {}
        except KafkaError as error:
            self._trouble.append(f"offsets in Kafka are not known: {error}")
            return {}
        return {tp: each.offset for tp, each in found.items() if each.offset >= 0}

    async def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not self._servers or not wanted or isinstance(self.refusal, SecurityError):
            return {}
        try:
            async with Consumer(bootstrap_servers=self._servers, **self._settings) as consumer:
                return dict(await consumer.end_offsets(wanted))
        except (SecurityError, AuthorizationError) as error:
            self._refuse(error)
            return {}
        except KafkaError as error:
            self._trouble.append(f"the ends of logs are not known: {error}")
            return {}

    def _refuse(self, error: SecurityError | AuthorizationError) -> None:
        """Keep the first refusal.  Brokers that refused the credentials are not asked again."""
        self.refusal = self.refusal or error
