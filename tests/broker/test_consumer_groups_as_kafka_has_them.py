"""The embedded broker answers whole stories of groups of the new protocol as real brokers do, request by request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from tests.broker.consumer_group_story import tell_of_members, tell_of_migration
from tests.broker.raw import Raw, connect
from tests.integration.clusters import Clusters

pytestmark = pytest.mark.anyio

Story = Callable[[Raw, str, str], Awaitable[list[str]]]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("release", ["4.3.1"])
@pytest.mark.parametrize("story", [tell_of_members, tell_of_migration])
async def test_the_same_answers(story: Story, release: str, clusters: Clusters) -> None:
    async with EmbeddedCluster(version="4.3", topics={"t": 4}) as cluster, connect(cluster) as raw:
        ours = await story(raw, "g", "t")
    kafka = await anyio.to_thread.run_sync(clusters.running, release)
    topic = await anyio.to_thread.run_sync(kafka.new_topic, "story", 4)
    host, port = kafka.bootstrap.rsplit(":", 1)
    async with await anyio.connect_tcp(host, int(port)) as stream:
        theirs = await story(Raw(stream), topic, topic)
    assert ours == theirs
