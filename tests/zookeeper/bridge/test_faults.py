"""What the bridge does when ZooKeeper, or the way to it, fails."""

from __future__ import annotations

import logging
import time

import anyio
import anyio.abc
import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.errors import (
    NoNodeError,
    SessionExpiredError,
    ZooKeeperAuthError,
    ZooKeeperConnectionError,
)
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Connected, Kind, NodeEvent, SessionLost, Suspended
from pykafka08.zookeeper.kazoo_session import Call
from pykafka08.zookeeper.requests import Request
from tests.zookeeper.bridge.waiting import LONG_SESSION_MS, event_of, until

pytestmark = pytest.mark.anyio

SESSION_MS = 2000
"""For tests that wait for the end of a session."""


def client(server: EmbeddedZooKeeper, **settings: object) -> ZooKeeper:
    long = {"session_timeout_ms": LONG_SESSION_MS, "connection_timeout_ms": LONG_SESSION_MS}
    return ZooKeeper(server.address, **{**long, **settings})


# -- the session


async def test_a_server_that_is_stopped_for_longer_than_the_session() -> None:
    async with EmbeddedZooKeeper() as server, client(server, session_timeout_ms=SESSION_MS) as zk:
        await event_of(zk, Connected)
        await zk.create("/me", b"", ephemeral=True)
        first, number, served = zk.session_id, zk.session_number, server.requests_served
        server.hold_answers()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_in_vain, zk, "/me")
            await until(lambda: server.requests_served > served)
            await server.stop()
            server.release_answers()
        await event_of(zk, Suspended)
        await event_of(zk, SessionLost)
        assert (zk.session_id, zk.session_number) == (None, number + 1)
        assert not zk.is_session_sure(number)
        assert "no connection" in (zk.trouble or "")
        assert server.ephemeral_owner("/me") == first  # the server knows nothing of it yet
        await server.start()
        connected = await event_of(zk, Connected)
        assert connected.is_new
        assert connected.session_id != first
        assert zk.trouble is None
        # Nothing is left of the lost session, though the server would have kept it.
        await until(lambda: list(server.sessions) == [zk.session_id])
        assert not server.exists("/me")


async def test_a_session_that_ends_while_it_is_opened_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedZooKeeper() as server:
        zk = client(server)
        send, ended = zk._driver.send, []

        def first_ends(request: Request, path: str | None) -> Call:
            if ended:
                return send(request, path)
            call = Call(request, path)
            ended.append(call)
            call.answer.set_exception(SessionExpiredError("the ZooKeeper session is over", path=path))
            return call

        monkeypatch.setattr(zk._driver, "send", first_ends)
        async with zk:
            assert await zk.exists("/")
        assert len(ended) == 1


async def read_in_vain(zk: ZooKeeper, path: str) -> None:
    with pytest.raises(SessionExpiredError, match=path):
        await zk.read(path, timeout=60)


async def test_a_server_that_is_paused_for_longer_than_the_session() -> None:
    async with EmbeddedZooKeeper() as server, client(server, session_timeout_ms=SESSION_MS) as zk:
        await event_of(zk, Connected)
        await zk.create("/me", b"", ephemeral=True)
        number = zk.session_number
        server.pause()
        await event_of(zk, Suspended)
        lost = await event_of(zk, SessionLost)
        assert lost.at <= time.monotonic()
        server.resume()
        assert (await event_of(zk, Connected)).is_new
        await until(lambda: not server.exists("/me"))
        assert zk.session_number > number


async def test_a_cut_shorter_than_the_session() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        connected = await event_of(zk, Connected)
        server.create("/t/a")
        await zk.create("/me", b"", ephemeral=True)
        await zk.children("/t", watch=True)
        await zk.read("/t/a", watch=True)
        server.cut()
        await event_of(zk, Suspended)
        assert await event_of(zk, Connected) == Connected(connected.session_id, is_new=False)
        # The watches went with the connection: whoever waits for them is told to look again.
        assert [zk.next_event_nowait(), zk.next_event_nowait()] == [
            NodeEvent("/t", Kind.CHILDREN),
            NodeEvent("/t/a", Kind.CHANGED),
        ]
        assert (zk.session_number, server.ephemeral_owner("/me")) == (1, connected.session_id)


async def test_the_server_ends_the_session() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        connected = await event_of(zk, Connected)
        await zk.create("/me", b"", ephemeral=True)
        server.expire_session(connected.session_id)
        await event_of(zk, SessionLost)
        again = await event_of(zk, Connected)
        assert again.is_new
        assert again.session_id != connected.session_id
        assert zk.session_number == 2
        await zk.create("/me", b"", ephemeral=True)


async def test_calls_of_a_session_end_with_it() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        await zk.create("/a")
        server.hold_answers()
        ends: list[bool] = []

        async def call() -> None:
            with pytest.raises(ZooKeeperConnectionError) as failed:
                await zk.write("/a", b"late", timeout=60)
            ends.append(failed.value.may_be_written)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await until(lambda: server.read("/a") == b"late")
            server.expire_session(zk.session_id or 0)
            server.release_answers()
        assert ends == [True]
        assert (await event_of(zk, SessionLost)) is not None


async def test_a_loop_that_stood_still_is_sure_of_nothing() -> None:
    async with EmbeddedZooKeeper() as server, client(server, session_timeout_ms=SESSION_MS) as zk:
        await event_of(zk, Connected)
        number = zk.session_number
        time.sleep(max(0.0, zk.delivery_deadline - time.monotonic()))  # noqa: ASYNC251 - that is the fault
        assert not zk.is_session_sure(number)
        await until(lambda: zk.is_session_sure(zk.session_number))


# -- calls


async def test_a_lost_answer_to_the_creation_of_an_ephemeral_node() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        server.create("/ids")
        server.lose_answer("create")
        assert await zk.create("/ids/me", b"1", ephemeral=True) == "/ids/me"
        assert server.ephemeral_owner("/ids/me") == zk.session_id
        server.lose_answer("create")
        with pytest.raises(ZooKeeperConnectionError) as failed:
            await zk.create("/ids/other", b"1")
        assert failed.value.may_be_written
        assert server.exists("/ids/other")


async def test_a_lost_answer_to_a_read() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        server.create("/a", b"1")
        for operation in ("get_data", "exists", "get_children"):
            server.lose_answer(operation)
        assert (await zk.read("/a")).data == b"1"
        assert await zk.exists("/a") is not None
        assert await zk.children("/a") == []


async def test_a_change_that_has_not_left_never_leaves_once_its_time_is_over() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        server.create("/a", b"1")
        await event_of(zk, Connected)
        await server.stop()
        await event_of(zk, Suspended)
        with pytest.raises(ZooKeeperConnectionError, match="no connection") as failed:
            await zk.write("/a", b"late", timeout=0.05)
        assert not failed.value.may_be_written
        await server.start()
        await event_of(zk, Connected)
        assert (await zk.read("/a")).data == b"1"


async def test_calls_wait_for_a_connection() -> None:
    async with EmbeddedZooKeeper() as server, client(server) as zk:
        server.create("/a", b"1")
        await event_of(zk, Connected)
        await server.stop()
        await event_of(zk, Suspended)

        async def come_back() -> None:
            await server.start()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(come_back)
            assert (await zk.read("/a", timeout=60)).data == b"1"


# -- opening


async def opening_fails(kind: type[Exception], address: str, match: str, **settings: object) -> Exception:
    started = time.monotonic()
    zk = ZooKeeper(address, **settings)
    with pytest.raises(kind, match=match) as failed:
        await zk.__aenter__()
    assert time.monotonic() - started < 30
    return failed.value


async def test_nobody_listens() -> None:
    async with EmbeddedZooKeeper() as server:
        address = server.address
        await server.stop()
        error = await opening_fails(ZooKeeperConnectionError, address, "refused", connection_timeout_ms=1500)
        assert isinstance(error, ZooKeeperConnectionError)
        assert list(error.causes) == [address]


async def test_a_name_that_nobody_knows() -> None:
    await opening_fails(ZooKeeperConnectionError, "no.such.host.invalid", "not known", connection_timeout_ms=20_000)


async def test_the_chroot_is_missing() -> None:
    async with EmbeddedZooKeeper() as server:
        error = await opening_fails(NoNodeError, server.address + "/kafka", "chroot")
        assert isinstance(error, NoNodeError)
        assert error.path == "/kafka"
        await until(lambda: not server.sessions)


@pytest.mark.parametrize("version", ["0.8.2", "4.3"])
async def test_the_port_of_a_broker(version: str) -> None:
    async with EmbeddedCluster(version=version) as cluster:
        await opening_fails(
            ZooKeeperConnectionError, cluster.bootstrap_servers, "is a Kafka broker", connection_timeout_ms=20_000
        )


async def test_the_port_of_something_else() -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, answer)
            await opening_fails(
                ZooKeeperConnectionError, f"127.0.0.1:{port}", "not ZooKeeper's", connection_timeout_ms=3000
            )
            tasks.cancel_scope.cancel()


async def test_refused_credentials() -> None:
    async with EmbeddedZooKeeper() as server:
        server.refuse_credentials()
        await opening_fails(
            ZooKeeperAuthError, server.address, "refused", auth=[("digest", "me:s3cret")], connection_timeout_ms=60_000
        )


async def test_credentials_that_are_refused_later() -> None:
    async with EmbeddedZooKeeper() as server, client(server, auth=[("digest", "me:s3cret")]) as zk:
        await event_of(zk, Connected)
        server.refuse_credentials()
        server.cut()
        with pytest.raises(ZooKeeperAuthError):
            await event_of(zk, NodeEvent)
        with pytest.raises(ZooKeeperAuthError):
            await zk.exists("/")
        assert "refused" in (zk.trouble or "")


async def test_no_secret_in_any_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    for name in ("kazoo", "kazoo.client", "kazoo.protocol.connection", "pykafka08"):
        caplog.set_level(1, logger=name)
    async with EmbeddedZooKeeper() as server:
        settings = {"auth": [("digest", "me:s3cret")]}
        async with client(server, **settings) as zk:
            await event_of(zk, Connected)
            await zk.create("/a", b"")
            server.cut()
            await event_of(zk, Connected)
            await zk.read("/a")
        server.refuse_credentials()
        await opening_fails(ZooKeeperAuthError, server.address, "refused", **settings)
    texts = [record.getMessage() + repr(record.__dict__) for record in caplog.records]
    assert [text for text in texts if "onnect" in text]
    assert not [text for text in texts if "s3cret" in text]
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_closing_while_the_server_is_silent() -> None:
    async with EmbeddedZooKeeper() as server:
        zk = client(server)
        await zk.__aenter__()
        await zk.create("/me", b"", ephemeral=True)
        server.pause()
        with anyio.fail_after(30):
            await zk.aclose()


async def test_opening_is_given_up() -> None:
    async with EmbeddedZooKeeper() as server:
        server.pause()
        zk = client(server)
        with anyio.move_on_after(0.2) as scope:
            await zk.__aenter__()
        assert scope.cancelled_caught
        server.resume()
        await until(lambda: server.connections == 0)
