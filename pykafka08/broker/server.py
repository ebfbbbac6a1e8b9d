"""EmbeddedCluster: real Kafka brokers on loopback sockets, for tests, demos and trying things out.

    async with EmbeddedCluster(brokers=3, version="2.8", topics={"orders": 6}) as cluster:
        ...  # any Kafka client at cluster.bootstrap_servers

What a broker answers is in ``handlers``; how it reads and writes sockets in ``listener``.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from pykafka08.broker.acl_bindings import ClusterAcls, with_authorizer
from pykafka08.broker.authorizer import authorizer_of
from pykafka08.broker.checks import (
    WILDCARDS,
    check_log_dir,
    check_number,
    check_offset,
    check_paths,
    check_racks,
    check_topic,
    check_topics,
    is_loopback,
    topic_arguments,
)
from pykafka08.broker.cluster_state import ClusterState, Node
from pykafka08.broker.configs import Configs
from pykafka08.broker.dispatch import served_apis
from pykafka08.broker.endpoints import Endpoint, advertised_hosts, endpoints_of, listener_protocols
from pykafka08.broker.faults import Faults, LoggedRequest
from pykafka08.broker.fetch_sessions import FetchSessions
from pykafka08.broker.groups import GroupLimits
from pykafka08.broker.listener import Listener, Peer, bind, listen
from pykafka08.broker.log_dir import LogDir
from pykafka08.broker.log_manager import DEFAULT_MEMORY_BYTES
from pykafka08.broker.personality import Personality
from pykafka08.broker.properties import StaticProperties, node_properties
from pykafka08.broker.security.given_certificates import given_certificates
from pykafka08.broker.security.mechanisms import Refused, TokenCheck
from pykafka08.broker.security.protection import Protection, hidden_passwords, uses_sasl
from pykafka08.broker.security.tokens import Jwks
from pykafka08.broker.session import Output, Session
from pykafka08.broker.state import MOST_PARTITIONS, Partition, Topic
from pykafka08.broker.topic_configs import topic_config_fault
from pykafka08.broker.zookeeper.server import EmbeddedZooKeeper
from pykafka08.broker.zookeeper_mode.mode import ZooKeeperMode
from pykafka08.driver import TaskTree
from pykafka08.errors import ClientFailedError, ClosedError, ConfigError
from pykafka08.protocol.schema import VersionRange
from pykafka08.records.batch_records import has_columns_decoder, load_columns_decoder
from pykafka08.records.record import Record

__all__ = ["EmbeddedCluster"]

LOOPBACK = "127.0.0.1"
REPLICATION_FACTOR = 3
MOST_BROKERS = 1000
MOST_MS = 2**31 - 1


class EmbeddedCluster:
    """Brokers 0 to ``brokers`` - 1 that play Kafka ``version``; their logs live in memory and go with them.

    ``topics`` maps names to partition counts, or to the arguments of ``create_topic``:
    ``{"orders": {"partitions": 6, "replication_factor": 2, "config": {"retention.ms": "60000"}}}``.  ``port`` is the
    first broker's, the others take the ports after it; 0 lets the system choose.  ``host`` is the address to listen on;
    with another address than loopback, other machines can connect, and a warning is logged without ``security``.
    Clients connect to ``advertised_host``, by default ``host``.
    ``replication_factor`` is the default of new topics: 3, or the number of brokers where there are fewer.  ``racks``
    has one for each broker; from Kafka 2.4 on, a consumer that names one is sent to a replica there.
    Session time-outs of group members must
    be at least ``group_min_session_timeout_ms``; the first rebalance of a group waits for
    ``group_initial_rebalance_delay_ms`` (Kafka's default is 3000).  ``group_version`` 0 or 1 switches the new group
    protocol off or on; it is on from Kafka 4.0, and its members are told the two times of ``group_consumer_...``.
    ``transaction_version`` lowers the finalized feature of that name (2 from Kafka 4.0 on); markers are written
    ``transaction_marker_delay_ms`` after the end of a transaction was decided.

    ``properties`` has Kafka's broker properties (``{"log.retention.ms": "60000"}``), as in ``server.properties``:
    DescribeConfigs returns them, topics inherit them, and they override the parameters above.

    Topics keep records as ``retention.ms``, ``retention.bytes`` and ``cleanup.policy`` say.  All records together take
    at most ``max_memory_bytes`` of memory (1 GiB); above that, the oldest are deleted, and a warning is logged.

    ``security`` is SSL, SASL_PLAINTEXT or SASL_SSL for brokers that clients must authenticate to; ``users`` maps names
    to passwords, for PLAIN and SCRAM.  ``ca_file``, ``client_settings()`` and
    ``client_properties()`` are what clients need.  With
    ``client_auth="required"`` TLS clients need a certificate of the cluster's CA; with SSL its subject is their
    principal in ACLs (``User:CN=alice``).  With ``jwks``, a JSON Web Key Set or the path of one, clients can use
    OAUTHBEARER with tokens that its keys have signed; ``properties`` has the expected audience and issuer.
    ``ssl_certfile``, ``ssl_keyfile`` and ``ssl_cafile`` are PEM files for brokers with certificates of yours.
    ``listeners`` is for brokers with several listeners: ``{"INTERNAL": "PLAINTEXT", "EXTERNAL": "SASL_SSL"}``.  Clients
    learn the brokers' addresses at the listener that they use; ``advertised_host`` can be a mapping of listeners to
    hosts.  With ``port``, the ports of the second listener follow those of the first one, and so on.

    With ``acls``, such as ``["User:alice READ topic orders"]``, brokers enforce ACLs as in Kafka; ``[]``: only the
    property ``super.users`` gives rights, until ``cluster.acls`` gets some.

    With ``log_dir``, topics, records, committed offsets, transactions, producer ids and the cluster id are kept in that
    directory too; the next cluster with the same directory restores them, also after a crash of the process.

    With ``zookeeper``, brokers before 4.0 register there, below ``zookeeper_chroot``, write topics and leaders, and do
    what tools ask for through it; ``delete_topic_enable`` is as Kafka has it (off before 1.0).

    An error inside the brokers (not one that they answer) is raised as ClientFailedError when the block ends.
    """

    def __init__(
        self,
        brokers: int = 1,
        version: str = "4.3",
        topics: Mapping[str, int | Mapping[str, Any]] | None = None,
        *,
        default_partitions: int = 1,
        auto_create_topics: bool = True,
        replication_factor: int | None = None,
        racks: Sequence[str] | None = None,
        group_min_session_timeout_ms: int = 6000,
        group_initial_rebalance_delay_ms: int = 0,
        group_version: int | None = None,
        group_consumer_session_timeout_ms: int = 45_000,
        group_consumer_heartbeat_interval_ms: int = 5_000,
        transaction_version: int | None = None,
        transaction_marker_delay_ms: int = 0,
        zookeeper: EmbeddedZooKeeper | None = None,
        zookeeper_chroot: str = "",
        delete_topic_enable: bool | None = None,
        properties: Mapping[str, str] | None = None,
        max_memory_bytes: int = DEFAULT_MEMORY_BYTES,
        log_dir: str | os.PathLike[str] | None = None,
        host: str = LOOPBACK,
        port: int = 0,
        advertised_host: str | Mapping[str, str] | None = None,
        security: str = "PLAINTEXT",
        listeners: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        mechanisms: Sequence[str] | None = None,
        client_auth: str = "none",
        acls: Sequence[str] | None = None,
        check_token: TokenCheck | None = None,
        jwks: Jwks | None = None,
        ssl_certfile: str | os.PathLike[str] | None = None,
        ssl_keyfile: str | os.PathLike[str] | None = None,
        ssl_cafile: str | os.PathLike[str] | None = None,
    ) -> None:
        passwords = hidden_passwords(users)
        users = None  # a traceback may show local variables
        check_number("brokers", brokers, 1, MOST_BROKERS)
        check_number("default_partitions", default_partitions, 1, MOST_PARTITIONS)
        check_number("max_memory_bytes", max_memory_bytes, 1, sys.maxsize)
        times = {
            "group_min_session_timeout_ms": group_min_session_timeout_ms,
            "group_initial_rebalance_delay_ms": group_initial_rebalance_delay_ms,
            "group_consumer_session_timeout_ms": group_consumer_session_timeout_ms,
            "group_consumer_heartbeat_interval_ms": group_consumer_heartbeat_interval_ms,
            "transaction_marker_delay_ms": transaction_marker_delay_ms,
        }
        for name, time_ms in times.items():
            check_number(name, time_ms, 0, MOST_MS)
        paths = {"ssl_certfile": ssl_certfile, "ssl_keyfile": ssl_keyfile, "ssl_cafile": ssl_cafile, "log_dir": log_dir}
        check_paths({**paths, "jwks": None if isinstance(jwks, Mapping) else jwks})
        check_log_dir(log_dir, has_zookeeper=zookeeper is not None)
        check_topics(topics or {})
        if replication_factor is not None:
            check_number("replication_factor", replication_factor, 1, brokers)
        check_racks(racks, brokers)
        personality = Personality(version)
        protocols = listener_protocols(security, listeners, personality)
        check_number("port", port, 0, 65536 - brokers * len(protocols))
        hosts = advertised_hosts(host, advertised_host, protocols)
        if acls is not None:
            properties = with_authorizer(properties or {}, personality)
        static = StaticProperties(
            properties or {},
            personality,
            {
                "num.partitions": default_partitions,
                "default.replication.factor": replication_factor or min(REPLICATION_FACTOR, brokers),
                "auto.create.topics.enable": auto_create_topics,
                "group.min.session.timeout.ms": group_min_session_timeout_ms,
                "group.max.session.timeout.ms": personality.group_max_session_timeout_ms,
                "group.initial.rebalance.delay.ms": group_initial_rebalance_delay_ms,
                "group.consumer.session.timeout.ms": group_consumer_session_timeout_ms,
                "group.consumer.heartbeat.interval.ms": group_consumer_heartbeat_interval_ms,
            },
        )
        self._state = ClusterState(
            personality,
            default_partitions=static.number("num.partitions"),
            default_replication_factor=min(static.number("default.replication.factor"), brokers),
            auto_create_topics=static.flag("auto.create.topics.enable"),
            group_limits=GroupLimits.of(static.number),
            configs=Configs(personality, static.values),
            max_memory_bytes=max_memory_bytes,
        )
        self._state.protection = Protection(
            list(protocols.values()),
            personality,
            self._state.scram,
            users=passwords,
            check_token=check_token,
            jwks=jwks,
            given_certificates=given_certificates(ssl_certfile, ssl_keyfile, ssl_cafile),
            mechanisms=mechanisms,
            client_auth=client_auth,
            properties=static.values,
            hosts=[each for each in (host, *hosts.values()) if each not in WILDCARDS],
        )
        self._state.authorizer = authorizer_of(self._state.acls, static.given)
        self._acls = ClusterAcls(self._state)
        self._acls.add(acls or ())
        if group_version is not None:
            self._state.features["group.version"] = group_version
        self._state.transactions.marker_delay = transaction_marker_delay_ms / 1000
        if transaction_version is not None:
            self._state.features["transaction.version"] = transaction_version
        self._state.served = served_apis(personality)
        self._state.nodes = {
            node_id: Node(
                node_id,
                endpoints_of(node_id, protocols, hosts, host=host, port=port, brokers=brokers),
                racks[node_id] if racks else None,
            )
            for node_id in range(brokers)
        }
        self._topics = {name: topic_arguments(each) for name, each in (topics or {}).items()}
        for name, arguments in self._topics.items():
            self._check_topic(name, **arguments)
        self._log_dir = None if log_dir is None else LogDir(log_dir, self._state)
        self._zookeeper_mode = None
        if zookeeper is not None:
            self._zookeeper_mode = ZooKeeperMode(
                self._state, zookeeper, zookeeper_chroot.rstrip("/"), deletes_topics=delete_topic_enable
            )
        self._tasks = TaskTree()
        self._is_entered = self._is_closed = False
        self._listeners: dict[int, list[Listener]] = {}
        self._kept: dict[tuple[int, str], socket.socket] = {}
        """The ports of stopped brokers, bound and refusing: another process would be given one, and keep it."""

    # -- life

    async def __aenter__(self) -> EmbeddedCluster:
        if self._is_entered:
            raise ClosedError("a cluster cannot be reused; create a new one")
        self._is_entered = True
        await self._tasks.__aenter__()
        try:
            if not has_columns_decoder():
                # Import the decoder now, since importing it for the first large batch would delay all clients.
                await anyio.to_thread.run_sync(load_columns_decoder)
            self._state.timers.start()
            self._tasks.start("clock of the embedded cluster", self._state.timers.run)
            if self._log_dir is not None:
                self._log_dir.open()
            self._state.start_log_manager()
            self._warn_of_host()
            if self._zookeeper_mode is not None:
                self._zookeeper_mode.start()
            for node_id in self._state.nodes:
                await self._open(node_id)
            self._state.topics.brokers_changed()
            self._state.transactions.resume()
            self._brokers_changed()
            for name, arguments in self._topics.items():
                if name not in self._state.topics:  # it may exist already, in ZooKeeper or log_dir
                    self.create_topic(name, **arguments)
            self._brokers_changed()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc_info: Any) -> None:
        await self._close()
        if kind is None and self._tasks.failure is not None:
            raise self._tasks.failure
        if kind is None and self._state.failures:
            first = self._state.failures[0]
            raise ClientFailedError(
                f"the embedded broker failed {len(self._state.failures)} times, first with {first!r}"
            ) from first

    async def aclose(self) -> None:
        """Stop all brokers, as leaving the block does; raises ClientFailedError if one of them has failed."""
        await self.__aexit__(None)

    async def _close(self) -> None:
        self._is_closed = True
        if self._zookeeper_mode is not None:
            self._zookeeper_mode.close()
        for node_id in tuple(self._listeners):
            await self._shut(node_id)
        for kept in self._kept.values():
            kept.close()
        self._state.groups.close()
        self._state.transactions.close()
        if self._log_dir is not None:
            self._log_dir.close()
        self._state.protection.close()
        await self._tasks.aclose()

    def _warn_of_host(self) -> None:
        host = next(iter(self._state.nodes.values())).endpoint.bind_host
        if not is_loopback(host) and not self._state.protection.demands_identity:
            self._state.log.warning("the embedded broker is open to other machines and asks for no password", host=host)

    async def _open(self, node_id: int) -> None:
        node = self._state.nodes[node_id]
        self._listeners[node_id] = []
        for endpoint in node.endpoints.values():
            bound = self._kept.pop((node_id, endpoint.listener), None) or bind(endpoint.bind_host, endpoint.port)
            endpoint.port = bound.getsockname()[1]
            context = self._state.protection.server_context(endpoint.protocol)
            new_session = partial(self._new_session, node, endpoint)
            self._listeners[node_id].append(await listen(bound, new_session, self._tasks, context))
        self._state.configs.nodes[str(node_id)] = node_properties(self._state.personality, node)
        node.is_running = True

    async def _shut(self, node_id: int) -> None:
        node = self._state.nodes[node_id]
        node.is_running = False
        node.fetch_sessions = FetchSessions()
        for listener in self._listeners.pop(node_id):
            await listener.aclose()
        if not self._is_closed:
            for endpoint in node.endpoints.values():
                self._kept[node_id, endpoint.listener] = bind(endpoint.bind_host, endpoint.port)

    def _new_session(self, node: Node, endpoint: Endpoint, peer: Peer, output: Output) -> Session:
        user, refusal = None, ""
        if peer.certificate is not None and not uses_sasl(endpoint.protocol):
            try:
                user = self._state.protection.certificate_user(peer.certificate)
            except Refused as refused:
                refusal = str(refused)
        session = Session(self._state, node, peer.host, output, endpoint=endpoint, certificate_user=user)
        if refusal:
            session.refuse(refusal)
        return session

    # -- what it is

    @property
    def bootstrap_servers(self) -> str:
        """``"host:port,host:port"`` of the running brokers, at their first listener."""
        return ",".join(node.address for node in self._state.live_nodes())

    @property
    def listeners(self) -> dict[str, str]:
        """Names of listeners, and ``"host:port,host:port"`` of the running brokers there."""
        names = next(iter(self._state.nodes.values())).endpoints
        live = self._state.live_nodes()
        return {name: ",".join(node.endpoints[name].address for node in live) for name in names}

    @property
    def ca_file(self) -> str:
        """PEM file of the CA that has signed the brokers' certificates; ConfigError without TLS."""
        certificates = self._state.protection.certificates
        if certificates is None:
            raise ConfigError(f"security={', '.join(self._state.protection.protocols)} has no certificates")
        if certificates.ca_file is None:
            raise ConfigError("the cluster was given ssl_certfile without ssl_cafile")
        return certificates.ca_file

    def client_settings(
        self, user: str | None = None, mechanism: str | None = None, *, listener: str | None = None
    ) -> dict[str, Any]:
        """Keyword arguments for Producer, Consumer and Admin, which contain the user's password.

        By default the first user logs in at the first listener, with the cluster's strongest mechanism.
        """
        protocol, addresses = self._listener(listener)
        settings = self._state.protection.client_settings(protocol, user, mechanism)
        return {"bootstrap_servers": addresses, **settings}

    def client_properties(
        self, user: str | None = None, mechanism: str | None = None, *, listener: str | None = None
    ) -> dict[str, str]:
        """``client_settings()`` as properties of Kafka's Java clients, which ``from_properties`` takes too.

        With TLS, Java's clients need version 2.7 or later: the stores are PEM files.
        """
        protocol, addresses = self._listener(listener)
        properties = self._state.protection.client_properties(protocol, user, mechanism)
        return {"bootstrap.servers": addresses, **properties}

    def _listener(self, name: str | None) -> tuple[str, str]:
        """Security protocol and addresses of a listener, by default the first one."""
        addresses = self.listeners
        chosen = next(iter(addresses)) if name is None else name
        if chosen not in addresses:
            raise ConfigError(f"there is no listener {chosen!r:.100}; the cluster has {', '.join(addresses)}")
        return next(iter(self._state.nodes.values())).endpoints[chosen].protocol, addresses[chosen]

    @property
    def version(self) -> str:
        """The release that is played."""
        return self._state.personality.release

    @property
    def served_versions(self) -> dict[int, VersionRange]:
        """What the brokers offer, by API key, as ApiVersions tells it."""
        return dict(self._state.served)

    @property
    def brokers(self) -> tuple[Node, ...]:
        """All brokers, the stopped ones too: ``node_id``, ``host``, ``port``, ``is_running``."""
        return tuple(self._state.nodes.values())

    @property
    def faults(self) -> Faults:
        """The script of faults."""
        return self._state.faults

    @property
    def acls(self) -> ClusterAcls:
        """The ACLs, with methods that add and remove some."""
        return self._acls

    @property
    def requests(self) -> list[LoggedRequest]:
        """Every request so far (the last 100,000), oldest first; clear the list to start anew."""
        return self._state.requests

    @property
    def principals(self) -> dict[str, str]:
        """Principals (``"User:alice"``) of connections without authentication, by client id, for tests with ACLs."""
        return self._state.principals

    # -- topics

    @property
    def topics(self) -> dict[str, int]:
        """Topic names and their numbers of partitions."""
        return {topic.name: len(topic.partitions) for topic in self._state.topics}

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic at once; ``config`` has Kafka's topic properties (``"message.timestamp.type"``, ...)."""
        self._check_open()
        count, factor, own = self._check_topic(name, partitions, replication_factor, config)
        if name in self._state.topics:
            raise ConfigError(f"topic {name!r} exists")
        other = self._state.colliding_topic(name)
        if other is not None:
            raise ConfigError(
                f"topic {name!r} collides with topic {other!r}: '.' and '_' are equal in names of metrics"
            )
        self._state.topics.create(name, count, factor, own)

    def _check_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> tuple[int, int, dict[str, str]]:
        """Partitions, replicas and configs of a new topic."""
        count = self._state.default_partitions if partitions is None else partitions
        factor = self._state.default_replication_factor if replication_factor is None else replication_factor
        check_topic(name, count)
        check_number(f"topic {name!r}: replication_factor", factor, 1, MOST_BROKERS)
        if factor > len(self._state.nodes):
            text = f"replication_factor={factor} needs {factor} brokers; the cluster has {len(self._state.nodes)}"
            raise ConfigError(f"topic {name!r}: {text}")
        fault = topic_config_fault(config or {}, self._state.personality)
        if fault is not None:
            raise ConfigError(fault, topic=name)
        return count, factor, dict(config or {})

    def add_partitions(self, name: str, partitions: int) -> None:
        """Let a topic have so many partitions, more than it has; clients learn of them when they ask for metadata."""
        self._check_open()
        topic = self._topic(name)
        check_number("partitions", partitions, len(topic.partitions) + 1, MOST_PARTITIONS)
        self._state.topics.grow(topic, partitions, len(topic.partitions[0].replicas))

    def delete_topic(self, name: str) -> None:
        """Delete a topic at once, with its records."""
        self._state.delete_topic(self._topic(name))

    def leader(self, topic: str, partition: int) -> int:
        """The leader's node id; -1 while there is none."""
        return self._partition(topic, partition).leader

    def records(self, topic: str, partition: int, *, committed: bool = False) -> list[Record]:
        """All records of a partition, decoded; ``committed``: without those of open and aborted transactions."""
        return self._partition(topic, partition).log.records(is_committed=committed)

    def log_start_offset(self, topic: str, partition: int) -> int:
        return self._partition(topic, partition).log.start_offset

    def log_end_offset(self, topic: str, partition: int) -> int:
        """The offset that the next record will get."""
        return self._partition(topic, partition).log.end_offset

    def last_stable_offset(self, topic: str, partition: int) -> int:
        """The first offset of an open transaction; the log's end offset if there is none."""
        return self._partition(topic, partition).log.stable_offset

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Delete the records before an offset, as retention does."""
        log = self._partition(topic, partition).log
        check_offset(log, before_offset)
        log.trim(before_offset)

    def clean_logs(self, now_ms: int | None = None) -> None:
        """Run retention and compaction now, or as if the time were ``now_ms``."""
        at_ms = self._state.now_ms() if now_ms is None else now_ms
        self._state.log_manager.delete_old_segments(at_ms)
        self._state.log_manager.compact(at_ms)

    # -- transactions

    @property
    def transactions(self) -> dict[str, str]:
        """Transactional ids and their states, named as DescribeTransactions names them (``"Ongoing"``, ...)."""
        return {each.transactional_id: each.state.value for each in self._state.transactions}

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort an open transaction, as when its time-out has passed."""
        if not self._state.transactions.expire(transactional_id):
            raise ConfigError(f"transactional id {transactional_id!r} has no transaction open")

    # -- leaders and brokers

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Make a running broker the leader, and a replica if it was none."""
        if not self._node(node_id).is_running:
            raise ConfigError(f"broker {node_id} is stopped and cannot lead")
        self._partition(topic, partition, replica=node_id).lead(node_id)

    def elect_unclean_leader(self, topic: str, partition: int, node_id: int, end_offset: int) -> None:
        """Make a running broker the leader whose log ends at ``end_offset``: later records, as whole batches, are lost.

        It may be the leader already.
        """
        if not self._node(node_id).is_running:
            raise ConfigError(f"broker {node_id} is stopped and cannot lead")
        check_offset(self._partition(topic, partition).log, end_offset)
        target = self._partition(topic, partition, replica=node_id)
        target.log.truncate(end_offset)
        target.elect(node_id)

    def coordinator(self, key: str) -> int:
        """The node id of the broker that coordinates a group or a transactional id; -1 while there is none."""
        node = self._state.coordinator(key)
        return node.node_id if node is not None else -1

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Let a running broker coordinate a group or a transactional id, until it stops."""
        if not self._node(node_id).is_running:
            raise ConfigError(f"broker {node_id} is stopped and cannot coordinate")
        self._state.choose_coordinator(key, node_id)

    def expire_sessions(self, group_id: str, member_id: str | None = None) -> None:
        """Put a member out of its group, or all of them, as when no heartbeat came in time."""
        if not self._state.groups.expire(group_id, member_id):
            raise ConfigError(f"group {group_id!r} has no such member")

    async def stop_broker(self, node_id: int) -> None:
        """Close a broker's listener and connections at once; leaders move to live replicas."""
        if not self._node(node_id).is_running:
            raise ConfigError(f"broker {node_id} is stopped already")
        await self._shut(node_id)
        self._state.topics.brokers_changed()
        self._brokers_changed()

    async def start_broker(self, node_id: int) -> None:
        """Start a stopped broker again, at the port it had; it takes no leadership back by itself."""
        if self._node(node_id).is_running:
            raise ConfigError(f"broker {node_id} is running already")
        self._check_open()
        await self._open(node_id)
        self._state.topics.brokers_changed()
        self._brokers_changed()

    def _brokers_changed(self) -> None:
        if self._zookeeper_mode is not None:
            self._zookeeper_mode.brokers_changed()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the embedded cluster has ended")

    def _node(self, node_id: int) -> Node:
        node = self._state.nodes.get(node_id)
        if node is None:
            raise ConfigError(f"there is no broker {node_id}")
        return node

    def _topic(self, name: str) -> Topic:
        topic = self._state.topics.find(name)
        if topic is None:
            raise ConfigError(f"there is no topic {name!r}")
        return topic

    def _partition(self, topic: str, partition: int, *, replica: int | None = None) -> Partition:
        found = self._state.topics.find_partition(topic, partition)
        if found is None:
            raise ConfigError(f"there is no partition {partition} of topic {topic!r}")
        if replica is not None and replica not in found.replicas:
            found.replicas.append(replica)
            found.note_replicas()
            found.isr.append(replica)
        return found
