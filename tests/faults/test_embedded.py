"""Every fault of the matrix under every workload, on an embedded cluster: nothing lost, doubled, skipped or stuck.

A failed cell says how to run it again with its seed.
"""

from __future__ import annotations

import os

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from tests.faults.checker import check
from tests.faults.embedded import FAULTS
from tests.faults.produce import Produce
from tests.faults.stage import Stage

pytestmark = pytest.mark.anyio

SEEDS = tuple(map(int, os.environ.get("PYKAFKA08_FAULT_SEEDS", "1").split(",")))
DEADLINE_S = 45
RECORDS = 2_000


async def produce(fault: str, seed: int) -> Stage:
    async with EmbeddedCluster(brokers=3, topics={"w1": 6}) as cluster:
        stage = Stage(cluster.bootstrap_servers, seed, RECORDS)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(FAULTS[fault], stage, cluster)
            tasks.start_soon(Produce(stage).run)
        return stage


WORKLOADS = {"W1": produce}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_cell(fault: str, workload: str, seed: int, request: pytest.FixtureRequest) -> None:
    with anyio.fail_after(DEADLINE_S):
        stage = await WORKLOADS[workload](fault, seed)
    report = check(stage.history)
    again = f"PYKAFKA08_FAULT_SEEDS={seed} pytest '{request.node.nodeid}'"
    assert report.is_clean, f"{report}\nagain: {again}"
