"""Topics that are deleted and made again: nothing known of the old one counts for the new one."""

from __future__ import annotations

import logging

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, NoOffsetError, TopicPartition
from pykafka08.cluster.metadata import Snapshot
from tests.consumer.embedded import fill, numbers, read, read_values, values
from tests.consumer.groups import committed_in, until

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


def make_again(cluster: EmbeddedCluster) -> None:
    cluster.delete_topic("t")
    cluster.create_topic("t", 1)


def consumer_of(cluster: EmbeddedCluster, policy: str, **settings: object) -> Consumer:
    return Consumer(
        "t",
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset=policy,
        fetch_max_wait_ms=50,
        retry_backoff_ms=10,
        **settings,
    )


@pytest.mark.parametrize("release", ["2.8", "3.9", "4.3"])
@pytest.mark.parametrize("policy", ["earliest", "latest"])
@pytest.mark.parametrize("size", [3, 80])
async def test_the_new_topic_is_read_from_its_beginning(
    release: str, policy: str, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is shorter than the old one, or longer."""
    async with EmbeddedCluster(version=release, topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, policy) as consumer:
            if policy == "earliest":
                await read(consumer, 50)
            assert await consumer.position(T0) == 50
            make_again(cluster)
            await fill(cluster, "t", values(500, 500 + size))
            assert numbers(await read_values(consumer, size)) == list(range(500, 500 + size))
            assert await consumer.position(T0) == size
        (note,) = [record for record in caplog.records if vars(record).get("event") == "topic.made_again"]
        assert (note.levelno, vars(note)["topic"], vars(note)["position"]) == (logging.WARNING, "t", 50)


async def test_without_a_policy_there_is_no_position_in_the_new_topic() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "none") as consumer:
            await consumer.seek(T0, 50)
            make_again(cluster)
            await fill(cluster, "t", values(0, 3))
            with pytest.raises(NoOffsetError) as caught, anyio.fail_after(30):
                await consumer.getone()
            assert (caught.value.offset, caught.value.earliest) == (50, 0)


async def test_records_of_the_old_topic_that_lie_ready_are_not_handed_out() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "earliest") as consumer:
            assert (await consumer.getone(timeout=30)).value == b"0"  # the other 49 are in hand
            make_again(cluster)
            await fill(cluster, "t", values(500, 505))
            with anyio.fail_after(30):
                while await consumer.position(T0) != 0:
                    await anyio.lowlevel.checkpoint()
            assert numbers(await read_values(consumer, 5)) == [500, 501, 502, 503, 504]


@pytest.mark.parametrize("release", ["2.8", "4.3"])
async def test_offsets_of_the_old_topic_are_not_committed_to_the_new_one(release: str) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "earliest", group_id="g", enable_auto_commit=False) as consumer:
            await read(consumer, 50)
            await consumer.commit()
            make_again(cluster)
            await fill(cluster, "t", values(500, 510))
            assert numbers(await read_values(consumer, 4)) == [500, 501, 502, 503]
            await consumer.commit()
            committed = (await consumer.committed([T0]))[T0]
            assert committed is not None
            assert committed.offset == 4


async def test_offsets_of_a_topic_that_is_missing_are_not_committed_to_the_one_that_comes_next() -> None:
    """The commit begins while metadata knows no such topic, and by the time it is sent there is a new one."""
    async with EmbeddedCluster(version="4.3", topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(
            cluster, "earliest", group_id="g", enable_auto_commit=False, metadata_max_age_ms=50
        ) as consumer:
            await read(consumer, 50)
            assert consumer._client is not None
            client = consumer._client
            cluster.delete_topic("t")
            await until(lambda: client.metadata.topic_id("t") is None)
            cluster.create_topic("t", 1)
            refused = await consumer.commit()
            assert list(refused) == [T0]
            assert await committed_in(cluster, [T0]) == {}


async def test_a_commit_that_begins_as_the_new_id_arrives_takes_nothing_of_the_old_topic() -> None:
    """Whoever runs first when metadata tells the new id: the group sends offsets under that id from then on."""
    async with EmbeddedCluster(version="4.3", topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer_of(cluster, "earliest", group_id="g", enable_auto_commit=False) as consumer:
            await read(consumer, 50)
            assert consumer._client is not None
            assert consumer._member is not None
            old_id, commits = consumer._client.metadata.topic_id("t"), consumer._member.commits
            begun = []

            def commit_begins(snapshot: Snapshot) -> None:
                if snapshot.topic_id("t") not in (None, old_id):
                    begun.append((commits.finished([T0]), commits.positions()))

            consumer._client.on_metadata(commit_begins)
            make_again(cluster)
            await until(lambda: bool(begun))
            assert begun[0] == ({}, {})
