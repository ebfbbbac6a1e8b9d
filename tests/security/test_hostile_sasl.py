"""Clients and hostile SASL servers over real sockets: one typed error, in time, without secrets or much memory."""

from __future__ import annotations

import logging
import tracemalloc

import anyio
import pytest

from pykafka08.config import ClientConfig, build
from pykafka08.connection.connection import Connection
from pykafka08.driver import TaskTree
from pykafka08.errors import KafkaError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.security.sasl.login import login_of
from tests.connection.peers import peer
from tests.security.hostile_sasl import ENDS, FRAMES, HONEST, MESSAGES, MIB, PASSWORD, REFUSALS, WAITS, Case, Server

pytestmark = pytest.mark.anyio

SETUP_MS = 250
BOUND_S = 20


async def outcome(case: Case) -> KafkaError | None:
    """The error of a call on a new connection to the server.

    A time-out of the set-up is doubled until it does not end before the server has come to the step of its script: on a
    busy machine the client may be hashing the password until then.
    """
    setup_ms = SETUP_MS if case.waits else 1000 * BOUND_S
    while True:
        server = Server(case)
        error = await called(server, setup_ms)
        if not case.waits or case.script.keys() & set(server.seen):
            return error
        setup_ms *= 2


async def called(server: Server, setup_ms: int) -> KafkaError | None:
    case = server.case
    with anyio.fail_after(BOUND_S):
        async with peer(server.play) as address, TaskTree() as tasks:
            settings = {"bootstrap_servers": [f"{address[0]}:{address[1]}"], **case.credentials}
            (config,) = build({**settings, "socket_connection_setup_timeout_ms": setup_ms}, ClientConfig)
            connection = Connection(config, address, tasks, login=login_of(config.security))
            try:
                await connection.submit(MetadataRequest(topics=[]), timeout=BOUND_S)
            except KafkaError as error:
                return error
            else:
                return None
            finally:
                assert connection.is_open is (case.errors is None)
                await connection.aclose()
                tasks.check()


def check(case: Case, error: KafkaError | None) -> None:
    if case.errors is None:
        assert error is None
        return
    assert isinstance(error, case.errors)
    assert case.says in str(error)
    assert error.broker
    assert PASSWORD not in repr(error)
    assert len(str(error)) < 8000


async def check_with_logs(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="pykafka08"):
        check(case, await outcome(case))
    assert PASSWORD not in caplog.text
    assert not [record for record in caplog.records if PASSWORD in repr(vars(record))]


@pytest.mark.parametrize("case", [*HONEST, *REFUSALS, *ENDS, *FRAMES], ids=lambda case: case.name)
async def test_a_hostile_server_is_one_typed_error(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    await check_with_logs(case, caplog)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # sasl/test_scram.py has these messages on both event loops
@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.name)
async def test_a_wrong_message_is_one_typed_error(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    await check_with_logs(case, caplog)


async def test_silence_ends_with_the_set_up_time() -> None:
    errors: dict[str, KafkaError | None] = {}

    async def wait(case: Case) -> None:
        errors[case.name] = await outcome(case)

    async with anyio.create_task_group() as group:
        for case in WAITS:
            group.start_soon(wait, case)
    for case in WAITS:
        check(case, errors[case.name])


async def test_the_memory_stays_flat() -> None:
    tracemalloc.start()
    try:
        for case in FRAMES:
            if "zeros" in case.name or "size" in case.name:
                await outcome(case)
                assert tracemalloc.get_traced_memory()[1] < 12 * MIB
    finally:
        tracemalloc.stop()
