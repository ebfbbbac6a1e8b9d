"""Where a group's partitions begin while things go wrong: topics made again, offsets that cannot be had."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import EmbeddedCluster, ErrorCode, TopicPartition
from pykafka08.errors import AuthorizationError
from tests.consumer.embedded import fill, read, values
from tests.consumer.groups import committed_in, consumer, until

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


def asked(cluster: EmbeddedCluster, api: str) -> int:
    return sum(request.api == api for request in cluster.requests)


@pytest.mark.parametrize("version", ["2.8", "4.3"])
async def test_a_look_up_under_way_when_the_topic_is_made_again_is_begun_anew(version: str) -> None:
    """Another member has read and committed in the new topic before this one hears of it."""
    async with EmbeddedCluster(version=version, topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer(cluster) as outsider:
            assert await outsider.commit({T0: 30}) == {}
        cluster.faults.answer("OffsetFetch", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
        async with consumer(cluster, metadata_max_age_ms=50, auto_offset_reset="earliest") as reader:
            reader.assign([T0])
            await until(lambda: asked(cluster, "OffsetFetch") >= 2)
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            await fill(cluster, "t", values(500, 520))
            async with consumer(cluster) as outsider:
                await outsider._client.wait_for_topics(["t"])  # type: ignore[union-attr]
                assert await outsider.commit({T0: 5}) == {}
            new_id = cluster._state.topics.find("t").topic_id  # type: ignore[union-attr]
            await until(lambda: reader._client.metadata.topic_id("t") == new_id)  # type: ignore[union-attr]
            cluster.faults.clear()
            assert [record.offset for record in await read(reader, 3)] == [5, 6, 7]
        assert await committed_in(cluster, [T0]) == {0: 7}


async def test_a_commit_that_began_before_the_topic_was_made_again_is_refused() -> None:
    """It is tried again all the time, and by name it would go into the new topic."""
    async with EmbeddedCluster(version="2.8", topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 50))
        async with consumer(cluster, metadata_max_age_ms=50, enable_auto_commit=False) as reader:
            reader.assign([T0])
            await read(reader, 40)
            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            outcomes = []

            async def commit() -> None:
                outcomes.append(await reader.commit({T0: 40}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await until(lambda: asked(cluster, "OffsetCommit") >= 1)
                cluster.delete_topic("t")
                cluster.create_topic("t", 1)
                new_id = cluster._state.topics.find("t").topic_id  # type: ignore[union-attr]
                await until(lambda: reader._client.metadata.topic_id("t") == new_id)  # type: ignore[union-attr]
                cluster.faults.clear()
            assert "made again" in str(outcomes[0][T0])
        assert await committed_in(cluster, [T0]) == {}


async def test_a_topic_whose_offsets_may_not_be_read_does_not_stop_the_others() -> None:
    u0 = TopicPartition("u", 0)
    async with EmbeddedCluster(topics={"t": 1, "u": 1}) as cluster:
        await fill(cluster, "t", values(0, 5))
        cluster.faults.answer("OffsetFetch", ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic="u", times=None)
        async with consumer(cluster) as reader:
            reader.assign([T0, u0])
            got, refused = [], set()
            with anyio.fail_after(30):
                while len(got) < 5 or not refused:
                    try:
                        got.append((await reader.getone()).offset)
                    except AuthorizationError as error:
                        refused.add(error.topic)
            assert got == [0, 1, 2, 3, 4]
            assert refused == {"u"}


async def test_a_partition_that_comes_while_others_are_looked_up_does_not_wait_for_them() -> None:
    """The topic of the first is gone: its look-up goes on until the deadline of a call."""
    async with EmbeddedCluster(topics={"t": 1, "u": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 5))
        cluster.faults.answer("OffsetFetch", ErrorCode.UNKNOWN_TOPIC_ID, topic="u", times=None)
        async with consumer(cluster) as reader:
            reader.assign([TopicPartition("u", 0)])
            await until(lambda: asked(cluster, "OffsetFetch") >= 2)
            reader.assign([TopicPartition("u", 0), T0])
            assert [record.offset for record in await read(reader, 5)] == [0, 1, 2, 3, 4]
