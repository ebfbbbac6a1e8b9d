"""What a plan is made of, asked of embedded brokers of all ages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pykafka08 import Admin, EmbeddedCluster, EmbeddedZooKeeper, NewRecord, Producer
from pykafka08.cluster.client import Client
from pykafka08.errors import UnknownTopicError, UnsupportedVersionError
from pykafka08.records.record import TopicPartition
from pykafka08.spark.locating import Found, OffsetsMismatchError, find_partitions, locate, offsets_of_limit, resolve
from pykafka08.spark.offsets_json import EARLIEST, LATEST
from pykafka08.spark.options import ReadOptions, read_options
from pykafka08.spark.ranges import Range
from pykafka08.zookeeper.bridge import ZooKeeper

pytestmark = pytest.mark.anyio

RELEASES = ["0.8.2", "0.9.0", "0.10.0", "0.11.0", "2.8", "4.3"]


def options_of(cluster: EmbeddedCluster, **given: str) -> ReadOptions:
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "fetchOffset.numRetries": "0", **given}
    return read_options(options, streaming=False)


@asynccontextmanager
async def asked(cluster: EmbeddedCluster, **given: str) -> AsyncIterator[tuple[Client, ReadOptions]]:
    options = options_of(cluster, **given)
    async with Client(options.client, allow_auto_topic_creation=False) as client:
        yield client, options


async def fill(cluster: EmbeddedCluster, topic: str, *counts: int, timestamp_ms: int = 1000) -> None:
    """So many records into each partition, one of each millisecond from ``timestamp_ms`` on."""
    async with Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
        records = [
            NewRecord(b"v", partition=partition, timestamp_ms=timestamp_ms + index)
            for partition, count in enumerate(counts)
            for index in range(count)
        ]
        await producer.send_many(topic, records)


async def found(client: Client, options: ReadOptions, **settings: Any) -> Found:
    return await find_partitions(client, options.selection, retries=0, **settings)


def names(result: Found) -> list[tuple[str, int]]:
    return [tuple(tp) for tp in result.partitions]


@pytest.mark.parametrize("version", RELEASES)
async def test_a_batch_from_earliest_to_latest(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 3}, brokers=2) as cluster:
        await fill(cluster, "t", 5, 0, 7)
        cluster.delete_records("t", 0, 2)
        async with asked(cluster, subscribe="t") as (client, options):
            ranges = await resolve(client, options)
    assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 2, 5), (2, 0, 7)]
    assert all((each.topic_id is not None) == (version in ("2.8", "4.3")) for each in ranges)


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
async def test_which_partitions(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"plain": 2, "lane": 1, "other": 1}) as cluster:
        async with asked(cluster, subscribePattern="la[in]") as (client, options):
            assert names(await found(client, options)) == [("lane", 0), ("plain", 0), ("plain", 1)]
            cluster.add_partitions("lane", 2)
            cluster.create_topic("lain", 1)
            assert names(await found(client, options))[:3] == [("lain", 0), ("lane", 0), ("lane", 1)]
        async with asked(cluster, assign='{"plain":[1],"other":[0]}') as (client, options):
            assert names(await found(client, options)) == [("other", 0), ("plain", 1)]
        async with asked(cluster, subscribePattern="nowhere") as (client, options):
            assert await resolve(client, options) == []


@pytest.mark.parametrize("version", RELEASES)
async def test_a_pattern_chooses_no_internal_topic(version: str) -> None:
    topics = {"t": 1, "__consumer_offsets": 1, "__transaction_state": 1, "__mine": 1}
    async with EmbeddedCluster(version=version, topics=topics) as cluster:
        async with asked(cluster, subscribePattern=".*") as (client, options):
            assert names(await found(client, options)) == [("__mine", 0), ("t", 0)]
            assert not options.selection.chooses(TopicPartition("__consumer_offsets", 0))
        async with asked(cluster, subscribe="__consumer_offsets") as (client, options):
            assert names(await found(client, options)) == [("__consumer_offsets", 0)]


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("given", [{"subscribe": "t,nope"}, {"assign": '{"nope":[0]}'}])
async def test_a_topic_that_is_not_there_is_an_error_and_not_created(version: str, given: dict[str, str]) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        async with asked(cluster, **given) as (client, options):
            with pytest.raises(UnknownTopicError, match="nope: This server does not host this topic-partition"):
                await found(client, options)
        assert cluster.topics == {"t": 1}


@pytest.mark.parametrize("version", RELEASES)
async def test_a_partition_that_is_not_there_is_named(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 1, "u": 2}) as cluster:
        async with asked(cluster, assign='{"t":[0,7,5],"u":[1]}') as (client, options):
            with pytest.raises(UnknownTopicError, match="Unknown partition t-5: This server does not") as caught:
                await found(client, options)
    assert (caught.value.topic, caught.value.partition) == ("t", 5)


async def test_a_topic_that_is_there_by_the_next_try() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, asked(cluster, subscribe="t,late") as (client, options):

        def create_when_asked(*_: object) -> None:
            if "late" not in cluster.topics:
                cluster.create_topic("late", 1)

        with pytest.raises(UnknownTopicError):
            await found(client, options)
        create_when_asked()
        assert names(await found(client, options)) == [("late", 0), ("t", 0)]


async def test_a_known_topic_that_is_gone_is_told() -> None:
    async with EmbeddedCluster(topics={"t": 1, "gone": 1}) as cluster, asked(cluster, subscribe="t,gone") as asking:
        client, options = asking
        await found(client, options)
        cluster.delete_topic("gone")
        result = await found(client, options, known_topics={"gone"})
    assert (names(result), result.missing) == ([("t", 0)], {"gone"})


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
async def test_from_what_a_group_in_kafka_has_committed(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 2, "u": 1}) as cluster:
        await fill(cluster, "t", 5, 4)
        async with Admin(cluster.bootstrap_servers) as admin:
            await admin.alter_group_offsets("g", {TopicPartition("t", 1): 3})
        async with asked(cluster, subscribe="t", startingGroup="g") as (client, options):
            ranges = await resolve(client, options)
        async with asked(cluster, subscribe="u", startingGroup="g") as (client, options):
            with pytest.raises(OffsetsMismatchError, match="The group g has committed no offset of what is read"):
                await resolve(client, options)
    assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 0, 5), (1, 3, 4)]


async def test_from_what_a_group_in_zookeeper_has_committed() -> None:
    async with EmbeddedZooKeeper() as zookeeper, EmbeddedCluster(version="0.8.2", topics={"t": 2}) as cluster:
        await fill(cluster, "t", 5, 4)
        group = f"zookeeper:g@{zookeeper.address}"
        async with ZooKeeper(zookeeper.address) as zk:
            await zk.create("/consumers/g/offsets/t/1", b"3", make_parents=True)
            await zk.create("/consumers/g/offsets/other/0", b"1", make_parents=True)
        async with asked(cluster, subscribe="t", startingGroup=group) as (client, options):
            ranges = await resolve(client, options)
    assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 0, 5), (1, 3, 4)]


async def test_by_timestamp() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", 10, 3)
        async with asked(cluster, subscribe="t", startingTimestamp="1002", endingTimestamp="1005") as (client, options):
            ranges = await resolve(client, options)
            assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 2, 5), (1, 2, 3)]
        by_partition = '{"t":{"0":1009,"1":1001}}'
        async with asked(cluster, subscribe="t", startingOffsetsByTimestamp=by_partition) as (client, options):
            ranges = await resolve(client, options)
            assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 9, 10), (1, 1, 3)]


async def test_a_time_that_no_record_has() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        await fill(cluster, "t", 10, 3)
        async with asked(cluster, subscribe="t", startingTimestamp="1005") as (client, options):
            words = "No offset matched from request of topic-partition t-1 and timestamp 1005"
            with pytest.raises(OffsetsMismatchError, match=words):
                await resolve(client, options)
        given = {"startingTimestamp": "1005", "startingOffsetsByTimestampStrategy": "latest"}
        async with asked(cluster, subscribe="t", **given) as (client, options):
            ranges = await resolve(client, options)
            assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 5, 10)]


@pytest.mark.parametrize("version", ["0.8.2", "0.10.0"])
async def test_times_of_old_brokers_are_those_of_files(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        await fill(cluster, "t", 5)
        async with asked(cluster, subscribe="t", startingTimestamp="1002") as (client, options):
            with pytest.raises(UnsupportedVersionError, match="segmentGranularTimestamps"):
                await resolve(client, options)
        given = {"startingTimestamp": "1002", "segmentGranularTimestamps": "true"}
        async with asked(cluster, subscribe="t", **given) as (client, options):
            assert await resolve(client, options) == [Range("t", 0, 0, 5)]


async def test_offsets_that_the_options_say() -> None:
    async with EmbeddedCluster(topics={"t": 3}) as cluster:
        await fill(cluster, "t", 10, 10, 10)
        given = {"startingOffsets": '{"t":{"0":-2,"1":4,"2":10}}', "endingOffsets": '{"t":{"0":3,"1":-1,"2":-1}}'}
        async with asked(cluster, subscribe="t", **given) as (client, options):
            ranges = await resolve(client, options)
            assert [(each.partition, each.start, each.end) for each in ranges] == [(0, 0, 3), (1, 4, 10)]
        for wrong in ('{"t":{"0":0,"1":0}}', '{"t":{"0":0,"1":0,"2":0,"3":0}}'):
            async with asked(cluster, subscribe="t", startingOffsets=wrong) as (client, options):
                with pytest.raises(OffsetsMismatchError, match="you must specify all TopicPartitions"):
                    await resolve(client, options)
        behind = {"startingOffsets": '{"t":{"0":0,"1":99,"2":0}}'}
        async with asked(cluster, subscribe="t", **behind) as (client, options):
            with pytest.raises(
                OffsetsMismatchError, match="start offset 99 is greater than the resolved end offset 10"
            ):
                await resolve(client, options)


async def test_the_latest_offset_is_the_last_stable_one_where_committed_records_are_read() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", 2)
        async with (
            asked(cluster, subscribe="t", **{"kafka.isolation.level": "read_committed"}) as (client, committed),
            Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x", linger_ms=0) as producer,
            producer.transaction(),
        ):
            await producer.send("t", b"open")
            tp = TopicPartition("t", 0)
            assert await locate(client, {tp: LATEST}, committed) == {tp: 2}
            assert await locate(client, {tp: LATEST}, options_of(cluster, subscribe="t")) == {tp: 3}


async def test_many_partitions_take_one_request_of_each_leader() -> None:
    async with EmbeddedCluster(topics={"t": 300}, brokers=3) as cluster:
        async with asked(cluster, subscribe="t") as (client, options):
            result = await found(client, options)
            before = len(cluster.requests)
            offsets = await offsets_of_limit(client, result.partitions, options.starting, options, side="starting")
            listed = [each for each in cluster.requests[before:] if each.api == "ListOffsets"]
    assert options.starting.point == EARLIEST
    assert (len(offsets), len(listed)) == (300, 3)
