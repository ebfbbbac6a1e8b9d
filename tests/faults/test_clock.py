"""F17: the wall clock jumps by an hour to and fro, or stands still: deadlines are the event loop's, so nobody minds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.producer import columns, intake
from tests.faults.copy import Copy
from tests.faults.embedded import kill
from tests.faults.produce import Produce
from tests.faults.share import Share, fill
from tests.faults.stage import Stage

pytestmark = pytest.mark.anyio

HOUR_NS = 3600 * 10**9
DEADLINE_S = 150


def jumping(now: int) -> Callable[[], int]:
    times = itertools.cycle((now, now + HOUR_NS, now - HOUR_NS))
    return lambda: next(times)


def frozen(now: int) -> Callable[[], int]:
    return lambda: now


@pytest.mark.parametrize("clock", [jumping, frozen])
async def test_the_wall_clock_does_not_matter(
    clock: Callable[[int], Callable[[], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = clock(time.time_ns())
    monkeypatch.setattr(time, "time_ns", now_ns)
    for module in (columns, intake):
        monkeypatch.setattr(module, "time_ns", now_ns)
    monkeypatch.setattr(time, "time", lambda: now_ns() / 1e9)
    topics = {"w1": 6, "w2": 6, "in": 2, "out": 3}
    async with EmbeddedCluster(brokers=3, topics=topics, group_min_session_timeout_ms=100) as cluster:
        with anyio.fail_after(DEADLINE_S):
            for run in (produce, share, copy):
                report = (await run(cluster)).report()
                assert report.is_clean, str(report)


async def produce(cluster: EmbeddedCluster) -> Stage:
    stage = Stage(cluster.bootstrap_servers, 1, 500)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill, stage, cluster)
        tasks.start_soon(Produce(stage).run)
    return stage


async def share(cluster: EmbeddedCluster) -> Stage:
    stage = Stage(cluster.bootstrap_servers, 1, 300)
    await fill(stage, "w2", 6)
    await Share(stage).run()
    return stage


async def copy(cluster: EmbeddedCluster) -> Stage:
    stage = Stage(cluster.bootstrap_servers, 1, 200)
    await fill(stage, "in", 2)
    work = Copy(stage)
    stage.others.append(work.copies)
    await work.run()
    return stage
