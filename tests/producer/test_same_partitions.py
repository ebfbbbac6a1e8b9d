"""Keys go where librdkafka sends them, by its own hash and by the Java producer's."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import EmbeddedCluster, NewRecord, Producer

from .clusters import logs

PARTITIONS = 7
KEYS = [b"%d" % number * (1 + number % 9) for number in range(200)] + [bytes([i, 255 - i]) for i in range(0, 256, 5)]


@pytest.mark.anyio
@pytest.mark.parametrize(("theirs", "ours"), [("consistent", "consistent_random"), ("murmur2", "murmur2")])
async def test_librdkafka(theirs: str, ours: str) -> None:
    def produce(servers: str) -> None:
        from confluent_kafka import Producer as Librdkafka

        producer = Librdkafka({"bootstrap.servers": servers, "partitioner": theirs})
        for key in KEYS:
            producer.produce("t", b"theirs", key)
        assert producer.flush(30) == 0

    async with EmbeddedCluster(topics={"t": PARTITIONS}) as cluster:
        await anyio.to_thread.run_sync(produce, cluster.bootstrap_servers)
        their_places = {record.key: record.partition for log in logs(cluster) for record in log}
        async with Producer(cluster.bootstrap_servers, partitioner=ours) as producer:
            sent = await producer.send_many("t", [NewRecord(b"ours", key=key) for key in KEYS])
    assert {key: each.partition for key, each in zip(KEYS, sent, strict=True)} == their_places
