"""A transactional request that is not answered or fails each time is reported within ten seconds, once."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from pykafka08 import EmbeddedCluster, ErrorCode, KafkaError, Producer, TopicPartition
from pykafka08.producer.transactions.actions import FindCoordinator, InitProducer, KeyType
from pykafka08.producer.transactions.trouble import REPORT_AFTER, TransactionTroubleWatch
from pykafka08.report_timer import REPORT_EVERY
from tests.test_request_storms import at_once
from tests.virtual_loop import VirtualLoop

LIMIT = 10.0
"""Seconds within which it is reported."""
ID = "the-id"
RELEASE = "3.9"
"""Producers on 4.x send neither AddPartitionsToTxn nor AddOffsetsToTxn."""
AT_START = ("FindCoordinator", "InitProducerId")

CASES = [
    ("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("InitProducerId", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("AddPartitionsToTxn", ErrorCode.CONCURRENT_TRANSACTIONS),
    ("AddOffsetsToTxn", ErrorCode.NOT_COORDINATOR),
    ("TxnOffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ("EndTxn", ErrorCode.COORDINATOR_NOT_AVAILABLE),
]


async def fails(api: str, answer: ErrorCode | None) -> tuple[Any, Any, str]:
    """The producer's health ``LIMIT`` seconds after the fault, its health after the transaction, and the address."""
    async with EmbeddedCluster(1, RELEASE, {"t": 1}) as cluster:
        producer = Producer(cluster.bootstrap_servers, transactional_id=ID, max_block_ms=20_000)
        found: list[Any] = []

        async def fail() -> None:
            if answer is None:
                cluster.faults.delay(api, LIMIT + 2, times=None)
            else:
                cluster.faults.answer(api, answer, times=None)
            await anyio.sleep(LIMIT)
            found.append(producer.health())
            cluster.faults.clear()

        async with anyio.create_task_group() as tasks:
            if api in AT_START:
                tasks.start_soon(fail)
                await anyio.lowlevel.checkpoint()
            async with producer:
                if api not in AT_START:
                    tasks.start_soon(fail)
                    await anyio.lowlevel.checkpoint()
                async with producer.transaction():
                    await producer.send("t", b"x")
                    await producer.send_offsets({TopicPartition("t", 0): 1}, group_id="g")
                found.append(producer.health())
        return *found, cluster.bootstrap_servers


@pytest.mark.parametrize("is_silent", [True, False], ids=["silent", "code"])
@pytest.mark.parametrize(("api", "code"), CASES)
def test_a_request_that_does_not_complete_is_reported(
    api: str,
    code: ErrorCode,
    is_silent: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)
    caplog.set_level(logging.WARNING, logger="pykafka08")
    loop = VirtualLoop()
    try:
        health, later, broker = loop.run_until_complete(fails(api, None if is_silent else code))
    finally:
        loop.close()
    (warning,) = caplog.records
    assert warning.getMessage().startswith("transaction.in_trouble")
    facts: Any = warning
    assert REPORT_AFTER <= facts.seconds < LIMIT
    assert facts.transactional_id == ID
    assert facts.request == api
    assert facts.coordinator == (None if api == "FindCoordinator" else f"{broker} (id 0)")
    assert ("no answer for" in facts.error) is is_silent
    assert REPORT_AFTER < health.trouble_age <= LIMIT
    assert health.trouble.api == api
    assert later.trouble is None
    assert later.trouble_age is None


FIND, INIT = FindCoordinator(KeyType.TRANSACTION, ID), InitProducer(1, None)


def test_the_warning_is_repeated_after_a_minute_until_the_request_ends() -> None:
    watch = TransactionTroubleWatch(ID)
    watch.sent(FIND, 1.0)
    watch.found()
    assert watch.look_at is None
    watch.sent(INIT, 2.0)
    watch.failed(INIT, KafkaError("refused"))
    assert watch.look(2.0 + REPORT_AFTER - 1) is None
    watch.sent(FIND, 6.0)
    watch.found()
    trouble = watch.look(2.0 + REPORT_AFTER)
    assert trouble is not None
    assert (str(trouble.error), trouble.since, trouble.api, trouble.node_id) == ("refused", 2.0, "InitProducerId", 1)
    assert watch.look(2.0 + REPORT_AFTER + REPORT_EVERY - 1) is None
    watch.sent(INIT, 8.0)
    trouble = watch.look(2.0 + REPORT_AFTER + REPORT_EVERY)
    assert trouble is not None
    assert "no answer for 59 s" in str(trouble.error)
    watch.ended()
    assert watch.of(100.0) is None
    assert watch.look_at is None
