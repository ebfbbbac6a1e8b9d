"""The same consumer, without a version setting, on what every release keeps and serves."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import Codec, Consumer, EmbeddedCluster, RecordTooLargeError, TopicPartition
from pykafka08.broker.log import StoredBatch
from pykafka08.records.rewrite import assign_offsets
from pykafka08.records.writer import encode_batch
from tests.consumer.embedded import log_of, numbers, read, read_values, store, values

pytestmark = pytest.mark.anyio

RELEASES = [
    "0.8.0",
    "0.8.1",
    "0.8.2",
    "0.9.0",
    "0.10.0",
    "0.10.1",
    "0.10.2",
    "0.11.0",
    "1.1",
    "2.8",
    "3.9",
    "4.0",
    "4.3",
]
T0 = TopicPartition("t", 0)
BATCH = 300


def magic_of(release: str) -> int:
    if release.startswith(("0.8", "0.9")):
        return 0
    return 1 if release.startswith("0.10") else 2


def codecs_of(release: str) -> list[Codec]:
    codecs = [Codec.NONE, Codec.GZIP, Codec.SNAPPY]
    if release not in ("0.8.0", "0.8.1"):
        codecs.append(Codec.LZ4)
    if not release.startswith("0.") and release != "1.1":
        codecs.append(Codec.ZSTD)
    return codecs


def encode(magic: int, codec: Codec, first: int, count: int) -> bytes:
    """As such a broker keeps it: with offsets from ``first`` on."""
    data = encode_batch(
        magic,
        codec,
        timestamps=[1000 + number for number in range(first, first + count)],
        keys=[b"k%d" % number for number in range(first, first + count)],
        values=values(first, first + count),
    )
    return assign_offsets(data, first, leader_epoch=0).data


@pytest.mark.parametrize("release", RELEASES)
async def test_every_codec_of_every_release(release: str) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster:
        magic, count = magic_of(release), 0
        for codec in codecs_of(release):
            store(cluster, "t", encode(magic, codec, count, BATCH), count + BATCH - 1)
            count += BATCH
        async with Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=20
        ) as consumer:
            records = await read(consumer, count)
            assert [record.offset for record in records] == list(range(count))
            assert numbers([record.value for record in records]) == list(range(count))
            assert [record.key for record in records] == [b"k%d" % number for number in range(count)]
            if magic:
                assert [record.timestamp_ms for record in records] == list(range(1000, 1000 + count))
            # From the midst of each batch, compressed or not.
            for first in range(BATCH // 2, count, BATCH):
                await consumer.seek(T0, first)
                assert [record.offset for record in await read(consumer, 5)] == list(range(first, first + 5))
            assert await consumer.lag(T0) == count - (count - BATCH // 2 + 5)


async def test_formats_of_many_upgrades_in_one_log() -> None:
    async with EmbeddedCluster(version="2.8", topics={"t": 1}) as cluster:
        count = 0
        for magic in (0, 1, 2):
            for codec in (Codec.NONE, Codec.GZIP, Codec.LZ4):
                store(cluster, "t", encode(magic, codec, count, 50), count + 49)
                count += 50
        async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            assert numbers(await read_values(consumer, count)) == list(range(count))


@pytest.mark.parametrize("release", ["0.8.0", "0.10.0", "0.10.1", "2.8", "4.3"])
async def test_a_record_larger_than_the_fetch_size(release: str) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster:
        magic = magic_of(release)
        big = encode_batch(magic, Codec.NONE, timestamps=[1], keys=[None], values=[b"x" * 50_000])
        store(cluster, "t", encode(magic, Codec.NONE, 0, 3), 2)
        store(cluster, "t", assign_offsets(big, 3, leader_epoch=0).data, 3)
        store(cluster, "t", encode(magic, Codec.NONE, 4, 3), 6)
        async with Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=1000,
        ) as consumer:
            records = await read(consumer, 7)
        assert [record.offset for record in records] == list(range(7))
        assert len(records[3].value or b"") == 50_000


async def test_a_record_larger_than_any_fetch_of_an_old_broker() -> None:
    async with EmbeddedCluster(version="0.8.2", topics={"t": 2}) as cluster:
        big = encode_batch(0, Codec.NONE, timestamps=[1], keys=[None], values=[b"x" * 50_000])
        store(cluster, "t", bytes(big), 0)
        store(cluster, "t", encode(0, Codec.NONE, 1, 3), 3)
        store(cluster, "t", encode(0, Codec.NONE, 0, 3), 2, partition=1)
        async with Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=1000,
            fetch_max_bytes=10_000,
        ) as consumer:
            seen: list[tuple[int, int]] = []
            errors: list[RecordTooLargeError] = []
            with anyio.fail_after(30):
                while len(seen) < 6:
                    try:
                        record = await consumer.getone()
                        seen.append((record.partition, record.offset))
                    except RecordTooLargeError as error:
                        errors.append(error)
                        await consumer.seek(T0, 1)
            (error,) = errors
            assert (error.topic, error.partition, error.offset) == ("t", 0, 0)
            assert "fetch_max_bytes=10000" in str(error)
            assert sorted(seen) == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]


async def test_batches_in_a_log_are_what_the_helper_thinks() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        store(cluster, "t", encode(2, Codec.GZIP, 0, 10), 9)
        (stored,) = log_of(cluster, "t")._batches
        assert isinstance(stored, StoredBatch)
        assert [record.offset for record in cluster.records("t", 0)] == list(range(10))
