"""The bridge and a real server: the one of Kafka 0.8.2.2, with PYKAFKA08_SOAK=1 those of other releases too."""

from __future__ import annotations

import os

import pytest

from pykafka08.errors import BadVersionError, NoNodeError, UnsupportedVersionError
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Kind, NodeEvent
from pykafka08.zookeeper.operations import Check, Create, Delete
from tests.integration.clusters import Clusters
from tests.zookeeper.bridge.waiting import LONG_SESSION_MS, event_of

pytestmark = pytest.mark.anyio

VERSIONS = ["0.8.1.1", "0.8.2.2", "3.9.2"] if os.environ.get("PYKAFKA08_SOAK") else ["0.8.2.2"]
WITHOUT_MULTI = "0.8.1.1"
ROOT = "/pykafka08-bridge"


@pytest.mark.parametrize("version", VERSIONS)
async def test_calls_watches_and_a_chroot(version: str, clusters: Clusters) -> None:
    address = clusters.running(version).zookeeper
    assert address is not None
    async with ZooKeeper(address, session_timeout_ms=LONG_SESSION_MS) as zk:
        await zk.create(f"{ROOT}/t/a", b"1", make_parents=True)
        await zk.read(f"{ROOT}/t/a", watch=True)
        await zk.children(f"{ROOT}/t", watch=True)
        async with ZooKeeper(address + ROOT, session_timeout_ms=LONG_SESSION_MS) as other:
            await other.write("/t/a", b"2", version=0)
            with pytest.raises(BadVersionError):
                await other.write("/t/a", b"3", version=0)
            await other.create("/t/me", b"", ephemeral=True)
            owner = (await zk.read(f"{ROOT}/t/me")).stat.ephemeral_owner
            assert owner == other.session_id
            await zk.exists(f"{ROOT}/t/me", watch=True)
        assert [await event_of(zk, NodeEvent) for _ in range(3)] == [
            NodeEvent(f"{ROOT}/t/a", Kind.CHANGED),
            NodeEvent(f"{ROOT}/t", Kind.CHILDREN),
            NodeEvent(f"{ROOT}/t/me", Kind.DELETED),
        ]
        change = [Create(f"{ROOT}/t/b"), Check(f"{ROOT}/t/a", 1), Delete(f"{ROOT}/t/b")]
        if version == WITHOUT_MULTI:
            with pytest.raises(UnsupportedVersionError):
                await zk.multi(change)
        else:
            assert await zk.multi(change) == [f"{ROOT}/t/b", None, None]
        for path in (f"{ROOT}/t/a", f"{ROOT}/t", ROOT):
            await zk.delete(path)
        with pytest.raises(NoNodeError, match="chroot"):
            await ZooKeeper(address + ROOT).__aenter__()
