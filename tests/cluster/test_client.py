"""The client of a cluster over real sockets: bootstrap, metadata, routing, reconnects, and the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.cli.exits import describe
from pykafka08.cluster import machine as machine_module
from pykafka08.cluster.client import Client, Purpose
from pykafka08.cluster.metadata import Snapshot
from pykafka08.config import ClientConfig, parse_bootstrap_servers
from pykafka08.connection import silence
from pykafka08.driver import TaskTree
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    ClientFailedError,
    ClosedError,
    KafkaError,
    NoBrokersError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.produce import ProduceRequest
from pykafka08.protocol.versions import BrokerVersions
from tests.connection.answers import Asked, answer_to, metadata, topic, usual_answer
from tests.connection.peers import LOOPBACK, Caller, config, peer, refusing_address

pytestmark = pytest.mark.anyio

ASK = MetadataRequest(topics=[])


def of(cluster: EmbeddedCluster, **settings: Any) -> ClientConfig:
    return ClientConfig(bootstrap_servers=parse_bootstrap_servers(cluster.bootstrap_servers), **settings)


@asynccontextmanager
async def opened(cluster: EmbeddedCluster, **settings: Any) -> AsyncIterator[Client]:
    async with Client(of(cluster, **settings)) as client:
        yield client
        client.tasks.check()


def asked_for(cluster: EmbeddedCluster, api: str) -> int:
    return sum(request.api == api for request in cluster.requests)


# --- bootstrap ---


@pytest.mark.parametrize("release", ["0.8.0", "0.8.2", "0.9.0", "0.10.0", "1.1", "2.8", "4.3"])
async def test_every_release_is_recognised_and_its_topics_found(release: str) -> None:
    async with EmbeddedCluster(brokers=2, version=release, topics={"t": 3}) as cluster, opened(cluster) as client:
        snapshot = await client.wait_for_topics(["t"], timeout=20)
        assert snapshot.partitions("t") == (0, 1, 2)
        assert [snapshot.leader("t", number) for number in range(3)] == [cluster.leader("t", each) for each in range(3)]
        node_id = snapshot.leader("t", 0)
        assert node_id is not None
        versions = await client.versions(node_id, timeout=20)
        expected = BrokerVersions.of_release("0.8.0" if release.startswith("0.8") else release)
        for api in (ProduceRequest, FetchRequest, MetadataRequest):
            assert versions.ranges[api.api_key] == expected.ranges[api.api_key]
        assert client.versions_nowait(node_id) is versions
        assert asked_for(cluster, "ApiVersions") == 0 or not release.startswith(("0.8", "0.9"))


async def test_any_seed_may_be_dead() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, refusing_address() as dead:
        (seed,) = parse_bootstrap_servers(cluster.bootstrap_servers)
        for seeds in ([dead, seed], [seed, dead]):
            async with Client(config(*seeds)) as client:
                assert await client.wait_for_topics(["t"], timeout=20)


async def test_no_seed_answers() -> None:
    async with refusing_address() as dead:
        with pytest.raises(NoBrokersError) as caught:
            async with Client(config(dead, ("no-such-host.invalid", 9092))):
                raise AssertionError("it must not open")
    text = str(caught.value)
    assert "Connection refused" in text
    assert "cannot be resolved" in text
    assert set(caught.value.causes) == {f"{LOOPBACK}:{dead[1]}", "no-such-host.invalid:9092"}


async def test_the_no_broker_error_names_each_address_once() -> None:
    async with refusing_address() as dead, peer(close_at_once) as closing, peer(stay_silent) as silent:
        seeds = (dead, ("localhost", dead[1]), ("no-such-host.invalid", 9092), closing, silent)
        with pytest.raises(NoBrokersError) as caught:
            await Client(config(*seeds, socket_connection_setup_timeout_ms=200)).__aenter__()
    text = str(caught.value)
    assert [text.count(f"{host}:{port}") for host, port in seeds] == [1] * 5
    told = describe(caught.value)
    assert [told.count(f"{host}:{port}") for host, port in seeds] == [1] * 5
    assert text.count(LOOPBACK) == 4  # for localhost the error names the resolved address


async def close_at_once(caller: Caller) -> None:
    await caller.frame()


async def stay_silent(caller: Caller) -> None:
    while await caller.frame() is not None:
        pass


async def test_a_port_that_is_not_kafka_is_explained() -> None:
    async with peer(close_at_once) as address:
        with pytest.raises(NoBrokersError, match="ZooKeeper, TLS or SASL"):
            await Client(config(address)).__aenter__()


async def test_a_silent_port_is_given_up_in_time() -> None:
    async with peer(stay_silent) as address:
        with pytest.raises(NoBrokersError, match="accepted the connection but did not answer"):
            await Client(config(address, socket_connection_setup_timeout_ms=50)).__aenter__()


async def test_a_bootstrap_that_runs_out_of_time_says_what_is_known_of_each_address() -> None:
    async def say_versions(caller: Caller) -> None:
        await caller.greet()
        await stay_silent(caller)

    async with peer(stay_silent) as silent, peer(say_versions) as half:
        for seed, known in ((silent, "taken the connection but not answered"), (half, "not answered Metadata")):
            with pytest.raises(NoBrokersError, match=known) as caught:
                await Client(config(seed, default_api_timeout_ms=3000)).__aenter__()
            assert f"broker {LOOPBACK}:{seed[1]}" in str(caught.value)
            assert isinstance(caught.value.causes[f"{LOOPBACK}:{seed[1]}"], RequestTimeoutError)
        with pytest.raises(NoBrokersError, match="the address was not tried yet") as caught:
            await Client(config(silent, half, default_api_timeout_ms=100)).__aenter__()
        assert all(f"broker {LOOPBACK}:{port}" in str(caught.value) for _, port in (silent, half))


async def test_a_topic_dropped_while_it_is_waited_for_is_found_all_the_same() -> None:
    async with EmbeddedCluster(auto_create_topics=False) as cluster, opened(cluster) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.wait_for_topics, ["t"])
            while "t" not in (await client.refresh(timeout=20)).topics:
                pass
            client.drop_topics(["t"])
            await client.refresh(timeout=20)
            cluster.create_topic("t", 1, replication_factor=1)


async def test_a_seed_that_is_silent_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "SLOW_ANSWER", 0.05)
    async with EmbeddedCluster() as cluster, peer(stay_silent) as silent:
        (seed,) = parse_bootstrap_servers(cluster.bootstrap_servers)
        for _ in range(4):  # the order is by chance
            async with Client(config(silent, seed, socket_connection_setup_timeout_ms=3_600_000)) as client:
                assert client.metadata.generation == 1


async def test_garbage_from_a_seed_is_the_cause() -> None:
    async def play(caller: Caller) -> None:
        await caller.greet()
        asked = await caller.request()
        assert asked is not None
        await caller.send(answer_to(asked, metadata())[:-3] + b"\xff\xff\xff")
        await caller.frame()

    async with peer(play) as address:
        with pytest.raises(NoBrokersError) as caught:
            await Client(config(address)).__aenter__()
        (cause,) = caught.value.causes.values()
        assert isinstance(cause, RemoteProtocolError)


async def test_opening_may_be_cancelled() -> None:
    async with peer(stay_silent) as address:
        with anyio.move_on_after(0.05) as scope:
            await Client(config(address)).__aenter__()
        assert scope.cancelled_caught


# --- metadata ---


async def test_refresh_gives_a_newer_snapshot_and_tells_everybody() -> None:
    told: list[Snapshot] = []
    async with EmbeddedCluster() as cluster, opened(cluster) as client:
        client.on_metadata(told.append)
        before = client.metadata
        after = await client.refresh(timeout=20)
        assert after.generation > before.generation
        assert client.metadata is after
        assert told[-1] is after


async def test_many_refreshes_at_once_are_one_question() -> None:
    async with EmbeddedCluster() as cluster, opened(cluster) as client:
        await client.refresh(timeout=20)
        count = asked_for(cluster, "Metadata")
        snapshots = []

        async def refresh() -> None:
            snapshots.append(await client.refresh(timeout=20))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(refresh)
        assert len({id(snapshot) for snapshot in snapshots}) == 1
        assert asked_for(cluster, "Metadata") == count + 1


async def test_a_moved_leader_is_seen_after_an_invalidation() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, opened(cluster) as client:
        snapshot = await client.wait_for_topics(["t"], timeout=20)
        new_leader = 1 - cluster.leader("t", 0)
        cluster.move_leader("t", 0, new_leader)
        client.invalidate(snapshot.generation)
        while client.metadata.leader("t", 0) != new_leader:
            await client.refresh(timeout=20)


async def test_a_topic_made_while_waiting_is_found() -> None:
    async with EmbeddedCluster(auto_create_topics=False) as cluster, opened(cluster) as client:
        async with anyio.create_task_group() as group:

            async def create_later() -> None:
                for _ in range(3):
                    await client.refresh(timeout=20)
                cluster.create_topic("late", 2)

            group.start_soon(create_later)
            snapshot = await client.wait_for_topics(["late"], timeout=30)
        assert snapshot.partitions("late") == (0, 1)


async def test_metadata_that_comes_as_the_wait_for_it_ends_has_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, opened(cluster) as client:
        wait = client._wait_for_news

        async def wait_and_be_late(generation: int, deadline: float, what: str) -> Snapshot:
            await wait(generation, deadline, what)
            raise RequestTimeoutError("the deadline has passed")

        monkeypatch.setattr(client, "_wait_for_news", wait_and_be_late)
        assert (await client.wait_for_topics(["t"], timeout=20)).partitions("t") == (0,)


async def test_an_unknown_topic_is_said_at_the_deadline() -> None:
    async with EmbeddedCluster(auto_create_topics=False, topics={"t": 1}) as cluster, opened(cluster) as client:
        client.use_topics(["t", "nosuch"])
        await client.refresh(timeout=20)
        with pytest.raises(UnknownTopicError) as caught:
            await client.wait_for_topics(["t", "nosuch"], timeout=0.1)
        assert caught.value.topic == "nosuch"
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await client.wait_for_topics(["t"], timeout=20)


@pytest.mark.parametrize("allowed", [False, True])
async def test_topics_are_created_only_if_allowed(allowed: bool) -> None:
    async with EmbeddedCluster(version="2.8") as cluster:
        async with Client(of(cluster), allow_auto_topic_creation=allowed) as client:
            client.use_topics(["fresh"])
            await client.refresh(timeout=20)
            if allowed:
                await client.wait_for_topics(["fresh"], timeout=20)
            else:
                with pytest.raises(UnknownTopicError):
                    await client.wait_for_topics(["fresh"], timeout=0.1)
        assert ("fresh" in cluster.topics) is allowed


async def test_a_forbidden_topic_is_an_error_at_once() -> None:
    async def play(caller: Caller) -> None:
        while (asked := await caller.request()) is not None:
            if asked.name == "Metadata" and asked.request.topics:
                answer = metadata([(1, *caller.address)], [topic("secret", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)])
                await caller.send(answer_to(asked, answer))
            else:
                await caller.send(usual_answer(asked, "4.3", caller.address) or b"")

    async with peer(play) as address, Client(config(address)) as client:
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED") as caught:
            await client.wait_for_topics(["secret"], timeout=3600)
        assert caught.value.topic == "secret"


async def test_only_topics_in_use_are_in_the_snapshot() -> None:
    async with EmbeddedCluster(topics={"a": 1, "b": 1}) as cluster, opened(cluster) as client:
        assert list((await client.wait_for_topics(["a"], timeout=20)).topics) == ["a"]
        client.use_all_topics()
        assert set((await client.refresh(timeout=20)).topics) >= {"a", "b"}


async def test_waiting_without_any_broker_ends_in_time_with_the_reason() -> None:
    async with EmbeddedCluster() as cluster, opened(cluster) as client:
        await cluster.stop_broker(0)
        with pytest.raises(RequestTimeoutError, match="Connection refused"):
            await client.refresh(timeout=1)
        with pytest.raises(RequestTimeoutError) as caught:
            await client.wait_for_topics(["t"], timeout=0.3)
        assert caught.value.topic == "t"


# --- requests ---


async def test_requests_go_to_their_broker_in_its_version() -> None:
    async with EmbeddedCluster(brokers=2, version="2.8") as cluster, opened(cluster) as client:
        await client.refresh(timeout=20)
        for node in cluster.brokers:
            cluster.requests.clear()
            await client.request(node.node_id, ListGroupsRequest(), timeout=20)
            last = cluster.requests[-1]
            assert (last.broker, last.api, last.version) == (node.node_id, "ListGroups", 4)


async def test_a_request_made_for_the_brokers_release() -> None:
    seen: list[BrokerVersions] = []

    def make(versions: BrokerVersions) -> MetadataRequest:
        seen.append(versions)
        return ASK

    async with EmbeddedCluster(version="0.10.0") as cluster, opened(cluster) as client:
        await client.request(0, make, timeout=20)
        assert seen[0].release_guess == "0.10.0"


async def test_what_the_broker_does_not_have_is_an_error_of_that_call() -> None:
    async with EmbeddedCluster(version="0.8.0") as cluster, opened(cluster) as client:
        with pytest.raises(UnsupportedVersionError) as caught:
            await client.request(client.metadata.brokers.keys().__iter__().__next__(), FindCoordinatorRequest(key="g"))
        assert caught.value.api == "FindCoordinator"
        assert caught.value.broker is not None


async def test_an_unknown_broker_is_an_error() -> None:
    async with EmbeddedCluster() as cluster, opened(cluster) as client:
        with pytest.raises(TransportError, match="broker 77 is not in the cluster's metadata"):
            await client.request(77, ASK, timeout=20)
        with pytest.raises(TransportError):
            await client.versions(77, timeout=20)
        assert client.versions_nowait(77) is None


async def test_a_long_poll_does_not_hold_up_other_purposes() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, opened(cluster) as client:
        snapshot = await client.wait_for_topics(["t"], timeout=20)

        def fetch(versions: BrokerVersions) -> FetchRequest:
            partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            asked = FetchTopic(topic="t", topic_id=snapshot.topic_id("t"), partitions=[partition])
            return FetchRequest(max_wait_ms=3_600_000, min_bytes=1, max_bytes=1000, topics=[asked])

        poll = client.submit(0, fetch, timeout=7200, purpose=Purpose.FETCH)
        for purpose in (Purpose.CONTROL, Purpose.PRODUCE):
            await client.request(0, ASK, timeout=20, purpose=purpose)
        assert not poll.is_done
    with pytest.raises(ClosedError):
        await poll


async def test_connections_of_one_broker_share_what_was_learnt() -> None:
    async with EmbeddedCluster() as cluster, opened(cluster) as client:
        await client.request(0, ASK, timeout=20)
        count = asked_for(cluster, "ApiVersions")
        for purpose in Purpose:
            await client.request(0, ASK, timeout=20, purpose=purpose)
        assert asked_for(cluster, "ApiVersions") == count


async def test_a_broker_is_asked_again_what_it_is_after_a_reconnect() -> None:
    async with EmbeddedCluster() as cluster, opened(cluster) as client:
        await client.request(0, ASK, timeout=20)
        count = asked_for(cluster, "ApiVersions")
        await cluster.stop_broker(0)
        with pytest.raises(KafkaError):
            await client.request(0, ASK, timeout=20)
        await cluster.start_broker(0)
        await client.request_any(ASK, timeout=30)
        assert asked_for(cluster, "ApiVersions") > count


async def test_a_refused_connect_fails_the_request_and_asks_for_metadata() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, opened(cluster) as client:
        snapshot = await client.wait_for_topics(["t"], timeout=20)
        victim = cluster.leader("t", 0)
        await cluster.stop_broker(victim)
        with pytest.raises(TransportError) as caught:
            await client.request(victim, ASK, timeout=20, purpose=Purpose.PRODUCE)
        assert f"(id {victim})" in str(caught.value)
        while client.metadata.leader("t", 0) == victim:
            await client.refresh(timeout=20)
        assert client.metadata.generation > snapshot.generation


async def test_a_lost_connection_refreshes_metadata() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, opened(cluster) as client:
        await client.wait_for_topics(["t"], timeout=20)
        news = anyio.Event()
        await client.request(1, ASK, timeout=20, purpose=Purpose.FETCH)
        client.on_metadata(lambda snapshot: news.set())
        cluster.faults.close_before("ListGroups", broker=1)
        with pytest.raises(TransportError, match="the peer closed the connection"):
            await client.request(1, ListGroupsRequest(), timeout=20, purpose=Purpose.FETCH)
        await news.wait()


async def test_reconnects_are_spaced_out() -> None:
    dials: list[float] = []

    async def play(caller: Caller) -> None:
        dials.append(anyio.current_time())

    async with EmbeddedCluster() as cluster, peer(play) as address:
        async with Client(of(cluster, reconnect_backoff_ms=40)) as client:
            flaky = client.metadata.brokers[0]._replace(node_id=5, host=address[0], port=address[1])
            for _ in range(3):
                with pytest.raises(TransportError):
                    await client._connections.opened(flaky, Purpose.CONTROL).submit(ASK, timeout=20)
    starts = dials[::2]  # each connection is dialled twice: a close may be an answer
    assert len(dials) == 6
    assert starts[1] - starts[0] >= 0.8 * 0.04
    assert starts[2] - starts[1] >= 0.8 * 0.08


async def test_request_any_passes_over_dead_brokers() -> None:
    async with EmbeddedCluster(brokers=3) as cluster, opened(cluster) as client:
        await cluster.stop_broker(0)
        await cluster.stop_broker(1)
        assert await client.request_any(ListGroupsRequest(), timeout=30)
        await cluster.stop_broker(2)
        with pytest.raises(KafkaError):
            await client.request_any(ListGroupsRequest(), timeout=0.3)


async def test_when_all_known_brokers_moved_the_seeds_lead_to_the_new_ones() -> None:
    """The brokers of the first snapshot vanish; the bootstrap address, which lives on, knows the new ones."""
    brokers: list[tuple[int, str, int]] = []

    async def play(caller: Caller) -> None:
        def answer(asked: Asked) -> bytes | None:
            if asked.name == "Metadata":
                return answer_to(asked, metadata(brokers))
            return usual_answer(asked, "4.3", caller.address)

        while (asked := await caller.request()) is not None:
            await caller.send(answer(asked) or b"")

    async with refusing_address() as one, refusing_address() as other, peer(play) as address:
        brokers[:] = [(1, *one), (2, *other)]
        async with Client(config(address)) as client:
            assert list(client.metadata.brokers) == [1, 2]
            brokers[:] = [(7, *address)]
            assert list((await client.refresh(timeout=30)).brokers) == [7]


async def test_calls_of_a_broker_that_went_silent_and_left_the_cluster_are_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a broker is paused or cut off: its connection is open, but the others have replaced it."""
    monkeypatch.setattr(silence, "SILENCE", 0.05)
    monkeypatch.setattr(machine_module, "SLOW_ANSWER", 0.05)

    async def freeze(caller: Caller) -> None:
        if caller.number == 1:
            await caller.greet()
        await stay_silent(caller)

    async with peer(freeze) as frozen:
        brokers = [(2, *frozen)]

        async def play(caller: Caller) -> None:
            while (asked := await caller.request()) is not None:
                if asked.name == "Metadata":
                    await caller.send(answer_to(asked, metadata([(1, *caller.address), *brokers])))
                else:
                    await caller.send(usual_answer(asked, "4.3", caller.address) or b"")

        async with peer(play) as address, Client(config(address)) as client:
            call = client.submit(2, ASK, timeout=3600, purpose=Purpose.PRODUCE)
            others = []  # asked for on a new connection while the old ones are gone through
            call.add_done_callback(
                lambda _: others.append(client.submit(1, ASK, timeout=3600, purpose=Purpose.PRODUCE))
            )
            brokers.clear()
            with pytest.raises(TransportError, match=r"has left the cluster .*\(id 2\)"):
                await call
            assert await others[0]
            await client.refresh(timeout=20)


# --- the end ---


async def test_closing_with_every_broker_down_takes_no_time() -> None:
    async with EmbeddedCluster() as cluster:
        with anyio.fail_after(20):
            async with Client(of(cluster)) as client:
                await cluster.stop_broker(0)
                call = client.submit(0, ASK, timeout=3600)
        with pytest.raises(KafkaError):
            await call
        with pytest.raises(ClosedError):
            await client.request(0, ASK)
        with pytest.raises(ClosedError):
            await client.submit(0, ASK, timeout=1)


async def test_closing_ends_whoever_waits_for_metadata() -> None:
    errors: list[KafkaError] = []
    async with EmbeddedCluster(auto_create_topics=False) as cluster, anyio.create_task_group() as group:
        async with Client(of(cluster)) as client:

            async def wait() -> None:
                try:
                    await client.wait_for_topics(["nosuch"], timeout=3600)
                except KafkaError as error:
                    errors.append(error)

            group.start_soon(wait)
            for _ in range(3):
                await client.refresh(timeout=20)
    assert len(errors) == 1
    assert isinstance(errors[0], ClosedError)


async def test_a_client_in_the_task_tree_of_another() -> None:
    async with EmbeddedCluster() as cluster, TaskTree() as tasks:
        async with Client(of(cluster), tasks) as client:
            await client.request(0, ASK, timeout=20)
        tasks.check()
        async with Client(of(cluster), tasks) as client:
            await client.request(0, ASK, timeout=20)
        tasks.check()


async def test_a_callback_that_fails_is_raised_at_the_next_await() -> None:
    async with EmbeddedCluster() as cluster, Client(of(cluster)) as client:

        def fail(_: Any) -> None:
            raise ZeroDivisionError("a fault in a callback")

        client.submit(0, ASK, timeout=20).add_done_callback(fail)
        await client.request(0, ASK, timeout=20)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ClientFailedError) as caught:
            await client.request(0, ASK, timeout=20)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_nothing_is_left_after_many_clients() -> None:
    """Open and close in all states; a task or socket left behind would be an error of the test run."""
    async with EmbeddedCluster() as cluster:
        for wait in (0.0, 0.001, 0.005, 0.02):
            with anyio.move_on_after(wait):
                async with Client(of(cluster)) as client:
                    await client.refresh(timeout=20)
                    await client.request(0, ASK, timeout=20, purpose=Purpose.FETCH)


async def test_request_any_skips_a_broker_with_a_pending_answer() -> None:
    """A broker handles requests of a connection in order: a commit may wait for replicas for seconds."""
    async with EmbeddedCluster(brokers=2) as cluster, opened(cluster) as client:
        for broker in range(2):  # the first candidate is the broker that answered last, which may be either
            is_held = anyio.Event()
            cluster.faults.run("DescribeGroups", is_held.set, broker=broker)
            cluster.faults.delay("DescribeGroups", 3600, broker=broker)
            held = client.submit(broker, DescribeGroupsRequest(groups=["g"]), timeout=3600)
            with anyio.fail_after(60):
                await is_held.wait()
                node, _ = await client.ask_any(ListGroupsRequest(), timeout=60)
            assert node != broker
            client.hang_up(broker, Purpose.CONTROL, TransportError("enough"))
            with pytest.raises(TransportError):
                await held
