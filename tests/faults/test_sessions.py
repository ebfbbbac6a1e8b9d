"""F12 under the workloads of groups: a loss is told before anything else is read, and nobody reads beside the owner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from tests.faults.sessions import SESSION_FAULTS
from tests.faults.stage import IS_SOAK, Stage
from tests.faults.test_embedded import DEADLINE_S, GROUP_TIMES, GROUPS, RECORDS, SEEDS, WORKLOADS

pytestmark = pytest.mark.anyio

IN_SHORT = {
    ("F12 missed heartbeats", "W2 eager"),
    ("F12 missed heartbeats", "W2 new protocol"),
    ("F12 thrown out", "W2 cooperative"),
    ("F12 thrown out", "W3"),
    ("F12 standstill", "W2 cooperative"),
}
"""Some wait for sessions to end; PYKAFKA08_SOAK=1 runs every fault under every workload."""


def cells() -> Iterator[tuple[str, str, str]]:
    loops = cycle(("asyncio", "trio"))
    for fault in SESSION_FAULTS:
        for workload in GROUPS:
            if IS_SOAK or (fault, workload) in IN_SHORT:
                yield fault, workload, next(loops)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("fault", "workload", "anyio_backend"), list(cells()), indirect=["anyio_backend"])
async def test_cell(fault: str, workload: str, seed: int, request: pytest.FixtureRequest) -> None:
    async with EmbeddedCluster(brokers=3, **GROUP_TIMES) as cluster:
        stage = Stage(cluster.bootstrap_servers, seed, RECORDS[workload[:2]])
        with anyio.move_on_after(DEADLINE_S) as scope:
            await WORKLOADS[workload](stage, cluster, SESSION_FAULTS[fault])
    report = stage.report()
    again = f"PYKAFKA08_FAULT_SEEDS={seed} pytest '{request.node.nodeid}'"
    assert not scope.cancelled_caught, f"{stage}\n{report}\nagain: {again}"
    assert report.is_clean, f"{report}\nagain: {again}"
