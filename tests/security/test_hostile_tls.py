"""Clients and hostile TLS peers over real sockets: one typed error, in time, without much memory."""

from __future__ import annotations

import resource
import tracemalloc
from pathlib import Path

import anyio
import pytest

from pykafka08.config import ClientConfig, build
from pykafka08.connection.connection import Connection
from pykafka08.connection.secure_dial import dial_for
from pykafka08.driver import TaskTree
from pykafka08.errors import KafkaError
from pykafka08.security.tls_errors import DEMANDED
from tests.connection.peers import LOOPBACK, Caller, peer
from tests.security.authority import Authority
from tests.security.hostile_tls import CASES, LATE, MIB, Case

pytestmark = pytest.mark.anyio

SETUP_MS = 400
BOUND_S = 10
SHORT = [case for case in CASES if not case.waits]
WAITS = [case for case in CASES if case.waits]


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return ("asyncio", {"use_uvloop": True}) if request.param == "uvloop" else request.param


class World:
    """A trusted CA, and the certificate that a server has from it."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.folder = folder
        self.server = authority.issue(LOOPBACK)
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(authority.own.pem)

    async def error(self, case: Case, setup_ms: int) -> KafkaError:
        context = self.server.server_context(self.folder)
        context.maximum_version = case.newest

        async def play(caller: Caller) -> None:
            await case.play(caller, context)

        with anyio.fail_after(BOUND_S):
            async with peer(play) as address, TaskTree() as tasks:
                settings = {"bootstrap_servers": [f"{address[0]}:{address[1]}"], "security_protocol": "SSL"}
                settings |= {"ssl_cafile": str(self.ca_file), "socket_connection_setup_timeout_ms": setup_ms}
                (config,) = build(settings, ClientConfig)
                connection = Connection(config, address, tasks, dial=dial_for(config.security))
                try:
                    with pytest.raises(KafkaError) as caught:
                        await connection.wait_ready()
                finally:
                    await connection.aclose()
                    tasks.check()
        return caught.value

    async def check(self, case: Case) -> None:
        error = await self.error(case, SETUP_MS if case.waits else 1000 * BOUND_S)
        assert isinstance(error, case.errors)
        assert (DEMANDED in str(error)) is (case.says == DEMANDED)
        assert error.broker
        assert len(str(error)) < 1000
        text = f"{error} {error.__cause__}"
        assert case.says in text or (case.waits and any(late in text for late in LATE))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
async def test_a_hostile_peer_is_one_typed_error(case: Case, world: World) -> None:
    await world.check(case)


async def test_waiting_ends_with_the_set_up_time(world: World) -> None:
    async with anyio.create_task_group() as group:
        for case in WAITS:
            group.start_soon(world.check, case)


async def test_the_memory_stays_flat(world: World) -> None:
    """OpenSSL's own too, which tracemalloc does not see."""
    large = [case for case in SHORT if "flood" in case.name or "mib" in case.name]
    await world.check(large[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        for case in large:
            await world.check(case)
            assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 16 * MIB
