"""Other people's clients produce and consume through the embedded broker.

They run in threads and processes of their own, so that the event loop of the brokers stays free.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from tests.broker import kafka_python
from tests.brokers.console import Console

pytestmark = pytest.mark.anyio

TOPIC = "orders"
PARTITIONS = 3
LINES = [f"line {number}" for number in range(300)]
PATIENCE_S = 45
ASKING_RELEASES = ["4.3", "2.8", "0.11", "0.10.2"]
"""Releases that answer ApiVersions, so that clients find out by themselves what they serve."""

in_thread = anyio.to_thread.run_sync


def older_settings(release: str) -> dict[str, Any]:
    """What librdkafka has to be told of a release that it cannot ask."""
    if release.startswith(("0.8", "0.9")):
        return {"api.version.request": "false", "broker.version.fallback": release}
    return {}


async def exchange(release: str, produce: Callable[[str], None], consume: Callable[[str], list[str]]) -> None:
    async with EmbeddedCluster(2, release, {TOPIC: PARTITIONS}) as cluster:
        await in_thread(produce, cluster.bootstrap_servers)
        stored = [record.value for partition in range(PARTITIONS) for record in cluster.records(TOPIC, partition)]
        assert sorted(stored) == sorted(line.encode() for line in LINES)
        assert sorted(await in_thread(consume, cluster.bootstrap_servers)) == sorted(LINES)


# -- librdkafka


def read_with_librdkafka(servers: str, release: str) -> list[str]:
    """All lines, as a group where the release has groups."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": servers, "group.id": "readers", "session.timeout.ms": 10_000}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", **older_settings(release)})
    if release.startswith("0.8"):
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    else:
        consumer.subscribe([TOPIC])
    read: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(read) < len(LINES) and time.monotonic() < deadline:
        for message in consumer.consume(100, 1.0):
            assert message.error() is None
            read.append(message.value().decode())
    consumer.close()
    return read


@pytest.mark.parametrize("release", [*ASKING_RELEASES, "0.9.0"])
@pytest.mark.parametrize("codec", ["none", "lz4"])
async def test_librdkafka_with_a_group(release: str, codec: str) -> None:
    settings = older_settings(release)

    def produce(servers: str) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, **settings})
        for line in LINES:
            producer.produce(TOPIC, line.encode(), key=line.encode())
        assert producer.flush(PATIENCE_S) == 0

    await exchange(release, produce, lambda servers: read_with_librdkafka(servers, release))


async def test_librdkafka_administers_topics() -> None:
    def administer(servers: str) -> tuple[set[str], str]:
        from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

        admin = AdminClient({"bootstrap.servers": servers})
        new = NewTopic("made", num_partitions=2, replication_factor=2, config={"retention.ms": "1000"})
        admin.create_topics([new])["made"].result(PATIENCE_S)
        admin.create_partitions([NewPartitions("made", 5)])["made"].result(PATIENCE_S)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "made")
        config = admin.describe_configs([resource])[resource].result(PATIENCE_S)
        admin.delete_topics([TOPIC])[TOPIC].result(PATIENCE_S)
        return set(admin.list_topics(timeout=PATIENCE_S).topics), config["retention.ms"].value

    async with EmbeddedCluster(2, "3.9", {TOPIC: 1}) as cluster:
        assert await in_thread(administer, cluster.bootstrap_servers) == ({"made"}, "1000")
        assert cluster.topics == {"made": 5}


# -- kafka-python


def read_with_kafka_python(servers: str, release: str) -> list[str]:
    return kafka_python.run("consume", servers, release, TOPIC, PARTITIONS, LINES)


@pytest.mark.parametrize("release", [*ASKING_RELEASES, "0.9.0", "0.8.2"])
async def test_kafka_python(release: str) -> None:
    def produce(servers: str) -> None:
        kafka_python.run("produce", servers, release, TOPIC, PARTITIONS, LINES)

    await exchange(release, produce, lambda servers: read_with_kafka_python(servers, release))


# -- transactions

COPIED = "copies"


async def copied_once(release: str, copy: Callable[[str], None]) -> None:
    """``copy`` fills TOPIC, then copies it to COPIED in transactions, each of which it aborts once."""
    async with EmbeddedCluster(2, release, {TOPIC: PARTITIONS, COPIED: 2}) as cluster:
        await in_thread(copy, cluster.bootstrap_servers)
        copied = [each.value for partition in range(2) for each in cluster.records(COPIED, partition, committed=True)]
        assert sorted(copied) == sorted(line.encode() for line in LINES)
        everything = [each.value for partition in range(2) for each in cluster.records(COPIED, partition)]
        assert len(everything) == 2 * len(LINES)
        assert cluster.transactions == {"copier": "CompleteCommit"}


@pytest.mark.parametrize("release", ["4.3", "3.9", "2.8", "0.11"])
async def test_librdkafka_copies_in_transactions(release: str) -> None:
    def copy(servers: str) -> None:
        from confluent_kafka import Consumer, Producer

        settings = {"bootstrap.servers": servers, "group.id": "copiers", "session.timeout.ms": 10_000}
        target = Producer({"bootstrap.servers": servers, "transactional.id": "copier"})
        target.init_transactions(PATIENCE_S)
        target.begin_transaction()
        for line in LINES:
            target.produce(TOPIC, line.encode(), key=line.encode())
        target.commit_transaction(PATIENCE_S)
        source = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        source.subscribe([TOPIC])
        done, deadline = 0, time.monotonic() + PATIENCE_S
        while done < len(LINES) and time.monotonic() < deadline:
            messages = source.consume(50, 1.0)
            for is_final in (False, True) if messages else ():
                target.begin_transaction()
                for message in messages:
                    target.produce(COPIED, message.value(), key=message.key())
                target.flush(PATIENCE_S)
                positions = source.position(source.assignment())
                target.send_offsets_to_transaction(positions, source.consumer_group_metadata(), PATIENCE_S)
                end = target.commit_transaction if is_final else target.abort_transaction
                end(PATIENCE_S)
            done += len(messages)
        source.close()

    await copied_once(release, copy)


@pytest.mark.parametrize("release", ["4.3", "2.8", "0.11"])
async def test_aiokafka_copies_in_transactions(release: str) -> None:
    class Again(Exception):
        """Abort, then do the same once more."""

    async def copy(servers: str) -> None:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

        settings = {"bootstrap_servers": servers, "isolation_level": "read_committed", "enable_auto_commit": False}
        async with (
            AIOKafkaProducer(bootstrap_servers=servers, transactional_id="copier") as target,
            AIOKafkaConsumer(TOPIC, group_id="copiers", auto_offset_reset="earliest", **settings) as source,
        ):
            async with target.transaction():
                for line in LINES:
                    await target.send(TOPIC, line.encode(), key=line.encode())
            done = 0
            while done < len(LINES):
                found = await source.getmany(timeout_ms=1000, max_records=50)
                offsets = {partition: records[-1].offset + 1 for partition, records in found.items()}
                for is_final in (False, True) if found else ():
                    with suppress(Again):
                        async with target.transaction():
                            for record in (each for records in found.values() for each in records):
                                await target.send_and_wait(COPIED, record.value, key=record.key)
                            await target.send_offsets_to_transaction(offsets, "copiers")
                            if not is_final:
                                raise Again
                done += sum(map(len, found.values()))

    def run(servers: str) -> None:
        asyncio.run(asyncio.wait_for(copy(servers), PATIENCE_S))

    await copied_once(release, run)


# -- kcat


@pytest.mark.kcat
@pytest.mark.parametrize("release", [*ASKING_RELEASES, "0.9.0", "0.8.2"])
async def test_kcat(release: str) -> None:
    options = [word for name, value in older_settings(release).items() for word in ("-X", f"{name}={value}")]

    def run(servers: str, *words: str, text: str | None = None) -> str:
        command = ["kcat", "-b", servers, *options, *words]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        ).stdout

    def produce(servers: str) -> None:
        run(servers, "-P", "-t", TOPIC, "-z", "snappy", text="".join(line + "\n" for line in LINES))

    def consume(servers: str) -> list[str]:
        listed = run(servers, "-L", "-t", TOPIC)
        assert f'topic "{TOPIC}" with {PARTITIONS} partitions' in listed
        if release == "0.8.2":
            return run(servers, "-C", "-t", TOPIC, "-o", "beginning", "-e", "-q").splitlines()
        return run(
            servers, "-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=10000",
            "-c", str(len(LINES)), "-G", "readers", TOPIC,
        ).splitlines()  # fmt: skip

    await exchange(release, produce, consume)


# -- Java

# The others show trio; a JVM for every call is too dear to show it again.
on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


@pytest.mark.brokers
@on_asyncio
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("release", "java"), [("4.3", "4.3.1"), ("2.8", "2.8.2"), ("0.11", "0.11.0.3"), ("0.10.2", "0.10.2.2")]
)
async def test_the_java_console_tools(release: str, java: str) -> None:
    codec = "zstd" if release in ("4.3", "2.8") else "lz4"

    def produce(servers: str) -> None:
        Console(java, servers).produce(TOPIC, LINES, codec=codec)

    def consume(servers: str) -> list[str]:
        return Console(java, servers).consume(TOPIC, len(LINES))

    await exchange(release, produce, consume)


@pytest.mark.brokers
@on_asyncio
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("release", "codec"), [("0.8.0", "gzip"), ("0.8.2", "lz4"), ("0.9.0", "lz4")])
async def test_the_java_0_8_console_producer(release: str, codec: str) -> None:
    """Its consumer needs ZooKeeper; others read in its place."""
    # librdkafka looks for a group's coordinator when it ends, for longer than a test may last, and 0.8.0 has none.
    read = read_with_kafka_python if release == "0.8.0" else read_with_librdkafka

    def produce(servers: str) -> None:
        Console("0.8.2.2", servers).produce(TOPIC, LINES, codec=codec)

    await exchange(release, produce, lambda servers: read(servers, release))


@pytest.mark.brokers
@on_asyncio
@pytest.mark.timeout(300)
async def test_an_old_java_client_on_a_new_broker_and_the_reverse() -> None:
    for release, producer, consumer in (("3.9", "0.10.2.2", "4.3.1"), ("2.8", "4.3.1", "0.10.2.2")):

        def produce(servers: str, java: str = producer) -> None:
            Console(java, servers).produce(TOPIC, LINES)

        def consume(servers: str, java: str = consumer) -> list[str]:
            return Console(java, servers).consume(TOPIC, len(LINES))

        await exchange(release, produce, consume)
