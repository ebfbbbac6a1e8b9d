"""Life of an embedded cluster: start, addresses, brokers that stop and come back, leaders that move, the end."""

from __future__ import annotations

import socket
from functools import partial
from typing import Any

import anyio
import pytest

from pykafka08.broker import dispatch
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ClientFailedError, ClosedError, ConfigError, TransportError
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from tests.broker.raw import batch, connect, fetch_request, produce, values

pytestmark = pytest.mark.anyio


async def test_brokers_listen_on_loopback_ports_of_their_own() -> None:
    async with EmbeddedCluster(brokers=3) as cluster:
        ports = {node.port for node in cluster.brokers}
        assert len(ports) == 3
        assert cluster.bootstrap_servers == ",".join(f"127.0.0.1:{node.port}" for node in cluster.brokers)
        assert cluster.version == "4.3"
        for node in cluster.brokers:
            async with connect(cluster, node.node_id) as raw:
                answer = await raw.ask(MetadataRequest(topics=[]), 1)
                assert [(each.node_id, each.port) for each in answer.brokers] == [
                    (each.node_id, each.port) for each in cluster.brokers
                ]


async def test_ports_can_be_chosen() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    async with EmbeddedCluster(port=free) as cluster:
        assert cluster.bootstrap_servers == f"127.0.0.1:{free}"


async def test_a_port_in_use_is_an_error_and_leaves_nothing_open() -> None:
    async with EmbeddedCluster() as cluster:
        with pytest.raises(TransportError, match="in use"):
            async with EmbeddedCluster(port=cluster.brokers[0].port):
                pytest.fail("two brokers on one port")


async def test_the_port_of_a_stopped_broker_refuses_and_stays_its_own() -> None:
    async with EmbeddedCluster(brokers=2) as cluster:
        port = cluster.brokers[1].port
        await cluster.stop_broker(1)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with pytest.raises(OSError):
            await anyio.connect_tcp("127.0.0.1", port)
        await cluster.start_broker(1)
        assert cluster.brokers[1].port == port
        async with connect(cluster, 1) as raw:
            assert (await raw.ask(MetadataRequest(topics=[]), 1)).brokers


async def test_metadata_has_the_advertised_host(caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedCluster(host="0.0.0.0", advertised_host="localhost") as cluster, connect(cluster) as raw:
        assert cluster.bootstrap_servers.startswith("localhost:")
        answer = await raw.ask(MetadataRequest(topics=[]), 1)
        assert (answer.brokers[0].host, answer.brokers[0].port) == ("localhost", cluster.brokers[0].port)
        port = cluster.brokers[0].port
        await cluster.stop_broker(0)
        await cluster.start_broker(0)
        assert cluster.brokers[0].port == port
    assert [(record.levelname, record.host) for record in caplog.records] == [("WARNING", "0.0.0.0")]


async def test_topics_take_the_arguments_of_create_topic() -> None:
    orders = {"partitions": 3, "replication_factor": 2, "config": {"retention.ms": "1000"}}
    async with EmbeddedCluster(3, topics={"orders": orders, "plain": 2}) as cluster, connect(cluster) as raw:
        assert cluster.topics == {"orders": 3, "plain": 2}
        answer = await raw.ask(MetadataRequest(topics=None), 1)
        replicas = {topic.name: len(topic.partitions[0].replica_nodes) for topic in answer.topics}
        assert replicas == {"orders": 2, "plain": 3}


async def test_ipv6_loopback() -> None:
    async with EmbeddedCluster(host="::1") as cluster, connect(cluster) as raw:
        assert cluster.bootstrap_servers.startswith("[::1]:")
        answer = await raw.ask(MetadataRequest(topics=[]), 1)
        assert answer.brokers[0].host == "::1"


@pytest.mark.parametrize(
    "settings",
    [
        {"brokers": 0},
        {"brokers": True},
        {"default_partitions": 0},
        {"default_partitions": 2.5},
        {"port": 70_000},
        {"port": 65_535, "brokers": 2},
        {"port": "9092"},
        {"topics": ["a"]},
        {"topics": {"a": 0}},
        {"topics": {"a": "1"}},
        {"replication_factor": 0},
        {"replication_factor": 4, "brokers": 3},
        {"racks": "a"},
        {"host": "0.0.0.0"},
        {"host": "no host"},
        {"host": None},
        {"advertised_host": ""},
        {"advertised_host": "::"},
        {"max_memory_bytes": 0},
        {"topics": {"a": {"count": 1}}},
        {"topics": {"a": {"partitions": 0}}},
        {"topics": {"a": {"config": {"retention.ms": "soon"}}}},
        {"host": 5},
    ],
)
async def test_settings_without_meaning_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings)).removesuffix("s")):
        EmbeddedCluster(**settings)


async def test_topics_without_meaning_are_refused() -> None:
    async with EmbeddedCluster() as cluster:
        for name in (None, 5, "", "no blanks", "x" * 250):
            with pytest.raises(ConfigError, match="topic name"):
                cluster.create_topic(name)  # type: ignore[arg-type]
        for settings in ({"partitions": 0}, {"partitions": 2.5}, {"replication_factor": 2}):
            with pytest.raises(ConfigError, match=next(iter(settings))):
                cluster.create_topic("a", **settings)  # type: ignore[arg-type]
        for config in (
            {"max.message.bytes": "abc"},
            {"min.insync.replicas": "0"},
            {"message.timestamp.type": "Never"},
            {"message.format.version": "abc"},
            {"max.message.bytes": 5},
            5,
        ):
            with pytest.raises(ConfigError, match="config"):
                cluster.create_topic("a", config=config)  # type: ignore[arg-type]
        assert cluster.topics == {}


async def test_offsets_that_a_log_does_not_have_are_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0", b"1"), 9)
        for wrong in (-7, 3, 2.0, None):
            with pytest.raises(ConfigError, match="not in the log, which ends at 2"):
                cluster.elect_unclean_leader("t", 0, 0, wrong)  # type: ignore[arg-type]
            with pytest.raises(ConfigError, match="not in the log, which ends at 2"):
                cluster.delete_records("t", 0, wrong)  # type: ignore[arg-type]
        assert [record.value for record in cluster.records("t", 0)] == [b"0", b"1"]
        cluster.delete_records("t", 0, 2)
        cluster.elect_unclean_leader("t", 0, 0, 0)
        assert (cluster.log_start_offset("t", 0), cluster.log_end_offset("t", 0)) == (0, 0)


async def test_a_cluster_that_has_ended_takes_nothing_more() -> None:
    cluster = EmbeddedCluster()
    async with cluster:
        with pytest.raises(ClosedError, match="a cluster cannot be reused"):
            await cluster.__aenter__()
    with pytest.raises(ClosedError, match="ended"):
        await cluster.start_broker(0)
    with pytest.raises(ClosedError, match="ended"):
        cluster.create_topic("a")
    with pytest.raises(ClosedError, match="a cluster cannot be reused"):
        await cluster.__aenter__()


async def test_nothing_listens_after_the_end() -> None:
    async with EmbeddedCluster(brokers=2) as cluster:
        async with connect(cluster) as raw:
            await raw.ask(ApiVersionsRequest(), 0)
    for node in cluster.brokers:
        with pytest.raises(OSError, match="connect"):
            await anyio.connect_tcp(node.host, node.port)


async def test_open_connections_end_with_the_cluster() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        node = cluster.brokers[0]
        stream = await anyio.connect_tcp(node.host, node.port)
        await stream.send(b"\0\0")
    async with stream:
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await stream.receive()


async def test_leaders_are_spread_over_the_brokers() -> None:
    async with EmbeddedCluster(brokers=3, topics={"t": 6}) as cluster:
        leaders = [cluster.leader("t", partition) for partition in range(6)]
        assert sorted(leaders) == [0, 0, 1, 1, 2, 2]


async def test_a_moved_leader_serves_and_the_former_one_points_to_it() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        former = cluster.leader("t", 0)
        async with connect(cluster, former) as raw:
            assert (await produce(raw, batch(b"one"), 9)).error_code == 0
            cluster.move_leader("t", 0, 1 - former)
            request = fetch_request(topic="t")
            request.topics[0].partitions[0].current_leader_epoch = 0  # without it, a follower in sync serves as well
            data = (await raw.ask(request, 12)).responses[0].partitions[0]
            assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (1 - former, 1)
            refused = await produce(raw, batch(b"two"), 10)
            assert (refused.error_code, refused.current_leader.leader_id) == (6, 1 - former)
        async with connect(cluster, 1 - former) as raw:
            assert (await produce(raw, batch(b"two"), 9)).base_offset == 1
        assert values(cluster.records("t", 0)) == [b"one", b"two"]


async def test_a_leader_moves_to_a_broker_that_was_no_replica() -> None:
    async with EmbeddedCluster(brokers=2, replication_factor=1, topics={"t": 1}) as cluster:
        target = 1 - cluster.leader("t", 0)
        cluster.move_leader("t", 0, target)
        async with connect(cluster) as raw:
            partition = (await raw.ask(MetadataRequest(topics=None), 7)).topics[0].partitions[0]
            assert (partition.leader_id, sorted(partition.replica_nodes)) == (target, [0, 1])


async def test_a_stopped_broker_is_gone_and_its_partitions_are_led_by_others() -> None:
    async with EmbeddedCluster(brokers=3, topics={"t": 3}) as cluster:
        async with connect(cluster, 1) as raw, connect(cluster, 0) as other:
            await cluster.stop_broker(1)
            assert await raw.is_closed_by_peer()
            answer = await other.ask(MetadataRequest(topics=None), 5)
            assert [node.node_id for node in answer.brokers] == [0, 2]
            for partition in answer.topics[0].partitions:
                assert partition.leader_id in (0, 2)
                assert (partition.isr_nodes.count(1), partition.offline_replicas) == (0, [1])
        with pytest.raises(OSError, match="connect"):
            async with connect(cluster, 1):
                pytest.fail("a stopped broker took a connection")
        port = cluster.brokers[1].port
        await cluster.start_broker(1)
        assert cluster.brokers[1].port == port
        async with connect(cluster, 1) as raw:
            answer = await raw.ask(MetadataRequest(topics=None), 5)
            assert [node.node_id for node in answer.brokers] == [0, 1, 2]
            assert [sorted(partition.isr_nodes) for partition in answer.topics[0].partitions] == [[0, 1, 2]] * 3


async def test_without_live_replicas_there_is_no_leader() -> None:
    async with EmbeddedCluster(brokers=2, replication_factor=1, topics={"t": 2}) as cluster:
        alone = 0 if cluster.leader("t", 0) == 1 else 1
        await cluster.stop_broker(1 - alone)
        assert cluster.leader("t", 0) == -1
        async with connect(cluster, alone) as raw:
            partition = (await raw.ask(MetadataRequest(topics=None), 1)).topics[0].partitions[0]
            assert (partition.error_code, partition.leader_id) == (5, -1)
        await cluster.start_broker(1 - alone)
        assert cluster.leader("t", 0) == 1 - alone


async def test_calls_that_make_no_sense_are_refused() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        await cluster.stop_broker(1)
        with pytest.raises(ConfigError, match="stopped already"):
            await cluster.stop_broker(1)
        with pytest.raises(ConfigError, match="cannot lead"):
            cluster.move_leader("t", 0, 1)
        with pytest.raises(ConfigError, match="running already"):
            await cluster.start_broker(0)
        with pytest.raises(ConfigError, match="no broker 9"):
            await cluster.stop_broker(9)
        with pytest.raises(ConfigError, match="no partition 3"):
            cluster.records("t", 3)
        with pytest.raises(ConfigError, match="exists"):
            cluster.create_topic("t")
        with pytest.raises(ConfigError, match="not a valid topic name"):
            cluster.create_topic("a b")
        for delete_or_grow in (cluster.delete_topic, partial(cluster.add_partitions, partitions=3)):
            with pytest.raises(ConfigError, match="no topic"):
                delete_or_grow("other")
        with pytest.raises(ConfigError, match="partitions=1"):
            cluster.add_partitions("t", 1)


async def test_topics_and_records_can_be_looked_at() -> None:
    async with EmbeddedCluster(topics={"t": 2}, default_partitions=4) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"a", b"b", b"c"), 9, partition=1)
        assert (cluster.log_start_offset("t", 1), cluster.log_end_offset("t", 1)) == (0, 3)
        cluster.delete_records("t", 1, 2)
        assert cluster.log_start_offset("t", 1) == 2
        assert [(record.offset, record.key, record.value) for record in cluster.records("t", 1)] == [(2, b"k", b"c")]
        cluster.create_topic("new")
        cluster.add_partitions("t", 3)
        assert cluster.topics == {"t": 3, "new": 4}
        cluster.delete_topic("t")
        assert cluster.topics == {"new": 4}


async def test_an_error_inside_the_brokers_comes_out_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(key: int) -> object:
        raise ZeroDivisionError("inside")

    async def ask() -> None:
        async with EmbeddedCluster() as cluster, connect(cluster) as raw:
            await raw.send(ApiVersionsRequest(), 0)
            assert await raw.is_closed_by_peer()

    monkeypatch.setattr(dispatch, "handler_of", broken)
    with pytest.raises(ClientFailedError, match="ZeroDivisionError") as caught:
        await ask()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_a_thousand_clients_come_and_go() -> None:
    async with EmbeddedCluster() as cluster:

        async def visit() -> None:
            async with connect(cluster) as raw:
                await raw.ask(ApiVersionsRequest(), 0)

        for _ in range(20):
            async with anyio.create_task_group() as group:
                for _ in range(50):
                    group.start_soon(visit)
        assert len(cluster.requests) == 1000
