"""All that the brokers of one embedded cluster share: who is up, topics, groups, transactions, faults, the clock.

No sockets here; those are ``server``'s and ``listener``'s.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Mapping, Sequence

from pykafka08.broker.access_control import Acls
from pykafka08.broker.authorizer import Authorizer
from pykafka08.broker.client_quotas import ClientQuotas
from pykafka08.broker.configs import Configs
from pykafka08.broker.endpoints import Endpoint
from pykafka08.broker.faults import Faults, LoggedRequest
from pykafka08.broker.fetch_sessions import FetchSessions
from pykafka08.broker.groups import GroupLimits, Groups
from pykafka08.broker.journal import Note, keep_nothing
from pykafka08.broker.log_manager import DEFAULT_MEMORY_BYTES, LogManager
from pykafka08.broker.personality import Personality
from pykafka08.broker.scram_users import ScramUsers
from pykafka08.broker.security.protection import Protection
from pykafka08.broker.state import Topic, Topics, is_valid_topic_name
from pykafka08.broker.timers import Timers
from pykafka08.broker.transactions import Transactions
from pykafka08.driver import library_logger
from pykafka08.protocol.schema import VersionRange

__all__ = ["ClusterState", "Node"]

KEPT_REQUESTS = 100_000
SHORTEST_INTERVAL_S = 0.05


class Node:
    """One broker as the others and the clients know it."""

    def __init__(self, node_id: int, endpoints: Sequence[Endpoint], rack: str | None = None) -> None:
        self.node_id = node_id
        self.rack = rack
        self.endpoints = {each.listener: each for each in endpoints}
        self.is_running = False
        self.fetch_sessions = FetchSessions()
        self.logger_levels = dict.fromkeys(("root", "kafka.server.KafkaApis", "kafka.request.logger"), "INFO")

    @property
    def endpoint(self) -> Endpoint:
        """The first listener."""
        return next(iter(self.endpoints.values()))

    @property
    def host(self) -> str:
        return self.endpoint.host

    @property
    def port(self) -> int:
        return self.endpoint.port

    @property
    def address(self) -> str:
        return self.endpoint.address

    def __repr__(self) -> str:
        return f"Node({self.node_id}, {self.address}, {'running' if self.is_running else 'stopped'})"


class ClusterState:
    """Shared state; every handler gets at it through its call."""

    def __init__(
        self,
        personality: Personality,
        *,
        default_partitions: int,
        default_replication_factor: int,
        auto_create_topics: bool,
        group_limits: GroupLimits,
        configs: Configs | None = None,
        max_memory_bytes: int = DEFAULT_MEMORY_BYTES,
        timers: Timers | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self.personality = personality
        self.features = dict(personality.features)
        """Finalized levels."""
        self.default_partitions = default_partitions
        self.default_replication_factor = default_replication_factor
        self.auto_create_topics = auto_create_topics
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.nodes: dict[int, Node] = {}
        self.configs = configs if configs is not None else Configs(personality)
        self.topics = Topics(self.live_node_ids, self.configs)
        self.now_ms = now_ms if now_ms is not None else _wall_clock_ms
        """The timestamp of appended records."""
        self.timers = timers if timers is not None else Timers()
        self.groups = Groups(self.timers, group_limits, self.topics, self.configs)
        self.transactions = Transactions(
            self.topics, self.groups, self.timers, new_producer_id=self.new_producer_id, now_ms=self.now_ms
        )
        self.acls = Acls()
        self.authorizer: Authorizer | None = None
        self.principals: dict[str, str] = {}
        """Principals of connections without authentication, by client id, for tests of access control lists."""
        self.quotas = ClientQuotas()
        self.scram = ScramUsers()
        self.protection = Protection(["PLAINTEXT"], personality, self.scram)
        self.faults = Faults()
        self.requests: list[LoggedRequest] = []
        self.failures: list[Exception] = []
        self.served: Mapping[int, VersionRange] = {}
        self.log = library_logger("broker")
        self.log_manager = LogManager(self.topics, self.topics.memory, self.log, max_memory_bytes)
        self.note: Note = keep_nothing
        self.following_producer_id = 1000
        self._chosen_coordinators: dict[str, int] = {}

    def live_nodes(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_running]

    def live_node_ids(self) -> list[int]:
        return [node.node_id for node in self.live_nodes()]

    @property
    def controller_id(self) -> int:
        return min(self.live_node_ids(), default=-1)

    @property
    def metadata_end_offset(self) -> int:
        """End offset of the KRaft metadata log, as if it had one record for each broker, topic and partition."""
        return 1 + len(self.nodes) + sum(1 + len(topic.partitions) for topic in self.topics)

    def coordinator(self, key: str) -> Node | None:
        """The live broker that coordinates a group or a transactional id."""
        chosen = self.nodes.get(self._chosen_coordinators.get(key, -1))
        if chosen is not None and chosen.is_running:
            return chosen
        live = self.live_nodes()
        return live[_java_hash(key) % len(live)] if live else None

    def choose_coordinator(self, key: str, node_id: int) -> None:
        """From now on it is this broker, while it lives."""
        self._chosen_coordinators[key] = node_id
        self.groups.coordinator_moved(key)

    def new_producer_id(self) -> int:
        given = self.following_producer_id
        self.following_producer_id += 1
        self.note("producer_id", self.following_producer_id)
        return given

    def start_log_manager(self) -> None:
        """Run retention and compaction from now on, at the intervals of the broker's configs."""
        self._repeat("log.retention.check.interval.ms", self.log_manager.delete_old_segments)
        self._repeat("log.cleaner.backoff.ms", self._compact)

    def _compact(self, now_ms: int) -> None:
        if (self.configs.broker_value("log.cleaner.enable") or "true").lower() == "true":
            self.log_manager.compact(now_ms)

    def _repeat(self, interval: str, work: Callable[[int], None]) -> None:
        def run() -> None:
            schedule()
            try:
                work(self.now_ms())
            except Exception as error:  # noqa: BLE001 - a full disk must not end the cluster's clock
                self.failed(error, work=interval)

        def schedule() -> None:
            seconds = int(self.configs.broker_value(interval) or 0) / 1000
            self.timers.call_after(max(SHORTEST_INTERVAL_S, seconds), run)

        schedule()

    def auto_create(self, name: str) -> Topic | None:
        """Make an unknown topic if this cluster does so and the name is valid and collides with no other."""
        if not self.auto_create_topics or not is_valid_topic_name(name) or self.colliding_topic(name):
            return None
        return self.topics.create(name, self.default_partitions, self.default_replication_factor)

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name differs from ``name`` only in '.' and '_': brokers refuse the second one from 0.9 on."""
        return self.topics.find_colliding(name) if self.personality >= (0, 9) else None

    def delete_topic(self, topic: Topic) -> None:
        """Records, waiting fetches and committed offsets go with it."""
        self.topics.delete(topic)
        self.groups.forget_topic(topic.name)

    def log_request(self, request: LoggedRequest) -> None:
        if len(self.requests) >= KEPT_REQUESTS:
            del self.requests[: KEPT_REQUESTS // 10]
        self.requests.append(request)

    def failed(self, error: Exception, **facts: object) -> None:
        """A handler raised what it should not: keep it for the cluster's exit, which raises it."""
        self.failures.append(error)
        self.log.error("the embedded broker failed", exc_info=error, **facts)


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def _java_hash(text: str) -> int:
    """java.lang.String.hashCode, as a positive number."""
    value = 0
    for unit in text.encode("utf-16-be")[1::2] if text.isascii() else _utf16_units(text):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    return abs(signed) if signed != -(2**31) else 0


def _utf16_units(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [data[at] << 8 | data[at + 1] for at in range(0, len(data), 2)]
