"""F6, F7, F8, F19: cut frames, a slow and a silent network, short lives, between a client and its broker.

On an embedded cluster here, and with the same proxies on a real broker in `test_network`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pykafka08 import EmbeddedCluster, KafkaError, Producer
from pykafka08.protocol.messages import ApiKey
from tests.faults.history import Fault, Healed
from tests.faults.produce import Produce
from tests.faults.proxy import Faults, proxied
from tests.faults.stage import Stage
from tests.integration.clusters import Clusters

pytestmark = pytest.mark.anyio

DEADLINE_S = 150


def addresses_of(bootstrap_servers: str) -> Iterable[tuple[str, int]]:
    for address in bootstrap_servers.split(","):
        host, _, port = address.rpartition(":")
        yield host, int(port)


@asynccontextmanager
async def embedded() -> AsyncIterator[tuple[EmbeddedCluster, Faults]]:
    async with EmbeddedCluster(brokers=2, topics={"w1": 6}) as cluster:
        async with proxied(addresses_of(cluster.bootstrap_servers)) as faults:
            yield cluster, faults


async def produce_under(bootstrap_servers: str, records: int, act: Callable[[Stage], Any], topic: str = "w1") -> None:
    """W1, while `act` works on the proxies; every count is 0."""
    stage = Stage(bootstrap_servers, 1, records)
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act, stage)
            tasks.start_soon(Produce(stage, topic, codecs=("none", "lz4")).run)
    report = stage.report()
    assert report.is_clean, str(report)


async def cut_often(stage: Stage, faults: Faults) -> None:
    """At each byte of the size and the header, and at some inside, of Produce and Fetch, in both directions."""
    points = [*range(24), 60, 200, 1000]
    for number, at in enumerate(points):
        await stage.at(0.9 * number / len(points))
        key = int(stage.chance.choice((ApiKey.PRODUCE, ApiKey.FETCH)))
        stage.history.note(Fault(f"a frame of API {key} is cut at {at}"))
        faults.cut = (("request", "answer")[number % 2], key, at)
    stage.history.note(Healed("frames are whole"))


async def test_frames_are_cut() -> None:
    async with embedded() as (cluster, faults):

        async def act(stage: Stage) -> None:
            stage.pause_s = 0.02
            await cut_often(stage, faults)

        await produce_under(cluster.bootstrap_servers, 3_000, act)
        assert faults.cuts > 10


async def test_single_bytes_arrive() -> None:
    async with embedded() as (cluster, faults):
        faults.slice_bytes = 1

        async def act(stage: Stage) -> None:
            await stage.at(0.5)
            faults.slice_bytes = 7

        await produce_under(cluster.bootstrap_servers, 200, act)


async def test_a_slow_network() -> None:
    """A delay below the time-out of requests fails nothing."""
    async with embedded() as (cluster, faults):
        faults.delay_s = 0.2

        async def act(stage: Stage) -> None:
            await stage.at(1.0)

        await produce_under(cluster.bootstrap_servers, 200, act)


@pytest.mark.parametrize("direction", ["request", "answer"])
async def test_a_black_hole(direction: str) -> None:
    """Nothing comes through one way: the call ends by its deadline, and all goes on when the hole is gone."""
    async with embedded() as (cluster, faults):
        async with Producer(
            cluster.bootstrap_servers,
            request_timeout_ms=1_500,
            socket_connection_setup_timeout_ms=1_500,
            delivery_timeout_ms=4_000,
            linger_ms=0,
        ) as producer:
            await producer.send("w1", b"before", partition=0)
            faults.swallows = frozenset({direction})
            with anyio.fail_after(30), pytest.raises(KafkaError):
                await producer.send("w1", b"lost", partition=0)
            faults.swallows = frozenset()
            with anyio.fail_after(30):
                for _ in range(20):
                    try:
                        await producer.send("w1", b"after", partition=0)
                        break
                    except KafkaError:
                        continue
        stored = [record.value for record in cluster.records("w1", 0)]
        assert stored[0] == b"before"
        assert stored[-1] == b"after"
        assert stored.count(b"lost") <= 1


async def test_short_lives() -> None:
    async with embedded() as (cluster, faults):
        faults.life_s = (0.6, 1.2)  # a handshake has to fit, on a busy machine too

        async def act(stage: Stage) -> None:
            stage.pause_s = 0.1
            stage.history.note(Fault("connections have short lives"))
            await stage.at(0.9)
            faults.life_s = None
            stage.history.note(Healed("they live on"))

        await produce_under(cluster.bootstrap_servers, 2_000, act)


@pytest.mark.cluster(release="4.3.1")
@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_network(clusters: Clusters) -> None:
    """Cut frames, then short lives, before a real broker."""
    kafka = clusters.running("4.3.1")
    topic = kafka.new_topic("w1", 6)
    async with proxied(addresses_of(kafka.bootstrap)) as faults:

        async def act(stage: Stage) -> None:
            stage.pause_s = 0.02
            await cut_often(stage, faults)

        await produce_under(kafka.bootstrap, 3_000, act, topic)
        assert faults.cuts > 10
