"""Servers that turn hostile when a SASL session is renewed: every call ends soon, with its answer or a typed error."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from pykafka08.cluster.client import Client
from pykafka08.config import ClientConfig, build
from pykafka08.connection.connection import Connection
from pykafka08.driver import TaskTree
from pykafka08.errors import KafkaError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.security.sasl.login import login_of
from tests.connection.peers import Address, peer
from tests.security.hostile_sasl import MIB, PASSWORD, RENEWALS, Case, Server

pytestmark = pytest.mark.anyio

SETUP_MS = 250
BOUND_S = 60
CALLERS = 3
SHORT = [case for case in RENEWALS if not case.waits]
WAITS = [case for case in RENEWALS if case.waits]
ASK = MetadataRequest(topics=[])


def config_for(server: Server, address: Address, setup_ms: int) -> ClientConfig:
    settings = {"bootstrap_servers": [f"{address[0]}:{address[1]}"], **server.case.credentials}
    (config,) = build({**settings, "socket_connection_setup_timeout_ms": setup_ms}, ClientConfig)
    return config


@asynccontextmanager
async def connected(server: Server, setup_ms: int) -> AsyncIterator[Connection]:
    async with peer(server.play) as address, TaskTree() as tasks:
        config = config_for(server, address, setup_ms)
        connection = Connection(config, address, tasks, login=login_of(config.security))
        try:
            yield connection
        finally:
            await connection.aclose()
            tasks.check()


async def errors_of(case: Case, setup_ms: int) -> tuple[list[KafkaError], Server]:
    """The errors that end repeated calls; an honest server renews three times first."""
    server = Server(case)
    errors: list[KafkaError] = []

    async def ask(connection: Connection) -> None:
        while case.errors is not None or server.renewed < 3:
            try:
                await connection.submit(ASK, timeout=10 * BOUND_S)
            except KafkaError as error:
                errors.append(error)
                return

    with anyio.fail_after(BOUND_S):
        async with connected(server, setup_ms) as connection, anyio.create_task_group() as group:
            for _ in range(CALLERS):
                group.start_soon(ask, connection)
    return errors, server


async def check(case: Case) -> None:
    """A time-out is doubled until the set-up itself does not need it, as on a busy machine."""
    setup_ms = SETUP_MS if case.waits else 1000 * BOUND_S
    errors, server = await errors_of(case, setup_ms)
    while case.waits and not server.played:
        setup_ms *= 2
        errors, server = await errors_of(case, setup_ms)
    if case.errors is None:
        assert errors == []
        return
    assert len(errors) == CALLERS
    for error in errors:
        assert isinstance(error, case.errors)
        assert case.says in str(error)
        assert error.broker
        assert PASSWORD not in repr(error)
        assert len(str(error)) < 8000


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
async def test_a_hostile_renewal_is_one_typed_error(case: Case) -> None:
    await check(case)


async def test_silence_in_a_renewal_ends_with_the_set_up_time() -> None:
    async with anyio.create_task_group() as group:
        for case in WAITS:
            group.start_soon(check, case)


async def test_the_memory_stays_flat() -> None:
    large = [case for case in SHORT if "zeros" in case.name or "size" in case.name or "token" in case.name]
    tracemalloc.start()
    try:
        for case in large:
            await check(case)
            assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


async def test_calls_of_a_client_are_answered_by_the_next_connection() -> None:
    """None is lost, whatever ends the renewal."""

    async def ask(case: Case) -> None:
        server = Server(case)
        setup_ms = 2000  # a busy machine may take long for all cases at once
        async with peer(server.play) as address:
            async with Client(config_for(server, address, setup_ms)) as client:
                answers = 0
                while answers < 3 or not server.played:
                    answer = await client.request_any(ASK, timeout=BOUND_S)
                    assert answer.brokers
                    answers += 1

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            for case in RENEWALS:
                if case.script:
                    group.start_soon(ask, case)
