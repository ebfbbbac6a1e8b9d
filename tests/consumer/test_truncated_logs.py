"""Unclean elections in an embedded cluster: records that were read are lost, others take their offsets."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, LogTruncationError, TopicPartition
from tests.consumer.embedded import fill, read, values

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


async def grow(cluster: EmbeddedCluster, first: int, last: int) -> None:
    """Records of their own value, in batches of five."""
    for start in range(first, last, 5):
        await fill(cluster, "t", values(start, start + 5))


def consumer_of(cluster: EmbeddedCluster, policy: str) -> Consumer:
    return Consumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset=policy, fetch_max_wait_ms=20)


@pytest.mark.parametrize("release", ["2.4", "2.8", "4.3"])
@pytest.mark.parametrize("policy", ["earliest", "latest"])
async def test_reading_goes_on_where_the_log_was_cut(release: str, policy: str) -> None:
    async with (
        EmbeddedCluster(brokers=3, version=release, topics={"t": 1}) as cluster,
        consumer_of(cluster, policy) as consumer,
    ):
        consumer.assign([T0])
        await consumer.seek(T0, 0)
        await grow(cluster, 0, 20)
        assert [record.offset for record in await read(consumer, 20)] == list(range(20))
        leader = cluster.leader("t", 0)
        cluster.elect_unclean_leader("t", 0, (leader + 1) % 3, 10)
        await grow(cluster, 100, 120)  # offsets 10 to 29
        records = await read(consumer, 20)
        assert [record.offset for record in records] == list(range(10, 30))
        assert [record.value for record in records] == values(100, 120)


@pytest.mark.parametrize("release", ["2.8", "4.3"])
async def test_the_same_leader_in_a_new_epoch(release: str) -> None:
    async with (
        EmbeddedCluster(version=release, topics={"t": 1}) as cluster,
        consumer_of(cluster, "earliest") as consumer,
    ):
        consumer.assign([T0])
        await grow(cluster, 0, 20)
        await read(consumer, 20)
        cluster.elect_unclean_leader("t", 0, 0, 5)
        await grow(cluster, 200, 230)
        records = await read(consumer, 30)
        assert [(record.offset, record.value) for record in records] == [(5 + n, b"%d" % (200 + n)) for n in range(30)]


async def test_without_a_policy_the_loss_is_raised_until_somebody_seeks() -> None:
    async with (
        EmbeddedCluster(brokers=3, topics={"t": 1}) as cluster,
        consumer_of(cluster, "none") as consumer,
    ):
        consumer.assign([T0])
        await consumer.seek(T0, 0)
        await grow(cluster, 0, 20)
        await read(consumer, 20)
        cluster.elect_unclean_leader("t", 0, (cluster.leader("t", 0) + 1) % 3, 15)
        for _ in range(2):
            with pytest.raises(LogTruncationError, match="from 15 to 19") as caught, anyio.fail_after(30):
                await consumer.getone()
            assert (caught.value.topic, caught.value.partition) == tuple(T0)
            assert (caught.value.offset, caught.value.end_offset) == (20, 15)
        await consumer.seek(T0, 15)
        await grow(cluster, 300, 305)
        assert [record.value for record in await read(consumer, 5)] == values(300, 305)


async def test_a_clean_election_loses_and_repeats_nothing() -> None:
    async with (
        EmbeddedCluster(brokers=3, topics={"t": 1}) as cluster,
        consumer_of(cluster, "none") as consumer,
    ):
        consumer.assign([T0])
        await consumer.seek(T0, 0)
        for turn in range(6):
            await grow(cluster, 10 * turn, 10 * turn + 10)
            cluster.move_leader("t", 0, turn % 3)
            assert [record.offset for record in await read(consumer, 10)] == list(range(10 * turn, 10 * turn + 10))
