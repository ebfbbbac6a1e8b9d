"""Clients against hostile SASL servers over real sockets: one typed error, in time, and the memory stays flat."""

from __future__ import annotations

import pytest

from pykafka08.connection.connection import Connection
from pykafka08.driver import TaskTree
from pykafka08.errors import KafkaError
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.security.sasl.login import login_of
from tests.connection.peers import peer
from tests.security.hostile_sasl import CASES, Case, Server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_case(case: Case) -> None:
    server = Server(case)
    async with peer(server.play) as address, TaskTree() as tasks:
        from pykafka08.config import ClientConfig, build

        (settings,) = build(
            {"bootstrap_servers": "%s:%d" % address, "socket_connection_setup_timeout_ms": 300, **case.credentials},
            ClientConfig,
        )
        connection = Connection(settings, address, tasks, login=login_of(settings.security))
        call = connection.submit(MetadataRequest(topics=[]), timeout=5)
        try:
            await call
            result = None
        except KafkaError as e:
            result = e
        await connection.aclose()
        tasks.check()
    if case.error is None:
        assert result is None, result
    else:
        assert type(result) is case.error, (type(result), result)
        assert case.says in str(result), str(result)
