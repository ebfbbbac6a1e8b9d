"""The three workloads against three real brokers, one of which is killed (SIGKILL) now and then.

Here a small size; `make soak` runs the full one, over more releases.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest

from tests.faults.checker import STUCK_AFTER_S
from tests.faults.copy import Copy
from tests.faults.history import Fault, Healed
from tests.faults.produce import Produce
from tests.faults.share import Share, fill
from tests.faults.stage import IS_SOAK, Stage
from tests.integration.clusters import Clusters, RealCluster

BROKERS = (1, 2, 3)
PROPERTIES = (
    "replica.fetch.backoff.ms=100",
    "group.min.session.timeout.ms=1000",
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.replication.factor=3",
    "offsets.topic.num.partitions=5",
    "transaction.state.log.replication.factor=3",
    "transaction.state.log.min.isr=2",
    "transaction.state.log.num.partitions=5",
)
TOPIC = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
SETTINGS: dict[str, Any] = {"request_timeout_ms": 10_000}
GROUP_SETTINGS: dict[str, Any] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500}
DOWN_S = 1.0
IN_SYNC_S = 120
STUCK_AFTER = STUCK_AFTER_S if IS_SOAK else 60.0
"""Brokers on a busy machine are slow themselves: three of them start, elect and rebalance on two cores."""
VERSIONS = ("2.8.2", "3.9.2", "4.3.1") if IS_SOAK else ("4.3.1",)
GOALS = {"W1": 200_000, "W2": 200_000, "W3": 100_000} if IS_SOAK else {"W1": 10_000, "W2": 2_000, "W3": 1_000}
KILLS = 20 if IS_SOAK else 2
DEADLINE_S = 3_000 if IS_SOAK else 200
PER_TRANSACTION = 750 if IS_SOAK else 100
COMMIT_EVERY = 500 if IS_SOAK else 100

pytestmark = [pytest.mark.anyio, pytest.mark.cluster(is_special=True), pytest.mark.timeout(DEADLINE_S + 200)]


async def in_thread(call: Callable[..., object], *args: object) -> None:
    await anyio.to_thread.run_sync(partial(call, *args))


async def kill_brokers(stage: Stage, kafka: RealCluster, topics: list[str]) -> None:
    """Again and again: one is killed, comes back, and catches up."""
    for kill in range(KILLS):
        await stage.at(0.1 + 0.7 * kill / KILLS)
        if stage.is_over:
            return
        victim = stage.chance.choice(BROKERS)
        stage.history.note(Fault(f"broker {victim} is killed"))
        await in_thread(kafka.kill, victim)
        await anyio.sleep(DOWN_S)
        await in_thread(kafka.start, victim)
        await in_thread(wait_in_sync, kafka, topics)
        stage.history.note(Healed(f"broker {victim} is back"))


def wait_in_sync(kafka: RealCluster, topics: list[str]) -> None:
    for topic in topics:
        end = time.monotonic() + IN_SYNC_S
        while not (sizes := kafka.in_sync(topic)) or min(sizes) < len(BROKERS):
            assert time.monotonic() < end, f"the replicas of {topic} were not in sync again in {IN_SYNC_S} s"
            time.sleep(0.05)


def stage_of(kafka: RealCluster, goal: int) -> Stage:
    return Stage(kafka.bootstrap, 1, goal, settings=dict(SETTINGS), group_settings=dict(GROUP_SETTINGS))


async def judge(stage: Stage, kafka: RealCluster, topics: list[str], run: Callable[[], Any]) -> int:
    """Run the workload under the kills, of which there is one at least; every count is 0."""
    with anyio.move_on_after(DEADLINE_S) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_brokers, stage, kafka, topics)
            tasks.start_soon(run)
    report = stage.report(stuck_after=STUCK_AFTER)
    assert not scope.cancelled_caught, f"{stage}\n{report}"
    assert report.is_clean, str(report)
    return sum(isinstance(event, Fault) and event.what.startswith("broker") for _, event in stage.history.events)


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("version", VERSIONS)
async def test_produce(clusters: Clusters, version: str, record_property: Callable[[str, object], None]) -> None:
    kafka = clusters.running(version, brokers=3, props=PROPERTIES)
    topic = kafka.new_topic("w1", 6, len(BROKERS), **TOPIC)
    stage = stage_of(kafka, GOALS["W1"])
    kills = await judge(stage, kafka, [topic], Produce(stage, topic).run)
    assert kills
    record_property("figure", f"W1 on Kafka {version}: {stage.goal} records, {kills} kills, every count 0")


@pytest.mark.parametrize("anyio_backend", ["trio"], indirect=True)
@pytest.mark.parametrize("version", VERSIONS)
async def test_share(clusters: Clusters, version: str, record_property: Callable[[str, object], None]) -> None:
    kafka = clusters.running(version, brokers=3, props=PROPERTIES)
    topic = kafka.new_topic("w2", 6, len(BROKERS), **TOPIC)
    stage = stage_of(kafka, GOALS["W2"])
    await fill(stage, topic, 6)
    work = Share(stage, topic, commit_every=COMMIT_EVERY, settings={"max_poll_interval_ms": 20_000})
    kills = await judge(stage, kafka, [topic], work.run)
    assert kills
    record_property("figure", f"W2 on Kafka {version}: {stage.goal} records, {kills} kills, every count 0")


@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("version", VERSIONS)
async def test_copy(clusters: Clusters, version: str, record_property: Callable[[str, object], None]) -> None:
    kafka = clusters.running(version, brokers=3, props=PROPERTIES)
    source = kafka.new_topic("in", 2, len(BROKERS), **TOPIC)
    target = kafka.new_topic("out", 3, len(BROKERS), **TOPIC)
    stage = stage_of(kafka, GOALS["W3"])
    await fill(stage, source, 2)
    work = Copy(stage, source, target, per_transaction=PER_TRANSACTION)
    stage.others.append(work.copies)
    kills = await judge(stage, kafka, [source, target], work.run)
    assert kills
    record_property("figure", f"W3 on Kafka {version}: {stage.goal} records, {kills} kills, every count 0")
