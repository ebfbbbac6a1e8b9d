"""Brokers that refuse a client while it runs, and calls with a deadline that passes before the client gives up.

Each call raises the SecurityError, and not the time-out that hides it.  The calls are made once every client has been
refused, so that any deadline will do.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio
import pytest

from pykafka08 import (
    Admin,
    AuthenticationError,
    BufferFullError,
    CertificateError,
    Consumer,
    ConsumerTimeoutError,
    DeliveryTimeoutError,
    EmbeddedCluster,
    KafkaError,
    NewTopic,
    Producer,
    RequestTimeoutError,
    SecurityError,
    TopicPartition,
    TransportError,
)
from pykafka08.broker.security.certificates import Certificates
from pykafka08.broker.security.mechanisms import Principal, Refused
from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, ConsumerConfig, build
from pykafka08.driver import clock
from pykafka08.group.coordinator import GroupCoordinator
from pykafka08.group.settings import GroupConfig
from pykafka08.mirror import plan as mirror_plan
from pykafka08.security.secret import Secret
from pykafka08.spark.locating import present_partitions
from pykafka08.spark.ranges import Range, ReadSettings, ReadTask
from pykafka08.spark.reading import _Reading
from tests.test_lost_credentials import change_password, credentials, old_and_secured

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

LIMIT_S = 60
"""For a busy machine."""
SHORT = 0.005
SHORT_MS = 5
RETRYING: dict[str, Any] = {"socket_connection_setup_timeout_ms": 600_000}
"""The time for which clients go on after a refusal: longer than any call of these tests."""
T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
BROKER: dict[str, Any] = {
    "topics": {"t": 1, "u": 1},
    "properties": {"connection.failed.authentication.delay.ms": "0"},
}


# --- ways of refusal ----------------------------------------------------------------------------------------------


@dataclass
class Way:
    """A cluster, and what makes its broker refuse every client from then on, with which error."""

    cluster: EmbeddedCluster
    settings: dict[str, Any]
    spoil: Callable[[], None]
    kind: type[SecurityError]
    text: str

    async def refuse(self) -> None:
        self.spoil()
        await self.cluster.stop_broker(0)
        await self.cluster.start_broker(0)


@asynccontextmanager
async def password(**more: Any) -> AsyncIterator[Way]:
    async with EmbeddedCluster(
        security="SASL_PLAINTEXT", users={"alice": "old"}, mechanisms=["PLAIN"], **BROKER, **more
    ) as cluster:
        yield Way(
            cluster,
            cluster.client_settings(),
            lambda: cluster._state.protection._passwords.update(alice=Secret("new")),
            AuthenticationError,
            "the broker refused the credentials: Authentication failed: Invalid username or password; "
            "check sasl_plain_username and sasl_plain_password",
        )


@asynccontextmanager
async def token() -> AsyncIterator[Way]:
    revoked: list[str] = []

    def check(given: str) -> Principal:
        if given in revoked:
            raise Refused("revoked")
        return Principal("alice", time.time() + 3600)

    async with EmbeddedCluster(
        security="SASL_PLAINTEXT", check_token=check, mechanisms=["OAUTHBEARER"], **BROKER
    ) as cluster:
        settings = {**cluster.client_settings(), "sasl_oauth_token_provider": lambda: "token"}
        yield Way(
            cluster,
            settings,
            lambda: revoked.append("token"),
            AuthenticationError,
            "the broker refused the credentials: Authentication failed: revoked (the broker sent the token back); "
            "check the token: its issuer, audience, scope, times and signature",
        )


@asynccontextmanager
async def certificate() -> AsyncIterator[Way]:
    other = Certificates()
    async with EmbeddedCluster(security="SSL", **BROKER) as cluster:
        protection = cluster._state.protection

        def change_ca() -> None:
            context = other.server_context()
            protection.server_context = lambda _: context  # type: ignore[method-assign]

        yield Way(cluster, cluster.client_settings(), change_ca, CertificateError, "")
    other.close()


WAYS = {"password": password, "token": token, "certificate": certificate}


# --- calls --------------------------------------------------------------------------------------------------------


class Clients:
    """Clients that have worked once; ``short`` ones have deadlines of their own in their settings."""

    def __init__(self, stack: AsyncExitStack, settings: Mapping[str, Any]) -> None:
        self._stack = stack
        self._settings = {**settings, **RETRYING}
        self.clients: list[Client] = []

    async def open(self) -> None:
        settings, enter = self._settings, self._stack.enter_async_context
        (config,) = build(dict(settings), ClientConfig)
        self.client = await enter(Client(config))
        self.admin = await enter(Admin(**settings))
        self.producer = await self._producer()
        self.hasty = await self._producer(delivery_timeout_ms=SHORT_MS)
        self.full = await self._producer(max_block_ms=SHORT_MS, buffer_memory=1024, batch_size=1024)
        self.transactional = await self._producer(transactional_id="x", delivery_timeout_ms=SHORT_MS)
        self.committing = await self._producer(transactional_id="y")
        self.consumer = await enter(Consumer(**settings))
        self.member = await enter(
            Consumer("t", group_id="g", enable_auto_commit=False, auto_offset_reset="earliest", **settings)
        )
        self._stack.push_async_callback(self.member.aclose, timeout=0)
        self.group = GroupCoordinator(self.client, GroupConfig(group_id="h"), Listener())
        self._stack.push_async_callback(self.group.aclose, timeout=0)
        await self._use()
        owners = (self.admin, self.producer, self.hasty, self.full, self.transactional, self.committing)
        inner = [owner._client for owner in (*owners, self.consumer, self.member)]
        self.clients = [self.client, *(each for each in inner if each is not None)]

    async def _producer(self, **more: Any) -> Producer:
        producer = await self._stack.enter_async_context(Producer(**self._settings, **more))
        self._stack.push_async_callback(producer.aclose, timeout=0)
        return producer

    async def _use(self) -> None:
        """Each must have been served once, by the leader and the coordinators too."""
        await self.producer.send("t", b"1")
        for each in (self.hasty, self.full):
            await each.partitions("t")
        self.block = self.committing.transaction()
        await self.block.__aenter__()
        await self.committing.send("u", b"1")
        self.consumer.assign([T0])
        await self.consumer.seek_to_end()
        await self.member.getone(timeout=LIMIT_S)

    async def are_refused(self) -> None:
        for producer in (self.transactional, self.committing):
            producer._transactions._max_block = SHORT
        await refused(*self.clients)


async def refused(*clients: Client | None) -> None:
    """Wait until brokers have refused each client."""
    with anyio.fail_after(LIMIT_S):
        while any(each is not None and each.refusal() is None for each in clients):  # noqa: ASYNC110
            await anyio.sleep(0.005)


class Listener:
    async def partitions_assigned(self, added: frozenset[TopicPartition]) -> None: ...
    async def partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None: ...
    async def partitions_lost(self, partitions: frozenset[TopicPartition]) -> None: ...


async def wait_stable(clients: Clients) -> None:
    clients.group.subscribe(["t"])
    await clients.group.wait_stable(timeout=SHORT)


def by_default(call: Callable[[Client], Awaitable[Any]]) -> Call:
    """A call without a timeout of its own, of a client with a short ``default_api_timeout_ms``."""

    async def bounded(clients: Clients) -> None:
        config = clients.client.config
        clients.client.config = replace(config, default_api_timeout_ms=SHORT_MS)
        try:
            await call(clients.client)
        finally:
            clients.client.config = config

    return bounded


async def make_topics(clients: Clients) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mirror_plan, "MADE_WITHIN_S", SHORT)
        await mirror_plan._wait_made(clients.admin, [mirror_plan.TopicPlan("t", "t", 1, 1, None)])


async def read_ranges(clients: Clients) -> None:
    settings = ReadSettings(clients.client.config, ConsumerConfig(), poll_timeout_ms=SHORT_MS)
    await _Reading(clients.client, ReadTask((Range("t", 0, 0, 1),), settings)).next_answers()


async def flush(clients: Clients) -> None:
    clients.producer.enqueue("t", b"2")
    await clients.producer.flush(timeout=SHORT)


async def wait_for_room(clients: Clients) -> None:
    with suppress(BufferFullError):
        while True:
            clients.full.enqueue("t", b"2" * 100)
    await clients.full.send("t", b"2" * 900)


async def transact(clients: Clients) -> None:
    async with clients.transactional.transaction():
        await clients.transactional.send("t", b"2")


async def send_offsets(clients: Clients) -> None:
    async with clients.transactional.transaction():
        await clients.transactional.send_offsets({T0: 1}, "g")


Call = Callable[[Clients], Awaitable[Any]]
LATE = (RequestTimeoutError, TransportError)

CALLS: dict[str, tuple[Call, type[KafkaError] | tuple[type[KafkaError], ...]]] = {
    # the call, and the cause of the SecurityError: the error that the call would raise without it
    "Client.refresh": (lambda each: each.client.refresh(timeout=SHORT), LATE),
    "Client.refresh, default_api_timeout_ms": (by_default(lambda each: each.refresh()), LATE),
    "Client.wait_for_topics": (lambda each: each.client.wait_for_topics(["new"], timeout=SHORT), LATE),
    "GroupCoordinator.wait_stable": (wait_stable, LATE),
    "Admin.list_brokers": (lambda each: each.admin.list_brokers(timeout=SHORT), LATE),
    "Admin.cluster_id": (lambda each: each.admin.cluster_id(timeout=SHORT), LATE),
    "Admin.list_topics": (lambda each: each.admin.list_topics(timeout=SHORT), LATE),
    "Admin.describe_topics": (lambda each: each.admin.describe_topics(["t"], timeout=SHORT), LATE),
    "Admin.create_topics": (lambda each: each.admin.create_topics([NewTopic("new")], timeout=SHORT), LATE),
    "Admin.delete_topics": (lambda each: each.admin.delete_topics(["t"], timeout=SHORT), LATE),
    "Admin.create_partitions": (lambda each: each.admin.create_partitions({"t": 2}, timeout=SHORT), LATE),
    "Admin.list_groups": (lambda each: each.admin.list_groups(timeout=SHORT), LATE),
    "Admin.describe_groups": (lambda each: each.admin.describe_groups(["g"], timeout=SHORT), LATE),
    "Admin.delete_groups": (lambda each: each.admin.delete_groups(["g"], timeout=SHORT), LATE),
    "Admin.keeps_offsets": (lambda each: each.admin.keeps_offsets("g", timeout=SHORT), LATE),
    "Admin.list_group_offsets, all": (lambda each: each.admin.list_group_offsets("g", timeout=SHORT), LATE),
    "Admin.list_group_offsets": (lambda each: each.admin.list_group_offsets("g", [T0], timeout=SHORT), LATE),
    "Admin.alter_group_offsets": (lambda each: each.admin.alter_group_offsets("i", {T0: 1}, timeout=SHORT), LATE),
    "Admin.describe_topic_configs": (lambda each: each.admin.describe_topic_configs(["t"], timeout=SHORT), LATE),
    "Admin.describe_broker_configs": (lambda each: each.admin.describe_broker_configs(0, timeout=SHORT), LATE),
    "Admin.alter_topic_configs": (
        lambda each: each.admin.alter_topic_configs("t", {"retention.ms": "1"}, timeout=SHORT),
        LATE,
    ),
    "Producer.send, delivery_timeout_ms": (lambda each: each.hasty.send("t", b"2"), DeliveryTimeoutError),
    "Producer.send to a new topic": (lambda each: each.hasty.send("new", b"2"), DeliveryTimeoutError),
    "Producer.send, max_block_ms": (wait_for_room, BufferFullError),
    "Producer.flush": (flush, LATE),
    "Producer.send in a transaction": (transact, DeliveryTimeoutError),
    "Producer.send_offsets, max_block_ms": (send_offsets, LATE),
    "Producer, end of a transaction": (lambda each: each.block.__aexit__(None, None, None), LATE),
    "Consumer.getone": (lambda each: each.consumer.getone(timeout=SHORT), LATE),
    "Consumer.end_offsets": (lambda each: each.consumer.end_offsets([T0], timeout=SHORT), LATE),
    "Consumer.beginning_offsets": (lambda each: each.consumer.beginning_offsets([U0], timeout=SHORT), LATE),
    "Consumer.offsets_for_times": (lambda each: each.consumer.offsets_for_times({T0: 1}, timeout=SHORT), LATE),
    "Consumer.seek_to_beginning": (lambda each: each.consumer.seek_to_beginning(T0, timeout=SHORT), LATE),
    "Consumer.position": (lambda each: each.consumer.position(T0, timeout=SHORT), LATE),
    "Consumer.lag": (lambda each: each.consumer.lag(T0, timeout=SHORT), LATE),
    "Consumer.partitions_for_topic": (lambda each: each.consumer.partitions_for_topic("new", timeout=SHORT), LATE),
    "Consumer.getone in a group": (lambda each: each.member.getone(timeout=SHORT), LATE),
    "Consumer.commit": (lambda each: each.member.commit(timeout=SHORT), LATE),
    "Consumer.commit of offsets": (lambda each: each.member.commit({T0: 1}, timeout=SHORT), LATE),
    "mirror, new topics": (make_topics, LATE),
    "Spark, plan": (by_default(lambda each: present_partitions(each, ["t"])), LATE),
    "Spark, task": (read_ranges, LATE),
    "Consumer.committed": (lambda each: each.member.committed([T0], timeout=SHORT), LATE),
}
IN_DOUBT = "; the records may or may not be in the log"


@pytest.mark.parametrize("way", WAYS)
async def test_calls_raise_the_refusal_at_their_deadline(way: str) -> None:
    async with WAYS[way]() as refusing, AsyncExitStack() as stack:
        clients = Clients(stack, refusing.settings)
        await clients.open()
        await refusing.refuse()
        await clients.are_refused()
        refusal = clients.client.refusal()
        assert type(refusal) is refusing.kind
        if refusing.text:
            assert refusal.message == refusing.text
        wrong = {}
        for name, (call, cause) in CALLS.items():
            with anyio.fail_after(LIMIT_S):
                error = await error_of(call, clients)
            text = refusal.message + (IN_DOUBT if error.may_be_written else "")
            if (type(error), error.message) != (refusing.kind, text) or not isinstance(error.__cause__, cause):
                wrong[name] = error, error.__cause__
    assert wrong == {}


async def error_of(call: Call, clients: Clients) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        await call(clients)
    return caught.value


async def test_a_legacy_consumer_raises_the_refusal_at_its_deadline() -> None:
    async with old_and_secured() as old:
        async with Producer(**old.brokers.client_settings()) as producer:
            await producer.send("t", b"1")
        stores = {"offsets_storage": "kafka", "auto_commit_enable": False}
        async with old.consumer("t", **stores, **credentials(old.brokers)) as consumer:
            await consumer.getone(timeout=LIMIT_S)
            await consumer.commit(timeout=LIMIT_S)
            await change_password(old.brokers)
            await refused(consumer._reading.client)
            for call, cause in (
                (lambda: consumer.getone(timeout=SHORT), ConsumerTimeoutError),
                (lambda: consumer.commit({T0: 1}, timeout=SHORT), LATE),
            ):
                with pytest.raises(AuthenticationError, match="check sasl_plain_username") as caught:
                    await call()
                assert isinstance(caught.value.__cause__, cause)


async def test_a_refusal_counts_until_the_credentials_work() -> None:
    """Also while the broker cannot be reached."""
    async with password() as refusing:
        cluster = refusing.cluster
        async with Consumer("t", **refusing.settings, **RETRYING) as consumer:
            await refusing.refuse()
            await refused(consumer._client)
            await cluster.stop_broker(0)
            with pytest.raises(AuthenticationError):
                await consumer.getone(timeout=SHORT)
            cluster._state.protection._passwords["alice"] = Secret("old")
            await cluster.start_broker(0)
            await consumer.end_offsets([T0], timeout=LIMIT_S)
            with pytest.raises(RequestTimeoutError, match="no record came"):
                await consumer.getone(timeout=SHORT)


async def test_a_refusal_of_one_broker_is_raised_by_calls_to_it_alone() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        one, other = cluster.brokers
        refusal = AuthenticationError("refused")
        tps = {cluster._state.topics.find("t").partitions[each].leader: TopicPartition("t", each) for each in (0, 1)}
        cluster.faults.drop_answer("ApiVersions", times=None, broker=other.node_id)
        async with Consumer(bootstrap_servers=one.address) as consumer:
            client = consumer._client
            assert client is not None
            await client.wait_for_topics(["t"])
            client.refusals.refused((other.host, other.port), refusal, clock()())
            with pytest.raises(AuthenticationError, match="refused"):
                await client.versions(other.node_id, timeout=SHORT)
            consumer.assign([tps[one.node_id]])
            with pytest.raises(RequestTimeoutError, match="no record came"):
                await consumer.getone(timeout=SHORT)
            consumer.assign([tps[other.node_id]])
            with pytest.raises(AuthenticationError, match="refused"):
                await consumer.getone(timeout=SHORT)
