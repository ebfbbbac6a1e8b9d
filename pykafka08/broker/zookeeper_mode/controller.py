"""The controller of embedded brokers in ZooKeeper mode: one turn brings nodes and cluster into line, both ways.

A turn is taken after any change of either side, and does all that there is to do; it may be taken at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykafka08.broker.cluster_state import ClusterState
from pykafka08.broker.state import Partition, Topic, is_valid_topic_name
from pykafka08.broker.topic_configs import topic_config_fault, topic_keys
from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
from pykafka08.broker.zookeeper_mode.layout import (
    parse_assignment,
    parse_change,
    parse_config,
    parse_partitions,
    state_document,
    to_json,
    topic_document,
)

__all__ = ["Controller"]

TOPICS, CONFIG, DELETE_TOPICS = "/brokers/topics", "/config/topics", "/admin/delete_topics"
REASSIGN, ELECTION, CHANGES = "/admin/reassign_partitions", "/admin/preferred_replica_election", "/config/changes"
SINCE_CONFIG = (0, 8, 1)
SINCE_MARKERS_GO = (0, 11)
"""From here on a marker goes although topics are not deleted."""


class Controller:
    """``epoch`` is the controller's; ``deletes_topics`` is the brokers' ``delete.topic.enable``."""

    def __init__(
        self,
        state: ClusterState,
        zookeeper: EmbeddedZooKeeper,
        chroot: str,
        *,
        deletes_topics: bool,
        due: Callable[[], None],
    ) -> None:
        self._state = state
        self._zookeeper = zookeeper
        self._chroot = chroot
        self._deletes_topics = deletes_topics
        self._due = due
        self.epoch = 0
        self._known: dict[str, Topic] = {}
        """Topics that have nodes."""
        self._told: dict[tuple[str, int], tuple[int, int, tuple[int, ...]]] = {}
        """Leader, epoch and in-sync replicas of each partition, as last written."""
        self._written: dict[str, tuple[dict[str, str], list[list[int]]]] = {}
        """Configs and replicas of each topic, as last written to or read from ZooKeeper."""
        self._refused: set[str] = set()
        self._changes_seen: set[str] = set()

    def turn(self) -> None:
        self._forget_deleted()
        self._heed_markers()
        self._write_new()
        self._take_new()
        self._grow()
        self._heed(REASSIGN, self._reassign)
        self._heed(ELECTION, self._elect)
        self._heed_config()
        self._write_changed()
        self.write_states()

    # -- nodes

    def _path(self, *parts: object) -> str:
        return self._chroot + "/".join(map(str, parts))

    def _children(self, path: str) -> list[str]:
        path = self._path(path)
        return self._zookeeper.children(path) if self._zookeeper.exists(path) else []

    def _put(self, path: str, data: bytes) -> None:
        path = self._path(path)
        if self._zookeeper.exists(path):
            self._zookeeper.write(path, data)
        else:
            self._zookeeper.create(path, data)

    def _drop(self, path: str) -> None:
        path = self._path(path)
        if self._zookeeper.exists(path):
            self._zookeeper.delete(path, recursive=True)

    def _read(self, path: str) -> bytes:
        return self._zookeeper.read(self._path(path))

    def _refuse(self, path: str, error: object) -> None:
        """Said once; brokers go on without what they cannot read."""
        if path not in self._refused:
            self._refused.add(path)
            self._state.log.warning("a node cannot be used", path=path, error=str(error))

    # -- topics

    def _forget_deleted(self) -> None:
        """Those that are gone, or were made anew, on the brokers."""
        for name, topic in tuple(self._known.items()):
            if self._state.topics.find(name) is not topic:
                self._drop_nodes(name)

    def _drop_nodes(self, name: str) -> None:
        self._known.pop(name, None)
        self._written.pop(name, None)
        self._told = {key: value for key, value in self._told.items() if key[0] != name}
        self._drop(f"{TOPICS}/{name}")
        self._drop(f"{CONFIG}/{name}")

    def _heed_markers(self) -> None:
        for name in self._children(DELETE_TOPICS):
            topic = self._state.topics.find(name)
            if self._deletes_topics:
                if topic is not None:
                    self._state.delete_topic(topic)
                self._drop_nodes(name)
                self._drop(f"{DELETE_TOPICS}/{name}")
            elif topic is None or self._state.personality >= SINCE_MARKERS_GO:
                self._drop(f"{DELETE_TOPICS}/{name}")

    def _write_new(self) -> None:
        for topic in self._state.topics:
            if topic.name in self._known or self._zookeeper.exists(self._path(f"{TOPICS}/{topic.name}")):
                continue
            if self._state.personality >= SINCE_CONFIG:
                self._put(f"{CONFIG}/{topic.name}", to_json({"version": 1, "config": topic.config}))
            self._write_topic(topic)
            self._know(topic)

    def _write_topic(self, topic: Topic) -> None:
        replicas = [partition.replicas for partition in topic.partitions]
        self._put(f"{TOPICS}/{topic.name}", to_json(topic_document(self._state.personality, replicas, topic.topic_id)))

    def _write_changed(self) -> None:
        """Write configs and replicas that the admin APIs have changed."""
        for name, topic in self._known.items():
            config, replicas = self._written.get(name, ({}, []))
            now = _contents_of(topic)
            if name in self._written and config != now[0] and self._state.personality >= SINCE_CONFIG:
                self._put(f"{CONFIG}/{name}", to_json({"version": 1, "config": topic.config}))
            if name in self._written and replicas != now[1]:
                self._write_topic(topic)
            self._written[name] = now

    def _know(self, topic: Topic) -> None:
        self._known[topic.name] = topic
        self._written[topic.name] = _contents_of(topic)
        for each in topic.partitions:
            each.watch(self._partition_changed)

    def _partition_changed(self, partition: Partition) -> None:
        """Also after each append: cheap."""
        key = (partition.topic.name, partition.index)
        if self._told.get(key) != _state_of(partition):
            self._due()

    def _take_new(self) -> None:
        for name in self._children(TOPICS):
            if name in self._state.topics:
                self._known.setdefault(name, self._topic(name))
                continue
            try:
                replicas = parse_assignment(self._read(f"{TOPICS}/{name}"))
                if not is_valid_topic_name(name) or not replicas:
                    raise ValueError("no topic of that kind is possible")
            except (ValueError, TypeError) as error:
                self._refuse(f"{TOPICS}/{name}", error)
                continue
            self._know(self._state.topics.create_assigned(name, replicas, self._config_of(name)))

    def _topic(self, name: str) -> Topic:
        topic = self._state.topics.find(name)
        assert topic is not None
        return topic

    def _grow(self) -> None:
        for name, topic in self._known.items():
            path = f"{TOPICS}/{name}"
            if not self._zookeeper.exists(self._path(path)):
                continue
            try:
                replicas = parse_assignment(self._read(path))
            except (ValueError, TypeError) as error:
                self._refuse(path, error)
                continue
            for nodes in replicas[len(topic.partitions) :]:
                self._state.topics.add_partition(topic, nodes)
                topic.partitions[-1].watch(self._partition_changed)
            if len(topic.partitions) > len(replicas):
                for each in topic.partitions[len(replicas) :]:
                    each.watch(self._partition_changed)
                self._write_topic(topic)

    # -- what tools ask for

    def _heed(self, path: str, act: Callable[[list[tuple[str, int, list[int]]]], None]) -> None:
        if not self._zookeeper.exists(self._path(path)):
            return
        try:
            asked = parse_partitions(self._read(path))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._refuse(path, error)
            return
        act(asked)
        self._drop(path)

    def _found(self, asked: Iterable[tuple[str, int, list[int]]]) -> list[tuple[Partition, list[int]]]:
        found = [(self._state.topics.find_partition(name, index), nodes) for name, index, nodes in asked]
        return [(partition, nodes) for partition, nodes in found if partition is not None]

    def _reassign(self, asked: list[tuple[str, int, list[int]]]) -> None:
        live = set(self._state.live_node_ids())
        for partition, nodes in self._found(asked):
            if nodes and live.issuperset(nodes):  # else it fails, and the node goes all the same
                partition.replicas[:] = nodes
                partition.brokers_changed(live)
                if partition.leader not in nodes:
                    partition.elect(nodes[0])
                self._write_topic(partition.topic)

    def _elect(self, asked: list[tuple[str, int, list[int]]]) -> None:
        for partition, _ in self._found(asked):
            if partition.replicas and partition.replicas[0] in partition.isr:
                partition.lead(partition.replicas[0])

    def _config_of(self, name: str) -> dict[str, str]:
        path = f"{CONFIG}/{name}"
        if self._state.personality < SINCE_CONFIG or not self._zookeeper.exists(self._path(path)):
            return {}
        try:
            config = parse_config(self._read(path))
        except (ValueError, TypeError, AttributeError) as error:
            self._refuse(path, error)
            return {}
        keys = topic_keys(self._state.personality)
        config = {name: value for name, value in config.items() if name in keys}  # brokers ignore unknown names
        fault = topic_config_fault(config, self._state.personality)
        if fault is not None:
            self._refuse(path, fault)
            return {}
        return config

    def _heed_config(self) -> None:
        """Each note once, and in the form that this release reads."""
        for name in self._children(CHANGES):
            if name in self._changes_seen:
                continue
            self._changes_seen.add(name)
            try:
                changed = parse_change(self._state.personality, self._read(f"{CHANGES}/{name}"))
            except (ValueError, AttributeError) as error:
                self._refuse(f"{CHANGES}/{name}", error)
                continue
            topic = self._state.topics.find(changed) if changed is not None else None
            if topic is not None:
                topic.config = self._config_of(topic.name)
                self._written[topic.name] = _contents_of(topic)

    # -- leaders

    def write_states(self) -> None:
        for name, topic in self._known.items():
            for each in topic.partitions:
                state, key = _state_of(each), (name, each.index)
                if self._told.get(key) != state:
                    self._told[key] = state
                    document = state_document(max(1, self.epoch), each.leader, each.leader_epoch, each.isr)
                    self._put(f"{TOPICS}/{name}/partitions/{each.index}/state", to_json(document))


def _contents_of(topic: Topic) -> tuple[dict[str, str], list[list[int]]]:
    return dict(topic.config), [list(partition.replicas) for partition in topic.partitions]


def _state_of(partition: Partition) -> tuple[int, int, tuple[int, ...]]:
    return partition.leader, partition.leader_epoch, tuple(partition.isr)
