"""Offsets that the application commits by itself, beside commits that are made without being told."""

from __future__ import annotations

import pytest

from pykafka08 import EmbeddedCluster, TopicPartition
from tests.consumer.groups import committed_in, consumer, spread

pytestmark = pytest.mark.anyio

T0 = TopicPartition("t", 0)


async def test_what_was_committed_is_finished_though_it_is_in_hand() -> None:
    """Closing, which commits what is finished, does not take the group back."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await spread(cluster, "t", 1, 50)
        async with consumer(cluster, "t") as reader:
            assert len(await reader.getmany(max_records=10, timeout=60)) == 10
            assert await reader.commit({T0: 10}) == {}
        assert await committed_in(cluster, [T0]) == {0: 10}


async def test_a_record_may_be_committed_while_it_is_handled() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await spread(cluster, "t", 1, 5)
        async with consumer(cluster, "t", auto_commit_interval_ms=1) as reader:
            async for record in reader:
                assert await reader.commit({T0: record.offset + 1}) == {}
                if record.offset == 3:
                    break
        assert await committed_in(cluster, [T0]) == {0: 4}
