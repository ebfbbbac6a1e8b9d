"""F13, F14 and F16: positions that are out of range, topics made again, unclean elections; for each policy.

A failed cell says how to run it again with its seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from tests.faults.lose import LOSSES, Lose
from tests.faults.stage import IS_SOAK, Stage

pytestmark = pytest.mark.anyio

SEEDS = tuple(map(int, os.environ.get("PYKAFKA08_FAULT_SEEDS", "1").split(",")))
DEADLINE_S = 60
RESUMES_S = 20
"""It takes some hundredths of a second; a busy machine may take as long."""
RELEASES = {
    "F13 low": ("0.9", "1.1", "4.3"),
    "F13 high": ("0.9", "1.1"),
    "F14 with ids": ("2.8", "3.9", "4.3"),
    "F14 without": ("0.9", "1.1", "2.4"),
    "F16": ("2.4", "2.8", "4.3"),
}
HAS_IDS_IN_COMMITS = "4.3"
"""Before that a commit that is on its way when the topic is made again cannot be told from one of the new topic."""


POLICIES = ("earliest", "latest", "none")


def cells() -> Iterator[tuple[str, str, str, str]]:
    """Fault, release, policy and event loop: each policy with one of the releases, all with PYKAFKA08_SOAK=1."""
    for number, (fault, releases) in enumerate(RELEASES.items()):
        for index, policy in enumerate(POLICIES):
            for release in releases if IS_SOAK else [releases[index % len(releases)]]:
                for loop in ("asyncio", "trio") if IS_SOAK else [("asyncio", "trio")[(number + index) % 2]]:
                    yield fault, release, policy, loop


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("fault", "release", "policy", "anyio_backend"), list(cells()), indirect=["anyio_backend"])
async def test_cell(fault: str, release: str, policy: str, seed: int, request: pytest.FixtureRequest) -> None:
    loss = LOSSES[fault]
    async with EmbeddedCluster(brokers=3, version=release, auto_create_topics=False) as cluster:
        stage = Stage(cluster.bootstrap_servers, seed, 0)
        stage.group_settings = {"session_timeout_ms": 20_000, "heartbeat_interval_ms": 100}  # nobody dies here
        work = Lose(stage, cluster, loss, policy, times=30 if IS_SOAK else 5)
        with anyio.move_on_after(DEADLINE_S) as scope:
            await work.run()
    report = stage.report()
    if loss.reads_again:
        report.counts.nonmonotonic_poll = report.counts.double_delivery = 0
    again = f"PYKAFKA08_FAULT_SEEDS={seed} pytest '{request.node.nodeid}'"
    assert not scope.cancelled_caught, f"{work}\n{report}\nagain: {again}"
    assert report.is_clean, f"{report}\nagain: {again}"
    assert work.unreported() == [], f"{work.reports}\nagain: {again}"
    if fault == "F14 with ids":
        told = [each for each in work.reports if each.kind == "topic.made_again"]
        assert len(told) >= work.times, again
        assert release != HAS_IDS_IN_COMMITS or work.strange_commits == [], again
    assert max(work.resumed) < RESUMES_S, again
    print(f"resumed within {max(work.resumed):.3f} s; commits of the log before: {len(work.strange_commits)}")
