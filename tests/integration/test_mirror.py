"""The mirror between real brokers, 0.8.2.2 to 4.3.1, killed on the way; `make mirror-soak` has the full size."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from pykafka08 import Consumer, TopicPartition
from pykafka08.admin import Admin
from pykafka08.mirror import MirrorReport
from pykafka08.mirror.mirror import Mirror
from tests.cli.console import console
from tests.integration.clusters import Clusters, RealCluster
from tests.mirror.real import Filler, digests, killed_amid

pytestmark = pytest.mark.anyio

IS_SOAK = os.environ.get("PYKAFKA08_SOAK") == "1"
COUNT, KILLS = (1_000_000, 3) if IS_SOAK else (20_000, 1)
PARTITIONS = 4
TARGETS = ("4.3.1", "0.9.0.1") if IS_SOAK else ("4.3.1",)
"""With transactions, and without."""
GROUP = "billing"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=TARGETS)
def old_and_new(
    request: pytest.FixtureRequest, clusters: Clusters, tmp_path: Path
) -> Iterator[tuple[RealCluster, RealCluster]]:
    """The one cluster of the session, and a second one beside it."""
    beside = Clusters(tmp_path / "beside", clusters.options)
    try:
        yield clusters.running("0.8.2.2"), beside.running(request.param)
    finally:
        beside.take_down()


@pytest.mark.timeout(1800 if IS_SOAK else 300)
async def test_a_mirror_that_is_killed_copies_each_record_once_and_moves_the_group(
    old_and_new: tuple[RealCluster, RealCluster], record_property: Callable[[str, object], None]
) -> None:
    old, new = old_and_new
    topic = old.new_topic("mirrored", PARTITIONS)
    # somewhere in the midst of each partition, as a group that has read different parts
    read = {TopicPartition(topic, number): COUNT // PARTITIONS * (number + 1) // 6 + 13 for number in range(PARTITIONS)}
    async with Admin(old.bootstrap) as admin:
        assert await admin.alter_group_offsets(GROUP, read) == {}
    copy = topic if new.release >= (0, 10, 1) else new.new_topic("copy", PARTITIONS)  # it cannot be asked to make one
    ends = ("--from", old.bootstrap, "--to", new.bootstrap)
    words = ("mirror", *ends, "--topics", topic, "--rename", f"{topic}={copy}", "--group", GROUP)
    async with Filler(old.bootstrap, topic, PARTITIONS, COUNT, per_chunk=COUNT // 200) as filler:
        for number in range(KILLS):
            least = COUNT * (number + 1) // (KILLS + 2)
            place = new.bootstrap, copy, PARTITIONS
            await killed_amid((*words, "--follow"), filler, *place, least=least, ahead=COUNT // 10)
        assert filler.left > 0
        await filler.fill(filler.left)
    begun = time.monotonic()
    ran = await console(*words, "--json")
    seconds = time.monotonic() - begun
    assert ran.status == 0, ran.err
    report = json.loads(ran.out)
    assert sum(each["duplicates"] for each in report["partitions"]) == 0
    assert sum(each["lag"] for each in report["partitions"]) == 0

    originals, copies = await digests(old.bootstrap, topic, PARTITIONS), await digests(new.bootstrap, copy, PARTITIONS)
    assert {number: each.shown for number, each in copies.items()} == {
        number: each.shown for number, each in originals.items()
    }
    assert sum(each.duplicates for each in copies.values()) == 0
    await check_moved(old, new, copy, read)

    rest = sum(each["copied"] for each in report["partitions"])
    assert 0 < rest < COUNT
    record_property(
        "figure",
        f"mirror 0.8.2.2 to {new.version}: {COUNT:,} records of 100 bytes, killed {KILLS} times: digests equal, "
        f"no duplicates; the last run copied {rest:,} in {seconds:.1f} s with its start",
    )
    if IS_SOAK and copy == topic:
        await measured(old, new, topic, record_property)


async def check_moved(old: RealCluster, new: RealCluster, copy: str, read: dict[TopicPartition, int]) -> None:
    """The group reads on in the target at the very record that it would have read next in the source."""
    async with Admin(new.bootstrap) as admin:
        moved = await admin.list_group_offsets(GROUP, [TopicPartition(copy, tp.partition) for tp in read])
    assert len(moved) == len(read)
    with anyio.fail_after(60):
        for tp, offset in read.items():
            found = []
            target = TopicPartition(copy, tp.partition)
            for servers, at, place in ((old.bootstrap, tp, offset), (new.bootstrap, target, moved[target].offset)):
                async with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
                    consumer.assign([at])
                    await consumer.seek(at, place)
                    record = await consumer.getone(timeout=30)
                    found.append((record.key, record.value))
            assert found[0] == found[1]


async def measured(
    old: RealCluster, new: RealCluster, topic: str, record_property: Callable[[str, object], None]
) -> MirrorReport:
    """The throughput of a run that nobody disturbs."""
    async with Mirror(
        old.bootstrap, new.bootstrap, topics=[topic], rename={topic: f"{topic}-again"}, name="again"
    ) as mirror:
        begun = time.monotonic()
        report = await mirror.run()
        seconds = time.monotonic() - begun
    assert report.records == COUNT
    record_property(
        "figure",
        f"mirror 0.8.2.2 to 4.3.1: {COUNT:,} records in {seconds:.1f} s, {COUNT / seconds:,.0f} records/s",
    )
    return report
