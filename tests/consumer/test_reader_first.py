"""Who is first after an answer: the reader of a few records, the next fetch where there are many."""

from __future__ import annotations

import logging

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, Producer
from pykafka08.consumer.fetcher import HURRIED_BYTES
from tests.consumer.embedded import DEADLINE_S, fill, read

# trio shuffles the tasks that are due in one turn.
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


def last_event(caplog: pytest.LogCaptureFixture) -> str:
    events = [vars(record).get("event") for record in caplog.records]
    return next(str(event) for event in reversed(events) if event in ("fetch.send", "fetch.answered"))


async def test_a_record_comes_before_the_next_fetch_is_made(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pykafka08.consumer")
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        Consumer("t", bootstrap_servers=cluster.bootstrap_servers) as consumer,
        Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer,
    ):
        with anyio.fail_after(DEADLINE_S):
            await producer.send("t", b"first")
            iterator = aiter(consumer)
            assert (await anext(iterator)).value == b"first"
            for number in range(5):
                async with anyio.create_task_group() as group:
                    group.start_soon(producer.send, "t", b"%d" % number)
                    record = await anext(iterator)
                    assert last_event(caplog) == "fetch.answered"
                assert record.value == b"%d" % number


async def test_the_next_fetch_is_sent_before_many_records_are_decoded(caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", [b"v" * 100] * (2 * HURRIED_BYTES // 100))
        caplog.set_level(logging.DEBUG, "pykafka08.consumer")
        async with Consumer("t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            await read(consumer, 1)
            assert last_event(caplog) == "fetch.send"
