"""OffsetFetch and OffsetCommit without success are reported within ten seconds: in `health()` and in one warning."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import (
    Consumer,
    EmbeddedCluster,
    ErrorCode,
    Producer,
    RequestTimeoutError,
    TopicPartition,
)
from pykafka08.group.trouble import REPORT_AFTER
from tests.test_request_storms import at_once
from tests.virtual_loop import VirtualLoop

LIMIT = 10.0
"""Seconds within which it is reported."""
TP = TopicPartition("t", 0)


async def fails(api: str, answer: ErrorCode | None, *, is_assigned: bool) -> tuple[Any, Any, str]:
    """The consumer's health after ``LIMIT`` seconds and after the fault, and the error of ``getone``."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(cluster.bootstrap_servers) as producer:
            await producer.send("t", b"value", partition=0)

        def fail() -> None:
            if answer is None:
                cluster.faults.delay(api, 60, times=None)
            else:
                cluster.faults.answer(api, answer, times=None)

        consumer = Consumer(
            *([] if is_assigned else ["t"]),
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            default_api_timeout_ms=12_000,
        )
        found: list[Any] = []

        async def look() -> None:
            await anyio.sleep(LIMIT)
            found.append(consumer.health())

        async with anyio.create_task_group() as tasks:
            if api == "OffsetFetch":
                fail()
                tasks.start_soon(look)
            async with consumer:
                if is_assigned:
                    consumer.assign([TP])
                if api == "OffsetCommit":
                    await consumer.getone()
                    fail()
                    tasks.start_soon(look)
                with pytest.raises(RequestTimeoutError) as caught:
                    await consumer.getone(timeout=12)
                cluster.faults.clear()
                await anyio.sleep(35)
                after = consumer.health()
        return found[0], after, str(caught.value)


@pytest.mark.parametrize("is_assigned", [False, True])
@pytest.mark.parametrize("answer", [None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("api", ["OffsetFetch", "OffsetCommit"])
def test_offsets_that_fail_are_reported(
    api: str,
    answer: ErrorCode | None,
    is_assigned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)
    caplog.set_level(logging.WARNING, logger="pykafka08")
    loop = VirtualLoop()
    try:
        health, after, text = loop.run_until_complete(fails(api, answer, is_assigned=is_assigned))
    finally:
        loop.close()
    (warning,) = [each for each in caplog.records if "in_trouble" in each.getMessage()]
    assert warning.getMessage().startswith("group.in_trouble")
    assert REPORT_AFTER <= warning.seconds < LIMIT  # type: ignore[attr-defined]
    assert warning.group_id == "g"  # type: ignore[attr-defined]
    for said in (warning.error, str(health.group.trouble)):  # type: ignore[attr-defined]
        assert api in said
        assert "group 'g'" in said
        assert "broker " in said
        assert answer is None or answer.name in said
    # After 12 s the silent connection is given up, and the coordinator is looked for.
    assert api in text or (answer is None and "FindCoordinator" in text)
    assert "group 'g'" in text
    if api == "OffsetFetch":
        assert api in str(health.trouble)
        assert 5 < health.trouble_age <= LIMIT
        assert " (for " in text
    else:
        assert health.trouble is None  # the partition is read all the same
    assert (after.trouble, after.group.trouble) == (None, None)
