"""Mistakes that people make, against real servers: each a typed error that says where, within its deadline."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import Consumer, KafkaError, Producer
from pykafka08.errors import NoBrokersError, UnknownTopicError
from tests.brokers.model import HOST
from tests.integration.clusters import Clusters

TIMEOUT_MS = 6_000
BOUND_S = 60
"""A call that has not ended by now hangs, whatever its deadline was."""

pytestmark = pytest.mark.anyio


async def error_of_produce(bootstrap_servers: str, topic: str) -> KafkaError:
    """What the caller of `send` sees, from opening the client on."""
    with anyio.fail_after(BOUND_S), pytest.raises(KafkaError) as caught:
        async with Producer(
            bootstrap_servers=bootstrap_servers,
            default_api_timeout_ms=TIMEOUT_MS,
            max_block_ms=TIMEOUT_MS,
            delivery_timeout_ms=TIMEOUT_MS,
        ) as producer:
            await producer.send(topic, b"value")
    return caught.value


async def errors_of_both(bootstrap_servers: str, topic: str) -> list[KafkaError]:
    """What each of the two sees; side by side, since both wait."""
    errors: list[KafkaError] = []

    async def note(error_of: Callable[[str, str], Awaitable[KafkaError]]) -> None:
        errors.append(await error_of(bootstrap_servers, topic))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(note, error_of_produce)
        tasks.start_soon(note, error_of_consume)
    return errors


async def error_of_consume(bootstrap_servers: str, topic: str) -> KafkaError:
    """What the reader of a topic sees, from opening the client on."""
    with anyio.fail_after(BOUND_S), pytest.raises(KafkaError) as caught:
        async with Consumer(
            topic,
            bootstrap_servers=bootstrap_servers,
            auto_offset_reset="earliest",
            default_api_timeout_ms=TIMEOUT_MS,
        ) as consumer:
            await anext(aiter(consumer))
    return caught.value


@pytest.mark.parametrize("version", ["0.8.2.2", "3.9.2"])
async def test_zookeeper_s_port_given_instead_of_kafka_s(clusters: Clusters, version: str) -> None:
    kafka = clusters.running(version)
    assert kafka.zookeeper is not None
    for error in await errors_of_both(kafka.zookeeper, "topic"):
        assert isinstance(error, NoBrokersError)
        assert kafka.zookeeper in str(error)
        assert "ZooKeeper" in str(error)


async def test_no_broker_at_the_address() -> None:
    with socket.socket() as unused:  # bound and not listening: nobody else gets the port meanwhile
        unused.bind((HOST, 0))
        address = f"{HOST}:{unused.getsockname()[1]}"
        for error in await errors_of_both(address, "topic"):
            assert isinstance(error, NoBrokersError)
            assert address in str(error)


@pytest.mark.parametrize("version", ["0.8.2.2", "2.8.2", "4.3.1"])
@pytest.mark.cluster(is_special=True)
async def test_a_topic_that_does_not_exist_and_is_not_created(clusters: Clusters, version: str) -> None:
    kafka = clusters.running(version, props=["auto.create.topics.enable=false"])
    for error in await errors_of_both(kafka.bootstrap, "no-such-topic"):
        assert isinstance(error, UnknownTopicError)
        assert error.topic == "no-such-topic"
        assert "no-such-topic" in str(error)


@pytest.mark.cluster(release="2.8.2")
async def test_a_dead_seed_beside_a_living_one(clusters: Clusters) -> None:
    kafka = clusters.running("2.8.2")
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        seeds = f"{HOST}:{unused.getsockname()[1]},{kafka.bootstrap}"
        topic = kafka.new_topic("seeds")
        with anyio.fail_after(BOUND_S):
            async with Producer(bootstrap_servers=seeds) as producer:
                assert (await producer.send(topic, b"value")).offset == 0
