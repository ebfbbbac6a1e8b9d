"""The same calls, with no version setting, against real brokers of every era, and that era's own Java tools."""

from __future__ import annotations

import os
import random

import anyio
import anyio.to_thread
import pytest

from pykafka08 import Consumer, Producer
from tests.integration.clusters import RealCluster
from tests.integration.reading import read_records

RECORDS = 10_000
LINES_PER_CODEC = 500
PARTITIONS = 3
IS_SOAK = bool(os.environ.get("PYKAFKA08_SOAK"))
EVERY_CODEC = ("0.8.2.2", "0.10.2.2", "4.3.1")
"""A release of each record format; its Java producer sends with each codec.  In a soak, every release does."""

pytestmark = pytest.mark.anyio


def sample_records(count: int, seed: str) -> list[tuple[bytes | None, bytes]]:
    """Keys and values of many kinds: no key, empty, text that compresses well, bytes that do not."""
    rng = random.Random(seed)
    kinds = (
        lambda n: (None, b"plain value %d" % n),
        lambda n: (b"key %d" % (n % 97), b"the same words over and over " * (n % 5)),
        lambda n: (b"", rng.randbytes(n % 300)),
        lambda n: (f"schlüssel {n % 13}".encode(), b""),
    )
    return [kinds[n % len(kinds)](n) for n in range(count)]


async def produce(bootstrap_servers: str, topic: str, codec: str) -> dict[tuple[int, int], tuple[bytes | None, bytes]]:
    """Key and value of each record, by the partition and offset that were acknowledged for it."""
    sent = sample_records(RECORDS, codec)
    async with Producer(bootstrap_servers=bootstrap_servers, compression_type=codec) as producer:
        deliveries = []
        for key, value in sent:
            await producer.ready()
            deliveries.append(producer.enqueue(topic, value, key=key))
        acknowledged = [await delivery for delivery in deliveries]
    return {(ack.partition, ack.offset): record for ack, record in zip(acknowledged, sent, strict=True)}


async def test_ten_thousand_records_with_each_codec_come_back_equal(kafka: RealCluster) -> None:
    """The client is told where the brokers are and nothing of their release."""
    topic = kafka.new_topic("round-trip", PARTITIONS)
    sent = {}
    for codec in kafka.codecs:
        sent.update(await produce(kafka.bootstrap, topic, codec))
    assert len(sent) == RECORDS * len(kafka.codecs), "two records were acknowledged at one offset"
    async with Consumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
        got = await read_records(consumer, len(sent))
    assert {(record.partition, record.offset): (record.key, record.value) for record in got} == sent
    for partition in range(PARTITIONS):
        offsets = [record.offset for record in got if record.partition == partition]
        assert offsets == list(range(len(offsets))), f"partition {partition} was not read in order"


async def test_records_that_no_broker_answers_for_are_written(kafka: RealCluster) -> None:
    """With acks=0, whose records are lost where a leader does not serve yet: each is heard of before.

    And where the connection ends before the broker has taken them in (0.10.0 drops what it has read but not begun
    with, seen on a busy machine): the producer is open until they are read.
    """
    topic = kafka.new_topic("unanswered", PARTITIONS)
    async with Producer(bootstrap_servers=kafka.bootstrap) as first:
        for partition in range(PARTITIONS):
            assert (await first.send(topic, b"first", partition=partition)).offset == 0
    values = [b"%d" % number for number in range(LINES_PER_CODEC)]
    async with Producer(bootstrap_servers=kafka.bootstrap, acks=0) as producer:
        sent = await producer.send_many(topic, values)
        assert {each.offset for each in sent} == {-1}
        async with Consumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
            got = await read_records(consumer, PARTITIONS + len(values))
    assert sorted(record.value or b"" for record in got) == sorted([*values, *[b"first"] * PARTITIONS])


async def test_the_java_consumer_reads_ours(kafka: RealCluster) -> None:
    topic = kafka.new_topic("ours")
    lines = []
    for codec in kafka.codecs:
        mine = [f"{codec} {number} {'ä' * (number % 40)}" for number in range(LINES_PER_CODEC)]
        async with Producer(bootstrap_servers=kafka.bootstrap, compression_type=codec) as producer:
            await producer.send_many(topic, [line.encode() for line in mine])
        lines += mine
    assert kafka.java_consume(topic, len(lines)) == lines


async def test_ours_reads_the_java_producer(kafka: RealCluster) -> None:
    codecs = kafka.console.codecs
    if kafka.version not in EVERY_CODEC and not IS_SOAK:
        codecs = codecs[:1] + codecs[-1:]
    topic = kafka.new_topic("java")
    lines = []
    for codec in codecs:
        lines += (own := [f"{codec} {number}" for number in range(LINES_PER_CODEC)])
        await anyio.to_thread.run_sync(kafka.java_produce, topic, own, codec)
    async with Consumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
        got = await read_records(consumer, len(lines))
    assert [(record.value or b"").decode() for record in got] == lines
    assert [record.offset for record in got] == list(range(len(lines)))
