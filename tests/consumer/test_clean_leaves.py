"""Members that come and go, all of them cleanly: each record is handed out once, whatever the group is amid.

By real members, in small: what a member does as it leaves is in tests/group/test_leaving.py, in virtual time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from tests.consumer.groups import consumer, spread

pytestmark = pytest.mark.anyio

PARTITIONS, EACH, MEMBERS = 6, 60, 4
DEADLINE_S = 120
PROTOCOLS = [
    {"partition_assignment_strategy": "range"},
    {"partition_assignment_strategy": "cooperative-sticky"},
    {"group_protocol": "consumer"},
]


class Work:
    """Who was handed which record."""

    def __init__(self, cluster: EmbeddedCluster, seed: int, settings: Mapping[str, str]) -> None:
        self.cluster = cluster
        self.seed = seed
        self.settings = settings
        self.seen: dict[tuple[int, int], str] = {}
        self.twice: list[tuple[int, int, str, str]] = []

    @property
    def is_done(self) -> bool:
        return bool(self.twice) or len(self.seen) == PARTITIONS * EACH

    async def take_turns(self, number: int) -> None:
        chance, turn = random.Random(f"{self.seed} {number}"), 0
        while not self.is_done:
            turn += 1
            await self.live(f"{number}.{turn}", chance, chance.choice([5, 15, 40]))
            await anyio.sleep(chance.random() * 0.03)

    async def live(self, name: str, chance: random.Random, span: int) -> None:
        interval = chance.choice([5, 20, 5000])
        async with consumer(self.cluster, "t", auto_commit_interval_ms=interval, **self.settings) as reader:
            count = 0
            while count < span and not self.is_done:
                records = await reader.getmany(max_records=chance.choice([3, 7, 20]), timeout=0.05)
                for record in records:
                    key = record.partition, record.offset
                    if key in self.seen:
                        self.twice.append((*key, self.seen[key], name))
                    self.seen[key] = name
                    reader.acknowledge(record)
                count += len(records)


@pytest.mark.parametrize("seed", [4])
@pytest.mark.parametrize("settings", PROTOCOLS, ids=lambda each: next(iter(each.values())))
async def test_none_twice(settings: dict[str, str], seed: int) -> None:
    async with EmbeddedCluster(topics={"t": PARTITIONS}, group_consumer_heartbeat_interval_ms=50) as cluster:
        await spread(cluster, "t", PARTITIONS, EACH)
        work = Work(cluster, seed, settings)
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as members:
                for number in range(MEMBERS):
                    members.start_soon(work.take_turns, number)
        assert not work.twice
        assert len(work.seen) == PARTITIONS * EACH
