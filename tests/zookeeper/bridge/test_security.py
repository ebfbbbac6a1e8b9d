"""SASL and TLS of the bridge.  The certificate in ``data`` is valid for "localhost" alone, and signed by itself."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
import trustme

from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.errors import NoAuthError, ZooKeeperAuthError, ZooKeeperConnectionError
from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Connected, Suspended
from pykafka08.zookeeper.operations import CREATOR_ONLY
from tests.zookeeper.bridge.tls_front import CERTIFICATE, TlsFront
from tests.zookeeper.bridge.waiting import LONG_SESSION_MS, event_of

pytestmark = pytest.mark.anyio


def client(address: str, **settings: Any) -> ZooKeeper:
    return ZooKeeper(address, **{"session_timeout_ms": LONG_SESSION_MS, **settings})


async def fails(kind: type[Exception], match: str, address: str, **settings: Any) -> None:
    started = time.monotonic()
    with pytest.raises(kind, match=match) as failed:
        await client(address, **settings).__aenter__()
    assert "s3cret" not in str(failed.value) + repr(failed.value)
    assert time.monotonic() - started < 25


async def test_sasl() -> None:
    bob = {"sasl_mechanism": "DIGEST-MD5", "sasl_username": "bob", "sasl_password": "s3cret"}
    async with EmbeddedZooKeeper(users={"bob": "s3cret"}) as server:
        async with client(server.address, **bob) as mine, client(server.address) as other:
            await event_of(mine, Connected)
            await mine.create("/mine", b"1", acl=CREATOR_ONLY)
            assert [(each.scheme, each.identity) for each in await mine.acl("/mine")] == [("sasl", "bob")]
            with pytest.raises(NoAuthError):
                await other.read("/mine")
            server.cut(mine.session_id)
            await event_of(mine, Suspended)
            await event_of(mine, Connected)
            assert (await mine.read("/mine")).data == b"1"
        await fails(ZooKeeperAuthError, "refused", server.address, **{**bob, "sasl_password": "other"})
        await fails(ZooKeeperAuthError, "refused", server.address, **{**bob, "sasl_username": "eve"})


async def test_tls() -> None:
    ours = {"tls": True, "tls_ca_file": CERTIFICATE}
    async with EmbeddedZooKeeper() as server:
        with TlsFront(server.port) as port:
            async with client(f"localhost:{port}", **ours) as zk:
                await zk.create("/a", b"x" * 500_000)
                async with anyio.create_task_group() as tasks:
                    for _ in range(50):
                        tasks.start_soon(zk.exists, "/a")
                assert len((await zk.read("/a")).data) == 500_000
            await fails(ZooKeeperConnectionError, "certificate", f"127.0.0.1:{port}", **ours)
            await fails(ZooKeeperConnectionError, "certificate", f"localhost:{port}", tls=True)
            async with client(f"127.0.0.1:{port}", tls_insecure_skip_hostname_check=True, **ours) as zk:
                assert await zk.exists("/a") is not None
        await fails(ZooKeeperConnectionError, "no TLS", server.address, connection_timeout_ms=2000, **ours)


async def test_files_that_change_are_read_for_the_next_connection(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    file = tmp_path / "ca.pem"
    file.write_bytes(old.cert_pem.bytes())
    async with EmbeddedZooKeeper() as server:
        front = TlsFront(server.port, old.issue_cert("localhost"))
        with front as port:
            async with client(f"localhost:{port}", tls=True, tls_ca_file=str(file)) as zk:
                await event_of(zk, Connected)
                front.use(new.issue_cert("localhost"))
                file.write_bytes(b"half of a file")
                server.cut(zk.session_id)
                await event_of(zk, Suspended)
                file.write_bytes(new.cert_pem.bytes())
                await event_of(zk, Connected)
                assert await zk.children("/") == ["zookeeper"]
