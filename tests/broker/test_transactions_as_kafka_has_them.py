"""The embedded broker answers a whole story of transactions as real brokers do, request by request."""

from __future__ import annotations

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from tests.broker.raw import Raw, connect
from tests.broker.transaction_story import tell
from tests.integration.clusters import Clusters

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    ("release", "uses_v2"), [("0.11.0.3", False), ("2.8.2", False), ("4.3.1", False), ("4.3.1", True)]
)
async def test_the_same_answers(release: str, uses_v2: bool, clusters: Clusters) -> None:
    played = ".".join(release.split(".")[: 3 if release.startswith("0") else 2])
    async with EmbeddedCluster(1, played, {"t": 2}) as cluster, connect(cluster) as raw:
        ours = await tell(raw, played, "t", uses_v2=uses_v2)
    kafka = await anyio.to_thread.run_sync(clusters.running, release)
    topic = await anyio.to_thread.run_sync(kafka.new_topic, "story", 2)
    host, port = kafka.bootstrap.rsplit(":", 1)
    async with await anyio.connect_tcp(host, int(port)) as stream:
        theirs = await tell(Raw(stream), played, topic, uses_v2=uses_v2)
    assert ours == theirs
