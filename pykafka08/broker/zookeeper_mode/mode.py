"""Brokers of an embedded cluster in ZooKeeper: their registrations, who is controller, and when a turn is due."""

from __future__ import annotations

from collections.abc import Callable

from pykafka08.broker.cluster_state import ClusterState, Node
from pykafka08.broker.timers import Timer
from pykafka08.broker.zookeeper.codes import EventType
from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
from pykafka08.broker.zookeeper_mode.controller import Controller
from pykafka08.broker.zookeeper_mode.layout import (
    NODES_AT_START,
    broker_document,
    cluster_document,
    controller_document,
    to_json,
)
from pykafka08.broker.zookeeper_mode.offsets import ZooKeeperOffsets
from pykafka08.errors import ConfigError

__all__ = ["ZooKeeperMode"]

IDS, CONTROLLER, CONTROLLER_EPOCH, CLUSTER_ID = "/brokers/ids", "/controller", "/controller_epoch", "/cluster/id"
SINCE_CLUSTER_ID = (0, 10, 1)
SINCE_TOPICS_ARE_DELETED = (1, 0)


class ZooKeeperMode:
    """``deletes_topics`` is ``delete.topic.enable``, whose default came true with Kafka 1.0."""

    def __init__(
        self, state: ClusterState, zookeeper: EmbeddedZooKeeper, chroot: str = "", *, deletes_topics: bool | None = None
    ) -> None:
        if not state.personality.has_zookeeper:
            raise ConfigError(
                f"zookeeper: Kafka {state.personality.release} has no ZooKeeper; 3.9 was the last release with it"
            )
        self._state = state
        self._zookeeper = zookeeper
        self._chroot = chroot
        self._sessions: dict[int, int] = {}
        self._timer: Timer | None = None
        self._ends: list[Callable[[], None]] = []
        enabled = state.personality >= SINCE_TOPICS_ARE_DELETED if deletes_topics is None else deletes_topics
        self._controller = Controller(state, zookeeper, chroot, deletes_topics=enabled, due=self._due)

    def start(self) -> None:
        """Before the first broker: nodes of an earlier cluster are taken over, but for its brokers."""
        state = self._state
        state.groups.offsets_v0 = ZooKeeperOffsets(self._zookeeper, self._chroot)
        for path, since in NODES_AT_START:
            if state.personality >= since and not self._zookeeper.exists(self._chroot + path):
                self._zookeeper.create(self._chroot + path)
        if state.personality >= SINCE_CLUSTER_ID and not self._zookeeper.exists(self._chroot + CLUSTER_ID):
            self._zookeeper.create(self._chroot + CLUSTER_ID, to_json(cluster_document(state.cluster_id)))
        self._ends = [
            self._zookeeper.observe(self._node_changed),
            self._zookeeper.when_serving(self._due),
            state.topics.observe(self._due),
        ]

    def close(self) -> None:
        """The brokers are gone, and so are their nodes."""
        for end in self._ends:
            end()
        self._ends = []
        if self._timer is not None:
            self._timer.cancel()
        for session_id in self._sessions.values():
            if session_id in self._zookeeper.sessions:
                self._zookeeper.expire_session(session_id)
        self._sessions.clear()

    def brokers_changed(self) -> None:
        """One was started or stopped."""
        for node in self._state.nodes.values():
            session_id = self._sessions.get(node.node_id)
            if not node.is_running and session_id is not None:
                del self._sessions[node.node_id]
                if session_id in self._zookeeper.sessions:
                    self._zookeeper.expire_session(session_id)
        self.turn()

    def turn(self) -> None:
        """Bring both sides into line, if ZooKeeper can be reached."""
        self._timer = None
        if not self._zookeeper.is_serving or not self._ends:
            return
        for node in self._state.live_nodes():
            self._register(node)
        self._control()
        self._controller.turn()

    def _due(self) -> None:
        if self._timer is None and self._ends:
            self._timer = self._state.timers.call_after(0.0, self.turn)

    def _node_changed(self, _: EventType, path: str) -> None:
        if path.startswith(self._chroot + "/") and not path.startswith(self._chroot + "/consumers/"):
            self._due()

    def _register(self, node: Node) -> None:
        """Again too, if its session was ended."""
        session_id = self._sessions.get(node.node_id)
        if session_id is None or session_id not in self._zookeeper.sessions:
            session_id = self._sessions[node.node_id] = self._zookeeper.open_session()
        path = f"{self._chroot}{IDS}/{node.node_id}"
        if not self._zookeeper.exists(path):
            document = broker_document(self._state.personality, tuple(node.endpoints.values()), node.rack)
            self._zookeeper.create(path, to_json(document), session_id=session_id)

    def _control(self) -> None:
        """Whoever is controller says so, and counts how often one was elected."""
        path, node_id = self._chroot + CONTROLLER, self._state.controller_id
        if node_id < 0 or self._zookeeper.exists(path):
            return
        document = controller_document(self._state.personality, node_id)
        self._zookeeper.create(path, to_json(document), session_id=self._sessions[node_id])
        epoch = self._chroot + CONTROLLER_EPOCH
        if self._zookeeper.exists(epoch):
            self._controller.epoch = int(self._zookeeper.read(epoch) or b"0") + 1
            self._zookeeper.write(epoch, str(self._controller.epoch).encode())
        else:
            self._controller.epoch = 1
            self._zookeeper.create(epoch, b"1")
