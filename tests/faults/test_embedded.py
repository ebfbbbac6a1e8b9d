"""Every fault of the matrix under every workload, on an embedded cluster: nothing lost, doubled, skipped or stuck.

A failed cell says how to run it again with its seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeAlias

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from tests.faults.copy import COPY_APIS, Copy
from tests.faults.embedded import FAULTS, BreakIt
from tests.faults.produce import Produce
from tests.faults.share import GROUP_APIS, NEW_GROUP_APIS, Share, fill
from tests.faults.stage import IS_SOAK, Stage

pytestmark = pytest.mark.anyio

SEEDS = tuple(map(int, os.environ.get("PYKAFKA08_FAULT_SEEDS", "1").split(",")))
DEADLINE_S = 150
RECORDS = {"W1": 2_000, "W2": 1_000, "W3": 900}
GROUP_TIMES: dict[str, Any] = {
    "group_min_session_timeout_ms": 100,
    "group_consumer_session_timeout_ms": 2_000,
    "group_consumer_heartbeat_interval_ms": 100,
}


async def produce(stage: Stage, cluster: EmbeddedCluster, fault: BreakIt) -> None:
    cluster.create_topic("w1", 6)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fault, stage, cluster)
        tasks.start_soon(Produce(stage).run)


async def share(stage: Stage, cluster: EmbeddedCluster, fault: BreakIt, **settings: Any) -> None:
    cluster.create_topic("w2", 6)
    is_new = settings.get("group_protocol") == "consumer"
    stage.apis = ("Fetch", *(NEW_GROUP_APIS if is_new else GROUP_APIS))
    await fill(stage, "w2", 6)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fault, stage, cluster)
        tasks.start_soon(Share(stage, settings=settings).run)


async def copy(stage: Stage, cluster: EmbeddedCluster, fault: BreakIt) -> None:
    cluster.create_topic("in", 2)
    cluster.create_topic("out", 3)
    stage.apis = COPY_APIS
    await fill(stage, "in", 2)
    work = Copy(stage)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fault, stage, cluster)
        tasks.start_soon(work.run)
    stage.others.append(work.copies)


Workload: TypeAlias = Callable[[Stage, EmbeddedCluster, BreakIt], Coroutine[Any, Any, None]]

WORKLOADS: dict[str, Workload] = {
    "W1": produce,
    "W2 eager": partial(share, partition_assignment_strategy="range"),
    "W2 cooperative": partial(share, partition_assignment_strategy="cooperative-sticky"),
    "W2 new protocol": partial(share, group_protocol="consumer"),
    "W3": copy,
}


GROUPS = [name for name in WORKLOADS if name != "W1"]
"""Slower, since whoever dies is missed only when its session ends: a fault meets one of them, F19 all."""


def cells() -> Iterator[tuple[str, str, str]]:
    """Fault, workload and event loop; all of them with PYKAFKA08_SOAK=1."""
    for number, fault in enumerate(FAULTS):
        for loop in ("asyncio", "trio"):
            yield fault, "W1", loop
        for index, workload in enumerate(GROUPS):
            if IS_SOAK or fault.startswith("F19") or index == number % len(GROUPS):
                yield fault, workload, ("asyncio", "trio")[number // len(GROUPS) % 2]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("fault", "workload", "anyio_backend"), list(cells()), indirect=["anyio_backend"])
async def test_cell(fault: str, workload: str, seed: int, request: pytest.FixtureRequest) -> None:
    await run_cell(fault, workload, seed, request)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
async def test_transactions_before_kip_890(seed: int, request: pytest.FixtureRequest) -> None:
    """Partitions and groups join a transaction by requests of their own."""
    await run_cell("F10 numbers", "W3", seed, request, version="3.9")


async def run_cell(fault: str, workload: str, seed: int, request: pytest.FixtureRequest, **settings: Any) -> None:
    async with EmbeddedCluster(brokers=3, **GROUP_TIMES, **settings) as cluster:
        stage = Stage(cluster.bootstrap_servers, seed, RECORDS[workload[:2]])
        with anyio.move_on_after(DEADLINE_S) as scope:
            await WORKLOADS[workload](stage, cluster, FAULTS[fault])
    report = stage.report()
    again = f"PYKAFKA08_FAULT_SEEDS={seed} pytest '{request.node.nodeid}'"
    assert not scope.cancelled_caught, f"{stage}\n{report}\nagain: {again}"
    assert report.is_clean, f"{report}\nagain: {again}"
