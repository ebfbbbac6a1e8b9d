"""When a connection is dialled: after a reconnect backoff, and in full time however long ago that backoff ended."""

from __future__ import annotations

import anyio
import pytest

from pykafka08.clock import clock
from pykafka08.connection.connection import Connection
from pykafka08.driver import TaskTree
from tests.connection.peers import Caller, config, peer

pytestmark = pytest.mark.anyio


async def test_a_backoff_that_ended_long_ago_leaves_the_whole_set_up_time() -> None:
    async def play(caller: Caller) -> None:
        await caller.serve("4.3")

    async with peer(play) as address, TaskTree() as tasks:
        settings = config(socket_connection_setup_timeout_ms=10_000)
        connection = Connection(settings, address, tasks, dial_at=clock()() - 60)
        with anyio.fail_after(20):
            assert (await connection.wait_ready()).release_guess == "4.3"
        await connection.aclose()
