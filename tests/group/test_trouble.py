"""A coordinator that is not there or does not answer is told within ten seconds: in `health()` and in one warning."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pykafka08 import Consumer, EmbeddedCluster, ErrorCode, KafkaError, RequestTimeoutError
from pykafka08.group.trouble import REPORT_AFTER
from tests.test_request_storms import at_once
from tests.virtual_loop import VirtualLoop

LIMIT = 10.0
"""Seconds within which it is told."""

CASES = [
    ("classic", "FindCoordinator", None),
    ("classic", "FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("classic", "JoinGroup", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("classic", "SyncGroup", ErrorCode.NOT_COORDINATOR),
    ("classic", "Heartbeat", None),
    ("classic", "Heartbeat", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ("consumer", "FindCoordinator", None),
    ("consumer", "ConsumerGroupHeartbeat", None),
    ("consumer", "ConsumerGroupHeartbeat", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
]


async def fails(protocol: str, api: str, answer: ErrorCode | None) -> tuple[Any, str]:
    """The group's health after ``LIMIT`` seconds, and what the join or a read ends with."""
    settings: dict[str, Any] = {"group_id": "g", "group_protocol": protocol, "auto_offset_reset": "earliest"}
    async with EmbeddedCluster(topics={"t": 1}, group_consumer_heartbeat_interval_ms=1000) as cluster:
        consumer = Consumer("t", bootstrap_servers=cluster.bootstrap_servers, default_api_timeout_ms=12_000, **settings)
        found: list[Any] = []

        async def look() -> None:
            await anyio.sleep(LIMIT)
            found.append(consumer.health().group)

        def fail() -> None:
            if answer is None:
                cluster.faults.drop_answer(api, times=None)
            else:
                cluster.faults.answer(api, answer, times=None)

        async with anyio.create_task_group() as tasks:
            is_beat = api.endswith("Heartbeat")
            if not is_beat:
                fail()
            tasks.start_soon(look)
            try:
                async with consumer:
                    if is_beat:
                        fail()
                        found.clear()
                    await consumer.getone(timeout=12)
            except RequestTimeoutError as error:
                text = str(error)
            finally:
                cluster.faults.clear()
            with contextlib.suppress(KafkaError):
                await consumer.aclose()
        return found[0], text


@pytest.mark.parametrize(("protocol", "api", "answer"), CASES)
def test_a_coordinator_that_fails_is_told(
    protocol: str,
    api: str,
    answer: ErrorCode | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(anyio.to_thread, "run_sync", at_once)
    caplog.set_level(logging.WARNING, logger="pykafka08")
    loop = VirtualLoop()
    try:
        group, text = loop.run_until_complete(fails(protocol, api, answer))
    finally:
        loop.close()
    (warning,) = [each for each in caplog.records if each.getMessage().startswith("group.in_trouble")]
    assert REPORT_AFTER <= warning.seconds < LIMIT  # type: ignore[attr-defined]
    assert warning.group_id == "g"  # type: ignore[attr-defined]
    assert isinstance(group.trouble, KafkaError)
    assert "; last: " in text
