"""The driver of one client of one cluster: metadata, and a connection per broker and purpose, made on demand.

Producer and Consumer each own one.  What is asked when stands in ``machine``; a connection's own life in
``connection``, which one carries a request in ``connections``.  Here: the calls, their deadlines, and telling
everybody about new snapshots.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from pykafka08.backoff import Backoff
from pykafka08.cluster.connections import Connections, Purpose
from pykafka08.cluster.health import ClientHealth, connections_health
from pykafka08.cluster.machine import UNSOLVABLE, Ask, ClusterMachine
from pykafka08.cluster.metadata import Broker, LeaderNews, Snapshot
from pykafka08.cluster.refusals import Refusals
from pykafka08.cluster.requests import MetadataCall
from pykafka08.cluster.topic_creation import CREATION_S, creation_check, creation_refusal
from pykafka08.config import Address, ClientConfig
from pykafka08.connection.connection import Connection, Message
from pykafka08.connection.secure_dial import dial_for
from pykafka08.connection.transport import Dial
from pykafka08.driver import Driver, TaskScope, TaskTree, Waiter, clock, library_logger
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ClosedError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    ResponseTooLargeError,
    SecurityError,
    TlsError,
    TransportError,
)
from pykafka08.errors.deadline import at_deadline, raising_refusals, refusal_of, with_refusal
from pykafka08.logs import is_prepared, prepare
from pykafka08.protocol.messages.create_topics import CreateTopicsResponse
from pykafka08.protocol.schema import Response
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.security.sasl.login import login_of
from pykafka08.short_names import address_text

__all__ = ["Client", "Purpose"]

R = TypeVar("R", bound=Response)

FIRST_TRY = 3.0
"""Seconds that :meth:`Client.request_any` first waits for one broker while other brokers can be asked."""

log = library_logger("cluster")


class Client:
    """One client of one cluster; ``async with Client(config) as client``.

    ``allow_auto_topic_creation`` False asks brokers (0.11 and later) not to create topics that metadata names.
    ``facts``, such as the group or the transactional id, are in each log line, beside ``client_id``.
    """

    def __init__(
        self,
        config: ClientConfig,
        tasks: TaskTree | None = None,
        *,
        allow_auto_topic_creation: bool = True,
        dial: Dial | None = None,
        facts: Mapping[str, str | None] | None = None,
    ) -> None:
        names = config.setting_names
        if config.broker_version is not None:
            # An unknown release is an error before the client connects.
            with names.naming():
                BrokerVersions.of_release(config.broker_version)
        self.config = config
        self.facts = {"client_id": config.client_id, **{k: v for k, v in (facts or {}).items() if v is not None}}
        """Facts in each log line of the client."""
        self._log = log.bind(**self.facts)
        self.tasks = tasks if tasks is not None else TaskTree()
        self._owns_tasks = tasks is None
        self._allow_auto_topic_creation = allow_auto_topic_creation
        with names.naming():
            dial = dial if dial is not None else dial_for(config.security)
            login = login_of(config.security) if config.security.uses_sasl else None
        self._connections = Connections(
            config,
            self.tasks,
            dial,
            login,
            on_ready=self._address_reachable,
            on_silence=lambda: self.invalidate(self.metadata.generation),
            on_end=self._connection_ended,
            facts=self.facts,
        )
        self._warn_of_unused_security()
        self._callbacks: list[Callable[[Snapshot], None]] = []
        self._on_refusal: Callable[[SecurityError], None] = lambda _: None
        self._news: Waiter[Snapshot] = Waiter()
        self._scope = TaskScope()

    def _warn_of_unused_security(self) -> None:
        security, names = self.config.security, self.config.setting_names
        if security.unused:
            self._log.warning(
                "security.settings_not_used",
                security_protocol=security.security_protocol,
                settings=", ".join(names[each] for each in security.unused),
                advice=names.in_text("set security_protocol to SSL, SASL_SSL or SASL_PLAINTEXT"),
            )

    # --- life -------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        if not is_prepared():
            await anyio.to_thread.run_sync(prepare)
        if self._owns_tasks:
            await self.tasks.__aenter__()
        try:
            self._now = clock()
            self._machine = ClusterMachine(self.config, random.random, self._now())
            self._driver = Driver(self._machine, self._ask)
            self._connections.is_open = True
            self.tasks.on_failure(self._fail_waiting)
            self.tasks.start("metadata", self._run)
            await self._bootstrap()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def _bootstrap(self) -> None:
        """Wait for the first snapshot.

        NoBrokersError as soon as every address has failed, or the SecurityError of one of them.
        """
        with anyio.CancelScope(deadline=self._deadline(None)):
            await self._news
            return
        raise self._machine.bootstrap_failure(
            {address_text(seed.host, seed.port): self._so_far(seed) for seed in self._machine.seeds}
        )

    def _so_far(self, seed: Broker) -> KafkaError:
        """What is known of a bootstrap address that has neither answered nor failed in time."""
        connection = self._connections.existing(seed, Purpose.CONTROL)
        limit = f"{self.config.setting_names['default_api_timeout_ms']}={self.config.default_api_timeout_ms:g}"
        without = connection.credentials_error(f"within {limit}") if connection is not None else None
        text = connection.progress if connection is not None else "the address was not tried yet"
        return without or RequestTimeoutError(f"{text} when {limit} was over", broker=seed.name)

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection; open requests fail with ClosedError.  Never waits for a broker."""
        self.tasks.check_affinity()
        self._connections.is_open = False
        self._scope.cancel()
        self._fail_waiting(ClosedError("the client was closed"))
        await self._connections.aclose()
        if self._owns_tasks:
            await self.tasks.aclose()

    async def _run(self) -> None:
        with self._scope.entered():
            await self._driver.run()

    def _fail_waiting(self, error: KafkaError) -> None:
        waiting, self._news = self._news, Waiter()
        waiting.set_exception(error)
        self._news.set_exception(error)

    # --- metadata ---------------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> Snapshot:
        """The newest snapshot."""
        return self._machine.snapshot

    def health(self) -> ClientHealth:
        """How the connections are doing at this moment."""
        return connections_health(self.tasks.failure, self._connections)

    def on_metadata(self, callback: Callable[[Snapshot], None]) -> None:
        """Call ``callback(snapshot)`` at each new snapshot, plainly."""
        self._callbacks.append(callback)

    def off_metadata(self, callback: Callable[[Snapshot], None]) -> None:
        """Undo :meth:`on_metadata`."""
        self._callbacks = [each for each in self._callbacks if each != callback]

    def on_refusal(self, callback: Callable[[SecurityError], None]) -> None:
        """Call ``callback(error)`` when no broker gives new metadata and one refuses the credentials."""
        self._on_refusal = callback

    @property
    def refusals(self) -> Refusals:
        """The brokers that refuse the credentials, or whose certificates are refused, at this moment."""
        return self._connections.refusals

    def refusal(self, nodes: Iterable[int] | None = None) -> SecurityError | None:
        """The last refusal of one of these brokers, or of any that can be asked for metadata."""
        ids = self._machine.candidates() if nodes is None else nodes
        brokers = [broker for each in ids if (broker := self._machine.broker(each)) is not None]
        return self.refusals.of(brokers, self._now())

    def use_topics(self, names: Iterable[str]) -> None:
        """Metadata asks for these topics from now on, too."""
        self._machine.use_topics(names)
        self._driver.wake()

    def drop_topics(self, names: Iterable[str]) -> None:
        """Metadata asks for these topics no more."""
        self._machine.drop_topics(names)

    def use_all_topics(self) -> None:
        """Metadata asks for every topic of the cluster from now on."""
        self._machine.use_all_topics()
        self._driver.wake()

    def seeds_changed(self, addresses: Sequence[Address]) -> None:
        """The brokers listen there, as somebody else knows: asked when none of those in the metadata answers."""
        self._machine.seeds_changed(addresses)
        self._driver.wake()

    def invalidate(self, generation: int) -> None:
        """What a snapshot of that generation said is wrong: refresh soon, once."""
        self._machine.invalidate(generation)
        self._driver.wake()

    async def refresh(self, *, timeout: float | None = None) -> Snapshot:
        """A snapshot newer than the present one; a refresh that is under way counts.

        RequestTimeoutError at the deadline, or the SecurityError of a broker that refuses this client.
        """
        self.tasks.check()
        generation = self.metadata.generation
        self.invalidate(generation)
        with raising_refusals():
            return await self._wait_for_news(generation, self._deadline(timeout), "new metadata")

    async def wait_for_topics(
        self, names: Iterable[str], *, timeout: float | None = None, needed: str | None = None
    ) -> Snapshot:
        """The snapshot in which each topic has partitions.

        UnknownTopicError if one has none at the deadline, RequestTimeoutError or SecurityError if no metadata came;
        another BrokerError at once where waiting cannot help.
        ``needed`` is the operation on the topics that an AuthorizationError asks for.
        """
        self.tasks.check()
        wanted = list(names)
        deadline, generation = self._deadline(timeout), self.metadata.generation
        check_at = self._now() + CREATION_S if self._allow_auto_topic_creation else math.inf
        missing: list[str] = []
        if any(self.metadata.topic_error(name) in UNSOLVABLE for name in wanted):
            await self.refresh(timeout=max(0.0, deadline - self._now()))  # the user may have got the right since
        try:
            while missing := [name for name in wanted if not self._machine.is_found(name, needed)]:
                self.use_topics(wanted)  # each time: another may have dropped them
                await self._wait_for_news(self.metadata.generation, deadline, "metadata")
                if self._now() >= check_at:
                    check_at = math.inf
                    await self._check_creation(missing, deadline)
        except RequestTimeoutError as error:
            missing = [name for name in wanted if not self._machine.is_found(name, needed)]
            if not missing:
                return self.metadata  # metadata that came in the turn of the event loop that ended the wait
            if self.metadata.generation == generation and refusal_of(error) is not None:
                raise at_deadline(error) from error
            raise self._machine.missing_topic(missing[0], error) from error
        return self.metadata

    async def _check_creation(self, topics: Iterable[str], deadline: float) -> None:
        """Raise the reason if one of these topics, which should exist by now, cannot be created."""
        for topic in topics:
            if self.metadata.topic_error(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                asked = self.submit_creation_check(topic, timeout=max(0.0, deadline - self._now()))
                with contextlib.suppress(KafkaError):
                    await asked
                refusal = self.creation_refusal(topic, asked)
                if refusal is not None:
                    raise refusal

    def submit_creation_check(self, topic: str, *, timeout: float) -> Waiter[CreateTopicsResponse]:
        """Ask the controller whether it would create the topic; :meth:`creation_refusal` reads the answer."""
        controller = self.metadata.controller_id
        if controller is None:
            return _failed(TransportError("the cluster's metadata names no controller"))
        seconds = min(timeout, self.config.request_timeout_ms / 1000)
        return self.submit(controller, creation_check(topic, seconds), timeout=seconds)

    def creation_refusal(self, topic: str, asked: Waiter[CreateTopicsResponse]) -> KafkaError | None:
        """The reason why the topic cannot be created; None if no reason is known."""
        if asked.error is not None:
            self._log.debug("metadata.creation_unknown", topic=topic, cause=str(asked.error))
            return None
        controller = self.metadata.brokers.get(self.metadata.controller_id or 0)
        return creation_refusal(topic, asked.result(), controller.name if controller is not None else None)

    async def _wait_for_news(self, generation: int, deadline: float, what: str) -> Snapshot:
        """A snapshot newer than ``generation``."""
        while self.metadata.generation <= generation:
            with anyio.CancelScope(deadline=deadline) as scope:
                await self._news
            if scope.cancelled_caught:
                text = f"no usable {what} came before the deadline; {self._machine.last_failure()}"
                raise with_refusal(RequestTimeoutError(text), self.refusal())
        return self.metadata

    def _deadline(self, timeout: float | None) -> float:
        seconds = self.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return self._now() + seconds

    def _ask(self, ask: Ask) -> None:
        """Perform the machine's one action."""
        self._log.debug("metadata.ask", node_id=ask.node_id, topics=ask.topics)
        call = MetadataCall(ask.topics, allow_auto_topic_creation=self._allow_auto_topic_creation)
        waiter = self.submit(ask.node_id, call, timeout=self.config.request_timeout_ms / 1000)
        waiter.add_done_callback(lambda ended: self._metadata_ended(ask, call, ended))

    def _metadata_ended(self, ask: Ask, call: MetadataCall, ended: Waiter[Any]) -> None:
        if ended.error is not None:
            self._log.info("metadata.failed", node_id=ask.node_id, cause=str(ended.error))
            self._machine.metadata_failed(ask.attempt, ended.error, self._now())
            self._round_may_have_failed()
        elif self._machine.metadata_received(ask.attempt, call.read(ended.result()), self._now()):
            waiting, self._news = self._news, Waiter()
            waiting.set_result(self.metadata)
            self._tell(self.metadata)
        elif (refused := self._machine.take_refused()) is not None:
            self._log.info("metadata.failed", node_id=ask.node_id, cause=str(refused))
            self._round_may_have_failed()
        self._driver.wake()

    def _round_may_have_failed(self) -> None:
        """Raise an error that no retry can fix in callers that wait for metadata."""
        if self._machine.bootstrap_error is not None and not self.metadata.generation:
            self._fail_waiting(self._machine.bootstrap_error)
        elif (error := self._machine.take_lasting_error()) is not None:
            waiting, self._news = self._news, Waiter()
            waiting.set_exception(error)
            if isinstance(error, SecurityError):
                self._on_refusal(error)

    def leaders_learned(self, news: Iterable[LeaderNews], brokers: Iterable[Broker]) -> None:
        """A broker has said who leads partitions that it leads no more: a new snapshot, if it is news (KIP-951)."""
        if self._machine.leaders_learned(news, brokers):
            self._tell(self.metadata)
            self._driver.wake()

    def _tell(self, snapshot: Snapshot) -> None:
        self._log.debug("metadata.new", generation=snapshot.generation, brokers=len(snapshot.brokers))
        self._connections.review((*self._machine.seeds, *snapshot.brokers.values()))
        for callback in list(self._callbacks):
            callback(snapshot)

    # --- requests ---------------------------------------------------------------------------------------------------

    def submit(
        self,
        node_id: int,
        message: Message[R],
        *,
        timeout: float,
        purpose: Purpose = Purpose.CONTROL,
        version: int | None = None,
    ) -> Waiter[R]:
        """Send ``message`` to a broker, in the highest version that both know or this one, after those before it.

        Connects if need be; the waiter ends within ``timeout`` seconds.  A request without an answer (acks=0) ends
        with None when it is on its way.
        """
        broker = self._machine.broker(node_id)
        if broker is None:
            self.invalidate(self.metadata.generation)
            return _failed(TransportError(f"broker {node_id} is not in the cluster's metadata; it is asked for again"))
        if not self._connections.is_open:
            return _failed(ClosedError("the client is closed", broker=broker.name))
        return self._connections.opened(broker, purpose).submit(message, timeout=timeout, version=version)

    def hang_up(self, node_id: int, purpose: Purpose, cause: KafkaError) -> None:
        """Close that connection, if there is one: what waits for an answer on it fails with ``cause``."""
        broker = self._machine.broker(node_id)
        connection = self._connections.existing(broker, purpose) if broker is not None else None
        if connection is not None:
            connection.close(cause)

    def is_busy(self, node_id: int, purpose: Purpose) -> bool:
        """True if an answer is pending on that connection: brokers handle the requests of a connection in order."""
        broker = self._machine.broker(node_id)
        connection = self._connections.existing(broker, purpose) if broker is not None else None
        return connection is not None and connection.open_calls > 0

    async def request(
        self,
        node_id: int,
        message: Message[R],
        *,
        timeout: float | None = None,
        purpose: Purpose = Purpose.CONTROL,
        version: int | None = None,
    ) -> R:
        """The answer of one broker; ``timeout`` defaults to ``request_timeout_ms``."""
        self.tasks.check()
        seconds = self.config.request_timeout_ms / 1000 if timeout is None else timeout
        return await self.submit(node_id, message, timeout=seconds, purpose=purpose, version=version)

    async def request_any(self, message: Message[R], *, timeout: float | None = None) -> R:
        """The answer of any broker, for what may be asked twice: each is tried until one answers or time is up."""
        return (await self.ask_any(message, timeout=timeout))[1]

    async def ask_any(self, message: Message[R], *, timeout: float | None = None) -> tuple[int, R]:
        """As :meth:`request_any`, with the node id of the broker that answered.

        If a broker does not answer within ``FIRST_TRY`` seconds, the next one is asked; the time doubles in each round.
        The error at the deadline has the refusal of a broker as its cause, if one refuses this client.
        """
        deadline = self._deadline(timeout)
        most = self.config.request_timeout_ms / 1000
        backoff = Backoff(self.config.retry_backoff_ms / 1000, self.config.retry_backoff_max_ms / 1000, random.random)
        patience = FIRST_TRY
        refusal: SecurityError | None = None
        while True:
            error: KafkaError | None = None
            # An answer that is pending may take long: a commit waits for replicas.
            candidates = sorted(self._machine.candidates(), key=lambda each: self.is_busy(each, Purpose.CONTROL))
            for node_id in candidates:
                left = deadline - self._now()
                if error is not None and left <= 0:
                    raise with_refusal(error, refusal)
                limit = min(most, patience) if len(candidates) > 1 else most
                try:
                    return node_id, await self.request(node_id, message, timeout=min(limit, max(left, 0.0)))
                except (TransportError, RemoteProtocolError, RequestTimeoutError, TlsError) as failed:
                    error, refusal = failed, refusal_of(failed) or refusal
            if isinstance(error, (ResponseTooLargeError, TlsError)):
                raise error
            patience *= 2
            pause = backoff.failed()
            if error is not None and self._now() + pause >= deadline:
                raise with_refusal(error, refusal)
            await anyio.sleep(pause)

    def versions_nowait(self, node_id: int) -> BrokerVersions | None:
        """What that broker serves; None if it was never connected to."""
        broker = self._machine.broker(node_id)
        return self._connections.versions(broker) if broker is not None else None

    async def versions(self, node_id: int, *, timeout: float | None = None) -> BrokerVersions:
        """What that broker serves; connects to learn it."""
        self.tasks.check()
        known = self.versions_nowait(node_id)
        if known is not None:
            return known
        broker = self._machine.broker(node_id)
        if broker is None:
            raise TransportError(f"broker {node_id} is not in the cluster's metadata")
        deadline = self._deadline(timeout)
        with anyio.CancelScope(deadline=deadline):
            return await self._connections.opened(broker, Purpose.CONTROL).wait_ready()
        late = RequestTimeoutError("the broker's versions did not come before the deadline", broker=broker.name)
        raise at_deadline(late, self.refusal([node_id]))

    # --- what the connections tell ----------------------------------------------------------------------------------

    def _address_reachable(self, address: Address) -> None:
        for node_id in self._nodes_at(address):
            self._machine.broker_reachable(node_id)

    def _connection_ended(self, connection: Connection) -> None:
        """One has ended that this client did not close."""
        if not connection.was_ready:
            now = self._now()
            for node_id in self._nodes_at(connection.address):
                self._machine.broker_unreachable(node_id, now)
        elif not connection.was_idle:
            self._machine.invalidate(self.metadata.generation)
        self._driver.wake()

    def _nodes_at(self, address: Address) -> list[int]:
        return [each.node_id for each in self.metadata.brokers.values() if (each.host, each.port) == address]


def _failed(error: KafkaError) -> Waiter[Any]:
    waiter: Waiter[Any] = Waiter()
    waiter.set_exception(error)
    return waiter
