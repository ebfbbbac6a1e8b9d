"""Members that come and go while connections break and answers get lost: nobody ever owns what another owns."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack

import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import PartitionRevokedError
from pykafka08.group.coordinator import OffsetAndMetadata
from tests.group.members import Member, all_of, member, wait_shared

APIS = ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup")
CODES = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REBALANCE_IN_PROGRESS,
)
STEPS = 6
PARTITIONS = 6

pytestmark = pytest.mark.anyio


def break_something(cluster: EmbeddedCluster, rng: random.Random) -> None:
    api = rng.choice(APIS)
    kind = rng.choice(("close_before", "close_after", "answer", "delay"))
    if kind == "answer" and api != "LeaveGroup":
        allowed = CODES if api in ("SyncGroup", "Heartbeat", "OffsetCommit") else CODES[:-1]
        cluster.faults.answer(api, rng.choice(allowed), times=rng.randint(1, 2))
    elif kind == "delay":
        cluster.faults.delay(api, 0.05)
    else:
        getattr(cluster.faults, kind if kind != "answer" else "close_before")(api)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strategy", [("range",), ("cooperative-sticky",)], ids=lambda each: each[0])
async def test_faults(seed: int, strategy: tuple[str, ...]) -> None:
    rng = random.Random(f"{seed} {strategy}")
    parts = all_of("t", PARTITIONS)
    # A join that is lost on its way leaves a stranger in the group, until its time is up.
    settings = {"partition_assignment_strategy": strategy, "session_timeout_ms": 2_000, "max_poll_interval_ms": 2_000}
    async with EmbeddedCluster(brokers=3, topics={"t": PARTITIONS}, group_min_session_timeout_ms=100) as cluster:
        async with AsyncExitStack() as stack:
            members: list[Member] = []
            for offset in range(1, STEPS + 1):
                break_something(cluster, rng)
                if members and rng.random() < 0.4:
                    await members.pop(rng.randrange(len(members))).group.aclose()
                if not members or rng.random() < 0.7:
                    members.append(await stack.enter_async_context(member(cluster.bootstrap_servers, "t", **settings)))
                    members[-1].heard.rivals = members
                await wait_shared(members, parts)
                break_something(cluster, rng)
                for each in members:
                    mine = each.partitions
                    refused = await each.group.commit(dict.fromkeys(mine, OffsetAndMetadata(offset)))
                    assert all(isinstance(error, PartitionRevokedError) for error in refused.values())
                    found = await each.group.committed(mine)
                    assert all(found[tp] == OffsetAndMetadata(offset) for tp in mine if tp not in refused)
            cluster.faults.clear()
            await wait_shared(members, parts)
