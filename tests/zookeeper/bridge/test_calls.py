"""What the bridge's calls do, against the embedded server."""

from __future__ import annotations

import os
import threading

import anyio
import pytest

from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.errors import (
    BadVersionError,
    ClosedError,
    ConfigError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    UnsupportedVersionError,
    ZooKeeperError,
)
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Connected, Kind, NodeEvent
from pykafka08.zookeeper.operations import CREATOR_ONLY, CREATOR_WRITES, OPEN, Check, Create, Delete, Stat, Write
from tests.zookeeper.bridge.waiting import LONG_SESSION_MS, event_of, until

pytestmark = pytest.mark.anyio


def open_descriptors() -> int:
    """0 where that cannot be counted."""
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


def client(server: EmbeddedZooKeeper, chroot: str = "", **settings: object) -> ZooKeeper:
    return ZooKeeper(server.address + chroot, **{"session_timeout_ms": LONG_SESSION_MS, **settings})


async def test_a_node_is_made_read_written_and_deleted() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        assert await zk.create("/a", b"1") == "/a"
        data, stat = await zk.read("/a")
        assert (data, stat.version, stat.ephemeral_owner, stat.children) == (b"1", 0, 0, 0)
        assert (await zk.write("/a", b"2", version=0)).version == 1
        with pytest.raises(BadVersionError, match="/a") as failed:
            await zk.write("/a", b"3", version=0)
        assert failed.value.path == "/a"
        with pytest.raises(BadVersionError):
            await zk.delete("/a", version=5)
        await zk.delete("/a", version=1)
        assert await zk.exists("/a") is None
        for call in (zk.read("/a"), zk.children("/a"), zk.write("/a", b""), zk.delete("/a"), zk.create("/a/b")):
            with pytest.raises(NoNodeError, match="/a"):
                await call


async def test_a_node_that_exists_and_one_with_children() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        await zk.create("/a/b/c", b"x", make_parents=True)
        assert server.dump() == {"/a": b"", "/a/b": b"", "/a/b/c": b"x"}
        await zk.create("/a/b/d", make_parents=True)
        with pytest.raises(NodeExistsError):
            await zk.create("/a/b/c", make_parents=True)
        with pytest.raises(NotEmptyError):
            await zk.delete("/a/b")
        assert await zk.children("/a/b") == ["c", "d"]
        await zk.create("/e", ephemeral=True)
        with pytest.raises(ZooKeeperError, match="ephemeral"):
            await zk.create("/e/child")


async def test_numbers_of_sequential_nodes() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        await zk.create("/changes")
        made = [await zk.create("/changes/c_", sequence=True) for _ in range(3)]
        assert made == [f"/changes/c_{number:010d}" for number in range(3)]


async def test_ephemeral_nodes_end_with_the_client() -> None:
    async with EmbeddedZooKeeper() as server:
        async with client(server) as zk:
            await zk.create("/ids/me", b"", ephemeral=True, make_parents=True)
            assert server.ephemeral_owner("/ids/me") == zk.session_id
            assert list(server.sessions) == [zk.session_id]
        assert server.paths() == ["/ids"]
        assert not server.sessions


async def test_several_operations_are_one() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        await zk.create("/a", b"")
        results = await zk.multi([Create("/b", b"1"), Write("/a", b"2"), Check("/a", 1), Delete("/b")])
        assert results[0] == "/b"
        assert isinstance(results[1], Stat)
        assert results[2:] == [None, None]
        with pytest.raises(NoNodeError) as failed:
            await zk.multi([Create("/c"), Write("/a", b"3"), Delete("/nothing"), Create("/d")])
        assert failed.value.path == "/nothing"
        assert server.dump() == {"/a": b"2"}


async def test_several_operations_before_there_were_any() -> None:
    async with EmbeddedZooKeeper(release="3.3") as server, client(server) as zk:
        with pytest.raises(UnsupportedVersionError, match=r"3\.4"):
            await zk.multi([Create("/c")])
        assert await zk.exists("/c") is None


async def test_paths_are_below_the_chroot() -> None:
    async with EmbeddedZooKeeper() as server:
        server.create("/kafka/main")
        async with client(server, "/kafka/main") as zk:
            assert await zk.create("/brokers/ids/1", b"{}", make_parents=True) == "/brokers/ids/1"
            assert server.read("/kafka/main/brokers/ids/1") == b"{}"
            assert await zk.children("/") == ["brokers"]
            assert await zk.exists("/brokers/ids/1", watch=True) is not None
            assert await zk.children("/", watch=True) == ["brokers"]
            server.write("/kafka/main/brokers/ids/1", b"")
            assert await event_of(zk, NodeEvent) == NodeEvent("/brokers/ids/1", Kind.CHANGED)
            server.create("/kafka/main/new")
            assert await event_of(zk, NodeEvent) == NodeEvent("/", Kind.CHILDREN)
            assert await zk.multi([Create("/m")]) == ["/m"]
            with pytest.raises(NoNodeError) as failed:
                await zk.read("/none")
            assert failed.value.path == "/none"


async def test_watches_fire_once_in_the_order_of_the_changes() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        server.create("/t/a", b"")
        await zk.children("/t", watch=True)
        await zk.read("/t/a", watch=True)
        await zk.exists("/t/b", watch=True)
        await zk.exists("/t/b", watch=True)
        server.write("/t/a", b"1")
        server.create("/t/b")
        server.write("/t/a", b"2")
        server.delete("/t/b")
        await zk.exists("/t/a", watch=True)
        await zk.children("/t/a", watch=True)
        server.delete("/t/a")
        await zk.create("/last")
        events = []
        while (event := zk.next_event_nowait()) is not None:
            events.append(event)
        assert events == [
            Connected(zk.session_id or 0, is_new=True),
            NodeEvent("/t/a", Kind.CHANGED),
            NodeEvent("/t/b", Kind.CREATED),
            NodeEvent("/t", Kind.CHILDREN),
            NodeEvent("/t/a", Kind.DELETED),
        ]


async def test_no_event_in_time() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        await event_of(zk, Connected)
        assert await zk.next_event(0.01) is None
        assert await zk.next_event(0) is None


async def test_access_lists() -> None:
    async with EmbeddedZooKeeper() as server:
        me = [("digest", "me:secret")]
        async with client(server, auth=me, acl=CREATOR_WRITES) as mine, client(server) as other:
            await mine.create("/shared", b"1")
            await mine.create("/mine", b"1", acl=CREATOR_ONLY)
            await mine.create("/open", b"1", acl=OPEN)
            assert [each.scheme for each in await mine.acl("/shared")] == ["digest", "world"]
            assert "secret" not in repr(await mine.acl("/shared"))
            assert (await other.read("/shared")).data == b"1"
            await other.write("/open", b"2")
            for call in (other.write("/shared", b"2"), other.read("/mine"), other.create("/mine/x")):
                with pytest.raises(NoAuthError):
                    await call
            with pytest.raises(NoAuthError):
                await other.create("/nobody", acl=CREATOR_ONLY)
            await mine.write("/mine", b"2")


async def test_thousands_of_calls_park_no_thread() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        await zk.create("/a")
        threads = threading.active_count()
        most = 0
        done = 0

        async def ask() -> None:
            nonlocal done, most
            most = max(most, threading.active_count())
            await zk.exists("/a")
            done += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(ask)
        assert done == 1000
        assert most <= threads


async def test_who_stops_waiting_leaves_nothing_behind() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        server.hold_answers()
        for _ in range(300):
            with anyio.move_on_after(0):
                await zk.exists("/")
        with anyio.move_on_after(0.05) as scope:
            await zk.exists("/")
        assert scope.cancelled_caught
        server.release_answers()
        assert await zk.exists("/") is not None
        assert not zk._driver._waiting
        assert not zk._driver._outbox


async def test_closing_leaves_no_thread_and_no_socket() -> None:
    async with EmbeddedZooKeeper() as server:
        counts: list[int] = []
        for _ in range(4):
            async with client(server) as zk:
                await zk.exists("/")
            names = [each.name for each in threading.enumerate()]
            assert not [name for name in names if "zookeeper" in name]
            await until(lambda: not server.connections)
            counts.append(open_descriptors())
        await until(lambda: open_descriptors() <= counts[0])  # a socket that is closed may take a turn of the loop
        with pytest.raises(ClosedError):
            await zk.exists("/")
        with pytest.raises(ClosedError):
            await zk.next_event()
        await zk.aclose()


async def test_bad_arguments_are_refused_before_anything_is_sent() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        for path in ("a", "", "/a/", "//a", "/a/../b", "/a\0b"):
            with pytest.raises(ConfigError):
                await zk.read(path)
        with pytest.raises(ConfigError, match="bytes"):
            await zk.create("/a", "text")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="takes"):
            await zk.create("/a", bytes(2_000_000))
        assert await zk.exists("/") is not None
