"""What real brokers say of numbers that do not fit; each record is in the log once and in order all the same."""

from __future__ import annotations

import logging

import pytest

from pykafka08 import Consumer, Producer
from pykafka08.producer.sequences import Identity, Restart, Sequences
from tests.integration.clusters import Clusters, RealCluster
from tests.integration.reading import read_records

SMALL = 200
"""Bytes of a batch: few records, so that several are in flight."""
MANY = 100

pytestmark = pytest.mark.anyio


class Numbered:
    """Numbered records to one partition, several batches at a time."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.producer = producer
        self.topic = topic
        self.count = 0

    async def send(self, many: int = MANY) -> None:
        deliveries = [
            self.producer.enqueue(self.topic, b"%d" % number, partition=0)
            for number in range(self.count, self.count + many)
        ]
        self.count += many
        for number, delivery in enumerate(deliveries, self.count - many):
            assert (await delivery).offset == number

    @property
    def sequences(self) -> Sequences:
        return self.producer._accumulator.topics[self.topic].queues[0].sequences

    @property
    def identity(self) -> Identity:
        assert self.sequences.identity is not None
        return self.sequences.identity


async def assert_in_the_log(kafka: RealCluster, topic: str, count: int) -> None:
    async with Consumer(topic, bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
        got = await read_records(consumer, count)
    assert [record.value for record in got] == [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("version", ["0.11.0.3", "2.8.2", "4.3.1"])
async def test_numbers_that_do_not_fit_start_anew(clusters: Clusters, version: str) -> None:
    kafka = clusters.running(version)
    topic = kafka.new_topic("numbers")
    async with Producer(kafka.bootstrap, batch_size=SMALL, enable_idempotence=True) as producer:
        records = Numbered(producer, topic)
        await records.send()
        first = records.identity

        # What follows a record of unknown fate: an epoch that the producer takes by itself.
        records.sequences.restart = Restart.MISSING
        await records.send()
        assert records.identity == (first.producer_id, first.epoch + 1)

        # A gap: OUT_OF_ORDER_SEQUENCE_NUMBER, twice.
        records.sequences.next += 7
        await records.send()
        assert records.identity == (first.producer_id, first.epoch + 2)

        # An old epoch: INVALID_PRODUCER_EPOCH, and another id.
        records.sequences.identity = first
        await records.send()
        assert records.identity.producer_id != first.producer_id
        assert producer.counters.failed == 0
    await assert_in_the_log(kafka, topic, records.count)


@pytest.mark.parametrize("version", ["0.11.0.3", "2.8.2"])
async def test_a_topic_in_an_old_format_is_written_without_numbers(
    clusters: Clusters, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = clusters.running(version)
    topic = kafka.new_topic("old-format", 1, 1, **{"message.format.version": "0.10.2"})
    async with Producer(kafka.bootstrap, batch_size=SMALL) as producer:
        records = Numbered(producer, topic)
        await records.send()
        await records.send()
    assert [vars(each)["event"] for each in caplog.records if each.levelno >= logging.WARNING] == [
        "producer.idempotence_off"
    ]
    await assert_in_the_log(kafka, topic, records.count)
