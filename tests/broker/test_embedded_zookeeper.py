"""The embedded ZooKeeper: sessions in virtual time, nodes that are undone, its plain calls and its faults."""

from __future__ import annotations

import socket

import anyio.to_thread
import pytest

from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.broker.zookeeper.access import OPEN
from pykafka08.broker.zookeeper.codes import ErrorCode, EventType, Fault
from pykafka08.broker.zookeeper.sessions import Sessions
from pykafka08.broker.zookeeper.tree import EPHEMERAL, MultiFault, Tree
from pykafka08.errors import BadVersionError, ConfigError, NodeExistsError, NoNodeError, ZooKeeperError


def test_a_session_ends_at_the_tick_after_its_time_out() -> None:
    sessions = Sessions(tick=2.0, least=4.0, most=40.0)
    session = sessions.open(timeout=6.0, now=1.0)
    assert sessions.next_expiry() == 8.0
    assert sessions.due(7.9) == []
    sessions.touch(session.id, 3.5)
    assert sessions.due(8.0) == []
    assert sessions.due(10.0) == [session.id]
    assert sessions.resume(session.id, session.password, 9.0) is session
    assert sessions.next_expiry() == 16.0
    assert sessions.resume(session.id, b"x" * 16, 9.0) is None
    assert sessions.close(session.id)
    assert not sessions.close(session.id)
    assert sessions.next_expiry() is None


def test_time_outs_are_held_within_bounds_and_begin_anew_with_the_server() -> None:
    sessions = Sessions(tick=1.0, least=4.0, most=40.0)
    assert [sessions.open(timeout, 0.0).timeout for timeout in (0.1, 5.0, 1000.0)] == [4.0, 5.0, 40.0]
    sessions.restarted(100.0)
    assert sessions.due(104.0) == []
    lasting = sessions.open_lasting()
    assert lasting.id not in sessions.due(1e12)


def test_changes_that_are_refused_are_undone_and_not_told() -> None:
    told: list[tuple[EventType, str]] = []
    tree = Tree(lambda kind, path: told.append((kind, path)))
    tree.change(lambda: tree.create("/a", b"1", OPEN, 0, 0))
    tree.change(lambda: tree.create("/a/e", b"", OPEN, EPHEMERAL, 5))
    told.clear()
    before = {path: (node.data, node.stat) for path, node in tree.nodes.items()}
    with pytest.raises(MultiFault) as failed:
        tree.change_all(
            [
                lambda: tree.create("/a/b", b"", OPEN, EPHEMERAL, 5),
                lambda: tree.write("/a", b"2", 0),
                lambda: tree.delete("/a/e", -1),
                lambda: tree.check("/a", 7),
            ]
        )
    assert (failed.value.index, failed.value.code) == (3, ErrorCode.BAD_VERSION)
    assert {path: (node.data, node.stat) for path, node in tree.nodes.items()} == before
    assert tree.ephemerals(5) == ["/a/e"]
    assert told == []
    tree.change(lambda: tree.drop_session(5))
    assert told == [(EventType.DELETED, "/a/e"), (EventType.CHILDREN, "/a")]
    with pytest.raises(Fault):
        tree.find("/a/e")


@pytest.mark.anyio
async def test_plain_calls() -> None:
    async with EmbeddedZooKeeper() as server:
        told: list[tuple[EventType, str]] = []
        end = server.observe(lambda kind, path: told.append((kind, path)))
        assert server.create("/a/b", b"1") == "/a/b"
        server.write("/a/b", b"2", version=0)
        assert (server.read("/a/b"), server.children("/a"), server.ephemeral_owner("/a/b")) == (b"2", ["b"], 0)
        assert server.paths() == ["/a", "/a/b"]
        assert server.paths("/a") == ["/a/b"]
        with pytest.raises(BadVersionError):
            server.write("/a/b", b"3", version=0)
        with pytest.raises(NodeExistsError):
            server.create("/a")
        with pytest.raises(ZooKeeperError, match="NOT_EMPTY"):
            server.delete("/a")
        server.delete("/a", recursive=True)
        with pytest.raises(NoNodeError):
            server.read("/a")
        end()
        session = server.open_session()
        server.create("/me", session_id=session)
        assert server.ephemeral_owner("/me") == session
        server.expire_session(session)
        assert server.dump() == {}
        with pytest.raises(ConfigError):
            server.expire_session(session)
        assert told[:3] == [(EventType.CREATED, "/a"), (EventType.CHILDREN, "/"), (EventType.CREATED, "/a/b")]
        assert (EventType.DELETED, "/a") in told


@pytest.mark.anyio
async def test_it_comes_back_with_its_nodes_at_its_port() -> None:
    async with EmbeddedZooKeeper() as server:
        address = server.address
        server.create("/a", b"1")
        await server.stop()
        assert not server.is_running
        with pytest.raises(ConfigError):
            await server.stop()
        await server.start()
        assert (server.address, server.dump()) == (address, {"/a": b"1"})
        with pytest.raises(ConfigError):
            await server.start()


def four_letters(port: int, word: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as asked:
        asked.sendall(word)
        said = b""
        while part := asked.recv(4096):
            said += part
    return said.decode()


@pytest.mark.anyio
async def test_four_letters() -> None:
    words = ("ruok", "srvr", "stat", "mntr", "dump", "envi", "isro")
    async with EmbeddedZooKeeper(four_letter_words=words) as server:
        session = server.open_session()
        server.create("/me", session_id=session)

        async def ask(word: str) -> str:
            return await anyio.to_thread.run_sync(four_letters, server.port, word.encode())

        assert await ask("ruok") == "imok"
        assert await ask("isro") == "rw"
        assert "zk_ephemerals_count\t1\n" in await ask("mntr")
        assert f"{session:#x}" in await ask("dump")
        assert "/me" in await ask("dump")
        assert "Clients:" in await ask("stat")
        assert "zookeeper.version=3.8.4" in await ask("envi")
    async with EmbeddedZooKeeper() as server:
        assert "not in the whitelist" in await ask("ruok")
        assert "Zookeeper version: 3.8.4" in await ask("srvr")


@pytest.mark.parametrize(
    "settings",
    [{"release": "2.0"}, {"port": -1}, {"tick_ms": 0}, {"min_session_timeout_ms": 90_000}, {"host": "8.8.8.8"}],
)
def test_settings_that_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        EmbeddedZooKeeper(**settings)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_a_fault_that_there_is_not() -> None:
    async with EmbeddedZooKeeper() as server:
        with pytest.raises(ConfigError, match="get_data"):
            server.lose_answer("nonsense")
