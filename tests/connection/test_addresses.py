"""Addresses that cannot be dialled: a broker may advertise anything, and that is one error of one connection."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest

from pykafka08 import EmbeddedCluster, KafkaError, Producer, TransportError
from pykafka08.cluster.requests import MetadataCall
from pykafka08.connection.tcp import open_tcp
from pykafka08.driver import TaskTree
from tests.producer.clusters import FAST

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("port", [-1, 0, 65_536, 70_000])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_a_port_that_there_is_not(host: str, port: int) -> None:
    await assert_refused(host, port, f"{host}:{port}")


@pytest.mark.parametrize("host", ["", "127.0.0.1\0", "::1%\0", "x" * 300, "a..b", "fe80::1%nope", "[::1]"])
async def test_a_host_that_there_is_not(host: str) -> None:
    await assert_refused(host, 1, "")


async def assert_refused(host: str, port: int, said: str) -> None:
    async with TaskTree() as tasks:
        with pytest.raises(TransportError) as raised:
            await open_tcp(
                cast("Any", None), host, port, deadline=anyio.current_time() + 30, max_frame_bytes=1000, tasks=tasks
            )
    assert said in str(raised.value)


@pytest.mark.parametrize(("host", "port"), [("x" * 32_767, 9092), ("x" * 32_767, 0), ("\0" + "x" * 32_767, 9092)])
async def test_the_name_of_a_host_is_cut_in_the_error(host: str, port: int) -> None:
    async with TaskTree() as tasks:
        with pytest.raises(TransportError) as raised:
            await open_tcp(
                cast("Any", None), host, port, deadline=anyio.current_time() + 30, max_frame_bytes=1000, tasks=tasks
            )
    assert len(str(raised.value)) < 700


@pytest.mark.parametrize("port", [70_000, -1])
async def test_one_bad_address_leaves_the_other_brokers_alone(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    read = MetadataCall.read

    def forged(call: MetadataCall, response: Any) -> Any:
        found = read(call, response)
        for broker in found.brokers:
            if broker.node_id == 1:
                broker.port = port
        return found

    monkeypatch.setattr(MetadataCall, "read", forged)
    async with EmbeddedCluster(brokers=2, topics={"t": 2}) as cluster:
        good = next(partition for partition in range(2) if cluster.leader("t", partition) == 0)
        settings = {**FAST, "request_timeout_ms": 500, "delivery_timeout_ms": 1_000, "linger_ms": 0}
        async with Producer(cluster.bootstrap_servers, **settings) as producer:
            await producer.send("t", b"before", partition=good)
            with pytest.raises(KafkaError, match=f":{port}"):
                await producer.send("t", b"lost", partition=1 - good)
            await producer.send("t", b"after", partition=good)
        assert [record.value for record in cluster.records("t", good)] == [b"before", b"after"]
