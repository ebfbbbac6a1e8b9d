"""What other clients write ours reads, and the other way round, over real brokers of three message formats.

Brokers older than 0.10 are left to the Java tools (`tests/integration`): these clients no longer speak to them.
"""

from __future__ import annotations

import pytest

from pykafka08 import Consumer, NewRecord, Producer
from tests.brokers.releases import version_tuple
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records
from tests.interop.peers import PEERS, Read, Sample, run

PARTITIONS = 4
COUNT = 300
FIRST_MS = 1_700_000_000_000

VERSIONS = ("0.10.2.2", "2.8.2", "4.3.1")
WRITERS = [
    (version, name) for version in VERSIONS for name, peer in PEERS.items() if version_tuple(version) >= peer.oldest
]

pytestmark = pytest.mark.anyio


def samples(kafka: RealCluster) -> list[Sample]:
    """Keyed records (their partition follows from the key), tombstones, and headers where the format has them."""
    headers = (("trace", b"\x00\x01"), ("trace", b""), ("größe", "ü".encode()))
    return [
        Sample(
            key=b"key %d" % number,
            value=None if number % 10 == 9 else b"value %d " % number * (number % 7),
            timestamp_ms=FIRST_MS + number,
            headers=headers[: number % 4] if kafka.release >= (0, 11) else (),
        )
        for number in range(COUNT)
    ]


def in_order(reads: list[Read]) -> list[Read]:
    return sorted(reads, key=lambda read: (read.partition, read.offset))


@pytest.mark.parametrize(("version", "name"), WRITERS)
async def test_ours_reads_what_they_write(clusters: Clusters, version: str, name: str) -> None:
    kafka = clusters.running(version)
    sent = samples(kafka)
    topics = {codec: kafka.new_topic(f"theirs-{codec}", PARTITIONS) for codec in kafka.codecs}
    written = await run(name, "write", [(kafka.bootstrap, topic, codec, sent) for codec, topic in topics.items()])
    for topic, partitions in zip(topics.values(), written, strict=True):
        async with Consumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
            got = await read_records(consumer, COUNT)
        by_key = {
            record.key: (record.partition, Sample(record.key, record.value, record.timestamp_ms, record.headers))
            for record in got
        }
        assert by_key == {one.key: (partition, one) for partition, one in zip(partitions, sent, strict=True)}, topic


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_they_read_what_ours_writes(clusters: Clusters, version: str, name: str) -> None:
    kafka = clusters.running(version)
    sent = samples(kafka)
    topics = {codec: kafka.new_topic(f"ours-{codec}", PARTITIONS) for codec in kafka.codecs}
    expected = []
    for codec, topic in topics.items():
        async with Producer(bootstrap_servers=kafka.bootstrap, compression_type=codec) as producer:
            placed = await producer.send_many(
                topic, [NewRecord(one.value, one.key, one.headers, one.timestamp_ms) for one in sent]
            )
        expected.append([Read(ack.partition, ack.offset, one) for ack, one in zip(placed, sent, strict=True)])
    got = await run(name, "read", [(kafka.bootstrap, topic, COUNT) for topic in topics.values()])
    for topic, read, written in zip(topics.values(), got, expected, strict=True):
        assert in_order(read) == in_order(written), topic


@pytest.mark.parametrize(("version", "name"), WRITERS)
async def test_a_key_goes_to_the_partition_that_their_partitioner_chooses(
    clusters: Clusters, version: str, name: str
) -> None:
    kafka = clusters.running(version)
    sent = samples(kafka)
    async with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        topic = kafka.new_topic("keys", PARTITIONS)
        placed = await producer.send_many(topic, [NewRecord(one.value, one.key) for one in sent])
    ours = [ack.partition for ack in placed]
    assert len(set(ours)) == PARTITIONS
    theirs = await run(name, "write", [(kafka.bootstrap, kafka.new_topic("keys", PARTITIONS), "none", sent)])
    assert theirs == [ours]
