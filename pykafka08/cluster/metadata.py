"""What the cluster looks like: an immutable snapshot with a generation, built from any version of Metadata.

Here: brokers, topics, partitions, leaders.  Not here: when to ask and whom (``machine``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RemoteProtocolError
from pykafka08.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pykafka08.records.topic_name import INTERNAL_TOPICS
from pykafka08.short_names import address_text

__all__ = ["Broker", "LeaderNews", "Partition", "Snapshot", "Topic"]

_API = "Metadata"
MAX_PORT = 65_535

_REPLICA_NOT_AVAILABLE = int(ErrorCode.REPLICA_NOT_AVAILABLE)


class Broker(NamedTuple):
    """A broker and the address it wants to be reached at; ``node_id`` is negative for a bootstrap address."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def is_possible(self) -> bool:
        """False if no broker can have that node id and address."""
        return self.node_id >= 0 and bool(self.host) and 0 < self.port <= MAX_PORT

    @property
    def name(self) -> str:
        """``"host:port (id N)"``, as error texts have it."""
        address = address_text(self.host, self.port)
        return f"{address} (id {self.node_id})" if self.node_id >= 0 else address


class Partition(NamedTuple):
    """``leader`` and ``leader_epoch`` are -1 if unknown; ``error`` is 0 where only a replica is down."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    error: int


class LeaderNews(NamedTuple):
    """Who leads a partition, as a broker says that leads it no more (KIP-951)."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int


class Topic(NamedTuple):
    """``topic_id`` is None before Metadata v10; ``partitions`` is keyed by partition number, in order."""

    name: str
    topic_id: UUID | None
    error: int
    is_internal: bool
    partitions: Mapping[int, Partition]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one moment.  A later snapshot has a higher ``generation``; ``fetched_at`` is monotonic seconds."""

    generation: int
    brokers: Mapping[int, Broker] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    controller_id: int | None = None
    cluster_id: str | None = None
    fetched_at: float = 0.0

    def leader(self, topic: str, partition: int) -> int | None:
        """Node id of the leader; None if the partition is unknown, or its leader is."""
        known = self.topics.get(topic)
        found = known.partitions.get(partition) if known is not None else None
        return found.leader if found is not None and found.leader in self.brokers else None

    def leader_epoch(self, topic: str, partition: int) -> int:
        """-1 if unknown, always so before Metadata v7 (Kafka 2.1)."""
        known = self.topics.get(topic)
        found = known.partitions.get(partition) if known is not None else None
        return found.leader_epoch if found is not None else -1

    def partitions(self, topic: str) -> tuple[int, ...]:
        """Partition numbers in order; empty if the topic is unknown or has an error."""
        known = self.topics.get(topic)
        return tuple(known.partitions) if known is not None else ()

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Partitions whose leader is known."""
        known = self.topics.get(topic)
        if known is None:
            return ()
        return tuple(number for number, each in known.partitions.items() if each.leader in self.brokers)

    def topic_error(self, topic: str) -> int:
        """Error code of the topic; UNKNOWN_TOPIC_OR_PARTITION if the snapshot lacks it."""
        known = self.topics.get(topic)
        return known.error if known is not None else int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def topic_id(self, topic: str) -> UUID | None:
        """None if unknown, always so before Metadata v10 (Kafka 2.8)."""
        known = self.topics.get(topic)
        return known.topic_id if known is not None else None

    def topic_of_id(self, topic_id: UUID) -> str | None:
        """The name of a topic id."""
        return next((topic.name for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def next(
        self,
        response: MetadataResponse,
        *,
        now: float,
        wanted: Callable[[str], bool],
        spare_brokers: Collection[Broker] = (),
    ) -> Snapshot:
        """The snapshot after this one: ``response`` reduced to the ``wanted`` topics.

        ``spare_brokers`` stand in where the response names no broker (0.8 before the first topic).
        RemoteProtocolError if the response has impossible values.
        """
        brokers = _brokers(response) or {broker.node_id: broker for broker in spare_brokers}
        if response.controller_id < -1:
            raise RemoteProtocolError(f"the answer names controller {response.controller_id}", api=_API)
        shared: dict[Any, Any] = {}
        topics: dict[str, Topic] = {}
        for topic in response.topics:
            if topic.name is not None and wanted(topic.name):
                if topic.name in topics:
                    raise RemoteProtocolError("the answer names the topic twice", api=_API, topic=topic.name)
                topics[topic.name] = self._topic(topic, brokers, shared)
        return Snapshot(
            generation=self.generation + 1,
            brokers=MappingProxyType(brokers),
            topics=MappingProxyType(topics),
            controller_id=response.controller_id if response.controller_id >= 0 else None,
            cluster_id=response.cluster_id if response.cluster_id is not None else self.cluster_id,
            fetched_at=now,
        )

    def with_leaders(self, news: Iterable[LeaderNews], brokers: Iterable[Broker] = ()) -> Snapshot:
        """The snapshot after this one, with these leaders; itself if nothing among them is newer and known.

        ``brokers`` has the addresses of the leaders; impossible entries are left out.
        """
        known = {**self.brokers, **{each.node_id: each for each in brokers if each.is_possible}}
        changed: dict[str, dict[int, Partition]] = {}
        for topic, number, leader, leader_epoch in news:
            found = self.topics.get(topic)
            old = None if found is None else found.partitions.get(number)
            if found is None or old is None or leader not in known or leader_epoch <= old.leader_epoch:
                continue
            partitions = changed.setdefault(topic, dict(found.partitions))
            partitions[number] = old._replace(leader=leader, leader_epoch=leader_epoch, error=0)
        if not changed:
            return self
        topics = {
            name: topic._replace(partitions=MappingProxyType(changed[name])) if name in changed else topic
            for name, topic in self.topics.items()
        }
        return replace(
            self,
            generation=self.generation + 1,
            brokers=MappingProxyType(known),
            topics=MappingProxyType(topics),
        )

    def _topic(self, topic: MetadataResponseTopic, brokers: Mapping[int, Broker], shared: dict[Any, Any]) -> Topic:
        """The topic as the response has it; the one of this snapshot if nothing about it has changed."""
        assert topic.name is not None
        topic_id = topic.topic_id if topic.topic_id.int else None
        is_internal = topic.is_internal or topic.name in INTERNAL_TOPICS
        before = self.topics.get(topic.name)
        if before is None and len(topic.partitions) == 1:
            view = _only_partition(topic, topic.partitions[0], shared)
            return Topic(topic.name, topic_id, topic.error_code, is_internal, view)
        is_same = before is not None and topic_id is not None and before.topic_id == topic_id
        known = before.partitions if before is not None else _NO_PARTITIONS
        found = topic.partitions
        if len(found) > 1:
            found = sorted(found, key=_index)
        _check_numbers(topic, found)
        partitions = {}
        changed = False
        for each in found:
            old = known.get(each.partition_index)
            made = _partition(topic, each, shared)
            # Of the same topic a lower leader epoch can only be older news: the broker asked has not heard of the newer
            # leader yet.
            if old is None or not (is_same and old.leader_epoch > made.leader_epoch and old.leader in brokers):
                changed = changed or old != made
            else:
                made = old
            partitions[each.partition_index] = made
        if before is not None and not changed and len(partitions) == len(known):
            if before.topic_id == topic_id and (before.error, before.is_internal) == (topic.error_code, is_internal):
                return before
            return Topic(before.name, topic_id, topic.error_code, is_internal, known)
        return Topic(topic.name, topic_id, topic.error_code, is_internal, MappingProxyType(partitions))


_NO_PARTITIONS: Mapping[int, Partition] = MappingProxyType({})


def _index(partition: MetadataResponsePartition) -> int:
    return partition.partition_index


def _brokers(response: MetadataResponse) -> dict[int, Broker]:
    """Brokers by node id.  An impossible address fails when it is dialled, so the other brokers stay usable."""
    brokers: dict[int, Broker] = {}
    for each in response.brokers:
        if each.node_id in brokers:
            raise RemoteProtocolError(f"the answer names broker {each.node_id} twice", api=_API)
        if each.node_id < 0:
            raise RemoteProtocolError(f"the answer names broker {each.node_id}", api=_API)
        brokers[each.node_id] = Broker(each.node_id, each.host, each.port, each.rack)
    return brokers


def _check_numbers(topic: MetadataResponseTopic, partitions: list[MetadataResponsePartition]) -> None:
    """RemoteProtocolError for a partition below 0 or named twice; ``partitions`` are in order."""
    last = -1
    for each in partitions:
        number = each.partition_index
        if number <= last:
            text = f"the answer names partition {number}" + (" twice" if number >= 0 else "")
            raise RemoteProtocolError(text, api=_API, topic=topic.name)
        last = number


def _check_partition(topic: MetadataResponseTopic, each: MetadataResponsePartition) -> None:
    """RemoteProtocolError for impossible values of a partition; its leader may be an unknown broker."""
    nodes = min([*each.replica_nodes, *each.isr_nodes], default=0)
    for what, value, least in (
        ("partition", each.partition_index, 0),
        ("leader", each.leader_id, -1),
        ("leader epoch", each.leader_epoch, -1),
        ("replica", nodes, 0),
    ):
        if value < least:
            raise RemoteProtocolError(
                f"the answer names {what} {value}", api=_API, topic=topic.name, partition=each.partition_index
            )


def _only_partition(
    topic: MetadataResponseTopic, each: MetadataResponsePartition, shared: dict[Any, Any]
) -> Mapping[int, Partition]:
    """The partitions of a topic with one, as most of a cluster with very many topics; not many different ones."""
    key = (
        each.partition_index,
        each.leader_id,
        each.leader_epoch,
        tuple(each.replica_nodes),
        tuple(each.isr_nodes),
        each.error_code,
    )
    found: Mapping[int, Partition] | None = shared.get(key)
    if found is None:
        _check_partition(topic, each)
        found = shared[key] = MappingProxyType({each.partition_index: _partition(topic, each, shared)})
    return found


def _partition(topic: MetadataResponseTopic, each: MetadataResponsePartition, shared: dict[Any, Any]) -> Partition:
    """Error 9 only notes that some replica is down.

    There are not nearly as many different ones as partitions: equal ones are one object, as are their lists of
    replicas.  The garbage collector has so much less to look at.
    """
    error = 0 if each.error_code == _REPLICA_NOT_AVAILABLE else each.error_code
    fields = (each.leader_id, each.leader_epoch, tuple(each.replica_nodes), tuple(each.isr_nodes), error)
    found: Partition | None = shared.get(fields)
    if found is None:
        _check_partition(topic, each)
        leader, leader_epoch, replicas, isr, error = fields
        replicas = shared.setdefault(replicas, replicas)
        found = shared[fields] = Partition(leader, leader_epoch, replicas, shared.setdefault(isr, isr), error)
    return found
