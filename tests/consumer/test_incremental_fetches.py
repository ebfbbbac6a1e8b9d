"""Incremental fetches against embedded brokers: what travels, and what happens when a session is lost."""

from __future__ import annotations

import logging

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.error_codes import ErrorCode
from tests.consumer.embedded import fill, numbers, read, read_values, values

pytestmark = pytest.mark.anyio


def steps(caplog: pytest.LogCaptureFixture) -> list[tuple[int, int, int]]:
    """Session epoch, partitions named in the request, partitions of the answer, of each fetch."""
    return [
        (vars(record)["session_epoch"], vars(record)["named"], vars(record)["partitions"])
        for record in caplog.records
        if vars(record).get("event") == "fetch.answered"
    ]


@pytest.mark.parametrize("release", ["1.1", "2.8", "4.3"])
async def test_an_idle_topic_costs_empty_requests_and_a_record_costs_its_partition(
    release: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "pykafka08.consumer")
    async with (
        EmbeddedCluster(version=release, topics={"t": 50}) as cluster,
        Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=20
        ) as consumer,
    ):
        await fill(cluster, "t", values(0, 3), partition=7)
        assert numbers(await read_values(consumer, 3)) == [0, 1, 2]
        with anyio.fail_after(30):
            while steps(caplog)[-1][1:] != (0, 0):
                assert await consumer.getmany(timeout=0.02) == []
        caplog.clear()
        with anyio.fail_after(30):
            while len(steps(caplog)) < 3:
                assert await consumer.getmany(timeout=0.02) == []
        idle = steps(caplog)
        assert all(epoch > 0 and named == 0 and answered == 0 for epoch, named, answered in idle), idle
        caplog.clear()
        await fill(cluster, "t", values(3, 4), partition=9)
        await read(consumer, 1)
        with anyio.fail_after(30):
            while (last := steps(caplog))[-1:] == [] or last[-1][1] == 0:
                assert await consumer.getmany(timeout=0.02) == []
        assert [(named, answered) for _, named, answered in last if named or answered] in (
            [(0, 1), (1, 0)],
            [(0, 1), (1, 1)],
        )


@pytest.mark.parametrize("release", ["2.8", "4.3"])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
async def test_a_lost_session_is_opened_anew_without_a_pause(release: str, code: ErrorCode) -> None:
    async with (
        EmbeddedCluster(version=release, topics={"t": 4}) as cluster,
        Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=20
        ) as consumer,
    ):
        for number in range(4):
            await fill(cluster, "t", values(0, 10), partition=number)
        await read(consumer, 40)
        for _ in range(3):
            cluster.faults.answer("Fetch", code)
            for number in range(4):
                await fill(cluster, "t", values(10, 20), partition=number)
            records = await read(consumer, 40)
            assert sorted({record.partition for record in records}) == [0, 1, 2, 3]
        assert cluster.records("t", 0)[-1].offset == 39
        assert await consumer.position(TopicPartition("t", 0)) == 40


async def test_a_broker_that_restarts_has_forgotten_the_session() -> None:
    async with (
        EmbeddedCluster(topics={"t": 3}) as cluster,
        Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=20
        ) as consumer,
    ):
        for first in range(0, 30, 10):
            for number in range(3):
                await fill(cluster, "t", values(first, first + 10), partition=number)
            seen = await read(consumer, 30)
            assert sorted(record.offset for record in seen) == sorted([*range(first, first + 10)] * 3)
            await cluster.stop_broker(0)
            await cluster.start_broker(0)


async def test_seeks_and_pauses_are_told_to_the_broker() -> None:
    async with (
        EmbeddedCluster(topics={"t": 2}) as cluster,
        Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=20
        ) as consumer,
    ):
        t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)
        await fill(cluster, "t", values(0, 10), partition=0)
        await fill(cluster, "t", values(0, 10), partition=1)
        await read(consumer, 20)
        for _ in range(5):
            consumer.pause(t1)
            await consumer.seek(t0, 5)
            assert [(each.partition, each.offset) for each in await read(consumer, 5)] == [(0, n) for n in range(5, 10)]
            await consumer.seek(t1, 8)
            consumer.resume(t1)
            assert [(each.partition, each.offset) for each in await read(consumer, 2)] == [(1, 8), (1, 9)]
