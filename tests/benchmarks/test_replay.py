"""The replaying server serves what the names of its topics say, to this client and to others."""

import sys
from dataclasses import replace

import anyio
import pytest

from benchmarks.cells import CELLS, select
from benchmarks.jobs import Task
from benchmarks.nursery import Nursery
from benchmarks.replay import Canned, encode_batches, replaying
from benchmarks.topics import Profile, ReadTopic, partitions_of
from pykafka08 import Consumer, Producer, TopicPartition
from pykafka08.records.reader import read_batches

SMALL = Profile(size=100, keyed=True, codec="lz4", partitions=2, batch_bytes=16 * 1024)


@pytest.fixture(scope="module")
def server():
    with replaying() as running:
        yield running


def test_a_topic_is_told_by_its_name():
    topic = ReadTopic.holding(SMALL, 1000)
    assert ReadTopic.from_name(topic.name) == topic
    assert topic.records >= 1000
    assert partitions_of(topic.name) == partitions_of(SMALL.written_name()) == 2
    assert partitions_of("anything") == 1
    with pytest.raises(ValueError):
        ReadTopic.from_name(SMALL.written_name())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_canned_batches_hold_the_values_of_the_profile(codec):
    profile = Profile(codec=codec, batch_bytes=16 * 1024)
    topic = ReadTopic.holding(profile, 3 * profile.records_per_batch)
    log = Canned(topic, encode_batches(profile))
    values, offset = [], 0
    while (fetched := log.fetch(offset, 20 * 1024)) is not None:
        for batch in read_batches(fetched, topic="t", partition=0, fetch_offset=offset):
            assert batch.base_offset == offset
            values += batch.values()
            offset = batch.next_offset
    assert offset == log.end_offset == topic.partition_records == len(values)
    assert values == profile.pool()[0][: len(values)]
    assert sum(map(len, values)) == topic.value_bytes


def test_our_own_consumer_reads_it_to_its_end(server):
    topic = ReadTopic.holding(SMALL, 5000)

    async def read():
        async with Consumer(bootstrap_servers=f"127.0.0.1:{server.port}", auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic.name, 0), TopicPartition(topic.name, 1)])
            count = size = 0
            async for batch in consumer.batches():
                count += len(batch)
                size += sum(map(len, batch.values()))
                if count >= topic.records:
                    return count, size

    assert anyio.run(read) == (topic.records, topic.value_bytes)


def test_what_is_written_is_counted(server):
    name = Profile(partitions=3).written_name("counted")

    async def write():
        async with Producer(bootstrap_servers=f"127.0.0.1:{server.port}", acks=1) as producer:
            await producer.send_many(name, [b"value"] * 1000)
            return await producer.send(name, b"last", partition=2)

    last = anyio.run(write)
    ends = [server._end_offset(name, partition) for partition in range(3)]
    assert sum(ends) == 1001
    assert last.offset == ends[2] - 1


@pytest.mark.parametrize(
    ("client", "way"),
    [
        ("aiokafka", "getmany"),
        ("aiokafka", "send_batch"),
        ("aiokafka", "send_one"),
        ("confluent", "consume"),
        ("confluent", "produce"),
        ("confluent", "aio_consume"),
        ("confluent", "aio_produce"),
        ("confluent", "aio_send_one"),
        ("kafka_python", "poll"),
        ("kafka_python", "send"),
    ],
)
def test_other_clients_are_served(server, client, way):
    topic, reads = ReadTopic.holding(SMALL, 2000), way in ("getmany", "consume", "aio_consume", "poll")
    task = Task(
        client=client,
        way=way,
        bootstrap=f"127.0.0.1:{server.port}",
        topic=topic.name if reads else SMALL.written_name(f"{client}-{way}"),
        warm_topic=ReadTopic.holding(replace(SMALL, partitions=1), 1).name if reads else "",
        records=topic.records if reads else 500,
        warm_up=100,
        profile=SMALL,
    )
    nursery = Nursery(client, way)
    try:
        told = nursery.turn(task)
    finally:
        nursery.close()
    assert told["records"] == task.records
    if reads:
        assert told["value_bytes"] == topic.value_bytes
    else:
        assert sum(server._end_offset(task.topic, partition) for partition in range(2)) == 600


def test_cells_are_chosen_by_words():
    names = [cell.name for cell in select(CELLS, "consume batches 100 replay, end-to-end")]
    assert all(("consume" in name and "batches" in name) or "end-to-end" in name for name in names)
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    assert select(CELLS, "") == list(CELLS)


def test_tasks_survive_the_way_to_the_worker():
    task = Task("aiokafka", "send", "h:1", "t", "w", 5, 1, SMALL, tree=sys.prefix)
    assert Task.from_json(task.to_json()) == task
