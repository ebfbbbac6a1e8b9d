"""The cluster as all its brokers see it: topics, partitions, leaders, replicas.

Replicas share one log: what a leader appends, every replica has.  Sockets live in ``server``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from uuid import UUID, uuid4

from pykafka08.broker.configs import Configs
from pykafka08.broker.journal import Note, keep_nothing
from pykafka08.broker.log import PartitionLog, RecordMemory
from pykafka08.broker.personality import Personality
from pykafka08.protocol.releases import RELEASES
from pykafka08.records.topic_name import topic_name_fault

__all__ = ["MOST_PARTITIONS", "NO_LEADER", "Partition", "Topic", "Topics", "is_valid_topic_name"]

NO_LEADER = -1
MOST_PARTITIONS = 100_000  # of one topic: memory is not endless

Watcher = Callable[["Partition"], None]


class Partition:
    """One partition: its log, who leads it, and who waits for it to change."""

    def __init__(self, topic: Topic, index: int, replicas: list[int]) -> None:
        self.topic = topic
        self.index = index
        self.replicas = replicas
        self.isr = list(replicas)
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.log = PartitionLog(topic.name, index, topic.memory)
        self._watchers: list[Watcher] = []

    def __repr__(self) -> str:
        return f"Partition({self.topic.name}-{self.index}, leader={self.leader}, end={self.log.end_offset})"

    @property
    def offline_replicas(self) -> list[int]:
        return [node for node in self.replicas if node not in self.isr]

    def watch(self, watcher: Watcher) -> None:
        """Call ``watcher`` at every change: records appended, leader moved, topic deleted."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def changed(self) -> None:
        for watcher in tuple(self._watchers):
            watcher(self)

    def lead(self, node_id: int) -> None:
        """Make ``node_id`` (or nobody, NO_LEADER) the leader."""
        if self.leader != node_id:
            self.elect(node_id)

    def elect(self, node_id: int) -> None:
        """A new leader, or the same one in a new epoch."""
        self.leader = node_id
        self.leader_epoch += 1
        self.topic.note("epoch", self.topic.name, self.index, self.leader_epoch)
        self.changed()

    def brokers_changed(self, live: Iterable[int]) -> None:
        """Shrink or grow the in-sync set, and move the leader to a live replica if it has none."""
        alive = set(live)
        self.isr = [node for node in self.replicas if node in alive]
        if self.leader not in alive:
            self.lead(self.isr[0] if self.isr else NO_LEADER)

    def note_replicas(self) -> None:
        self.topic.note("partition", self.topic.name, self.index, self.replicas)

    def reassign(self, replicas: Iterable[int], live: Iterable[int]) -> None:
        """Replace the replicas; the leader stays if it is one of them, else the first live replica leads."""
        self.replicas[:] = replicas
        self.note_replicas()
        self.brokers_changed(live)
        if self.leader not in self.replicas:
            self.elect(self.isr[0] if self.isr else NO_LEADER)


class Topic:
    """A topic; ``topic_id`` is visible from Kafka 2.8 on."""

    def __init__(
        self,
        name: str,
        config: dict[str, str] | None = None,
        configs: Configs | None = None,
        memory: RecordMemory | None = None,
        note: Note = keep_nothing,
    ) -> None:
        self.name = name
        self.note = note
        self.topic_id = uuid4()
        self.memory = memory
        """The memory of the records of all logs."""
        self._config = dict(config or {})
        self._configs = configs if configs is not None else Configs(Personality(RELEASES[-1]))
        self.partitions: list[Partition] = []
        self.configs_changed()

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self.partitions)} partitions)"

    @property
    def config(self) -> dict[str, str]:
        """The topic's own configs; ``value`` and ``number`` return values in effect."""
        return self._config

    @config.setter
    def config(self, config: dict[str, str]) -> None:
        self._config = config
        self.configs_changed()
        self.note("topic", self.name, self.topic_id.hex, config)

    def configs_changed(self) -> None:
        """Look up again what each append asks for; its own configs or those of the brokers have changed."""
        self.max_message_bytes = self.number("max.message.bytes")
        self.is_compacted = "compact" in self.value("cleanup.policy")
        self.uses_log_append_time = self.value("message.timestamp.type") == "LogAppendTime"
        for partition in self.partitions:
            self.configure_log(partition)

    def configure_log(self, partition: Partition) -> None:
        """Let the log roll segments as the configs in effect say."""
        log = partition.log
        log.segment_bytes, log.segment_ms = self.number("segment.bytes"), self.number("segment.ms")

    @property
    def min_insync_replicas(self) -> int:
        return self.number("min.insync.replicas") if self.value("min.insync.replicas") else 1

    def value(self, name: str) -> str:
        """The config in effect: the topic's own, else the broker's, else the default of the release."""
        return self._configs.topic_value(self.config, name)

    def number(self, name: str) -> int:
        """The value in effect of a config of type INT or LONG."""
        return self._configs.topic_number(self.config, name)


class Topics:
    """All topics, by name and by id; new partitions are spread over the live brokers."""

    def __init__(self, live: Callable[[], list[int]], configs: Configs | None = None) -> None:
        self._live = live
        self._configs = configs
        self.memory = RecordMemory()
        self.note: Note = keep_nothing
        self.prepare_log: Callable[[PartitionLog], None] | None = None
        """Creates the files of a new partition's log."""
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._by_metric_name: dict[str, str] = {}
        self._next_broker = 0
        self._observers: list[Callable[[], None]] = []

    def __iter__(self) -> Iterator[Topic]:
        return iter(tuple(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def observe(self, observer: Callable[[], None]) -> Callable[[], None]:
        """Call ``observer`` when topics or partitions come or go; what is returned ends that."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def configure(self, topic: Topic, config: dict[str, str]) -> None:
        """Replace the topic's own configs."""
        topic.config = config
        self._changed()

    def reassign(self, partition: Partition, replicas: Iterable[int]) -> None:
        """Replace a partition's replicas."""
        partition.reassign(replicas, self._live())
        self._changed()

    def _changed(self) -> None:
        for observer in tuple(self._observers):
            observer()

    def find(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def find_id(self, topic_id: UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def find_colliding(self, name: str) -> str | None:
        """The name of another topic that metrics cannot tell from ``name``."""
        other = self._by_metric_name.get(_metric_name(name))
        return other if other != name else None

    def find_partition(self, name: str, index: int) -> Partition | None:
        topic = self._by_name.get(name)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def create(
        self, name: str, partitions: int, replication_factor: int, config: dict[str, str] | None = None
    ) -> Topic:
        topic = Topic(name, config, self._configs, self.memory, self.note)
        self.note("topic", name, topic.topic_id.hex, topic.config)
        self._by_name[name] = topic
        self._by_id[topic.topic_id] = topic
        self._by_metric_name[_metric_name(name)] = name
        self.grow(topic, partitions, replication_factor)
        self._changed()
        return topic

    def create_assigned(self, name: str, replicas: list[list[int]], config: dict[str, str] | None = None) -> Topic:
        """A topic whose partitions have exactly these replicas; the first live one of each leads."""
        topic = self.create(name, 0, 1, config)
        for nodes in replicas:
            self.add_partition(topic, nodes)
        return topic

    def grow(self, topic: Topic, partitions: int, replication_factor: int) -> None:
        """Add partitions until there are ``partitions``; leaders go round the live brokers."""
        while len(topic.partitions) < partitions:
            live = self._live()
            first = self._next_broker
            self._next_broker += 1
            count = min(max(1, replication_factor), len(live))
            self.add_partition(topic, [live[(first + step) % len(live)] for step in range(count)])

    def add_partition(self, topic: Topic, replicas: list[int]) -> None:
        partition = Partition(topic, len(topic.partitions), list(replicas))
        topic.partitions.append(partition)
        topic.configure_log(partition)
        if self.prepare_log is not None:
            self.prepare_log(partition.log)
        partition.note_replicas()
        partition.brokers_changed(self._live())
        self._changed()

    def delete(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
        self._by_metric_name.pop(_metric_name(topic.name), None)
        self.note("deleted_topic", topic.name)
        for partition in topic.partitions:
            partition.lead(NO_LEADER)
            partition.changed()
            partition.log.delete()
        topic.partitions.clear()  # a topic and its partitions refer to each other
        self._changed()

    def restore(self, name: str, topic_id: UUID, config: dict[str, str]) -> Topic:
        """Restore a topic of an earlier process, without partitions; an existing topic gets the config."""
        topic = self._by_name.get(name)
        if topic is None:
            topic = self._by_name[name] = Topic(name, config, self._configs, self.memory, self.note)
            topic.topic_id = topic_id
            self._by_id[topic_id] = topic
            self._by_metric_name[_metric_name(name)] = name
        topic.config = config
        return topic

    def restore_partition(self, topic: Topic, index: int, replicas: list[int]) -> None:
        """Restore the topic's next partition, whose leader is elected later, or the replicas of an existing one."""
        if index < len(topic.partitions):
            topic.partitions[index].replicas[:] = replicas
        elif index == len(topic.partitions):
            partition = Partition(topic, index, replicas)
            topic.partitions.append(partition)
            topic.configure_log(partition)

    def brokers_changed(self) -> None:
        live = self._live()
        for topic in self._by_name.values():
            for partition in topic.partitions:
                partition.brokers_changed(live)


def _metric_name(topic: str) -> str:
    """Names of metrics have no periods: Kafka writes an underscore for each."""
    return topic.replace(".", "_")


def is_valid_topic_name(name: object) -> bool:
    return isinstance(name, str) and topic_name_fault(name) is None
