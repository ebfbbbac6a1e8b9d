"""Commits for partitions that went meanwhile: an outcome for each, never silence, and never a step back."""

from __future__ import annotations

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, ErrorCode, PartitionRevokedError, RebalanceListener, TopicPartition
from tests.consumer.embedded import read
from tests.consumer.groups import committed_in, consumer, spread, until

pytestmark = pytest.mark.anyio

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
PROTOCOLS = [
    {"partition_assignment_strategy": "range"},
    {"partition_assignment_strategy": "cooperative-sticky"},
    {"group_protocol": "consumer"},
]


def cluster_of() -> EmbeddedCluster:
    return EmbeddedCluster(topics={"t": 2}, group_consumer_heartbeat_interval_ms=50)


class Hears(RebalanceListener):
    """That partitions were lost, and that they are back."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def partitions_assigned(self, added: frozenset[TopicPartition]) -> None:
        self.calls.append("assigned")

    async def partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append("lost")


async def lose_all(cluster: EmbeddedCluster, reader: Consumer, heard: Hears) -> None:
    """And have all back."""
    heard.calls.clear()
    cluster.expire_sessions("g")
    await until(lambda: "lost" in heard.calls and "assigned" in heard.calls[heard.calls.index("lost") :])
    await until(lambda: len(reader.assignment()) == 2)


@pytest.mark.parametrize("settings", PROTOCOLS, ids=lambda each: next(iter(each.values())))
async def test_a_commit_says_what_went_meanwhile_once(settings: dict[str, str]) -> None:
    async with cluster_of() as cluster:
        await spread(cluster, "t", 2, 50)
        async with consumer(cluster, "t", enable_auto_commit=False, **settings) as first:
            await read(first, 100)
            await first.getmany(timeout=0)  # nothing is in hand any more, which the rebalance would wait for
            async with consumer(cluster, "t", enable_auto_commit=False, **settings) as second:
                await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
                (theirs,) = second.assignment()
                refused = await first.commit()
                assert isinstance(refused.pop(theirs), PartitionRevokedError)
                if settings.get("partition_assignment_strategy") == "range":
                    # It gave all up, and begins again with what it has now.
                    assert set(refused) <= set(first.assignment())
                else:
                    assert refused == {}
                assert await first.commit() == {}


async def test_what_auto_commit_has_committed_is_not_missed() -> None:
    async with cluster_of() as cluster:
        await spread(cluster, "t", 2, 50)
        async with consumer(cluster, "t") as first:
            records = await read(first, 100)
            for record in records:
                first.acknowledge(record)
            async with consumer(cluster, "t") as second:
                await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
                assert await first.commit() == {}


@pytest.mark.parametrize("settings", PROTOCOLS, ids=lambda each: next(iter(each.values())))
async def test_an_offset_of_before_does_not_take_the_group_back(settings: dict[str, str]) -> None:
    """The member works slowly; its partitions went, others read on and committed, and they are back."""
    async with cluster_of() as cluster:
        await spread(cluster, "t", 2, 50)
        heard = Hears()
        async with consumer(cluster, "t", enable_auto_commit=False, listener=heard, **settings) as slow:
            await read(slow, 100)
            cluster._state.groups.commit("g", "t", 0, _committed(45))
            cluster._state.groups.commit("g", "t", 1, _committed(5))
            await lose_all(cluster, slow, heard)
            await slow.position(T0)
            refused = await slow.commit({T0: 20, T1: 20})
            assert list(refused) == [T0]
            assert isinstance(refused[T0], PartitionRevokedError)
            assert await committed_in(cluster, [T0, T1]) == {0: 45, 1: 20}
            await slow.seek(T0, 10)
            assert await slow.commit({T0: 10}) == {}, "who goes back says so"


def _committed(offset: int):  # type: ignore[no-untyped-def]
    from pykafka08.broker.groups import CommittedOffset

    return CommittedOffset(offset)


@pytest.mark.parametrize("settings", PROTOCOLS, ids=lambda each: next(iter(each.values())))
async def test_a_commit_under_way_while_the_partition_goes_and_comes_back(settings: dict[str, str]) -> None:
    """It is tried again all the time; another may have committed more meanwhile."""
    async with cluster_of() as cluster:
        await spread(cluster, "t", 2, 50)
        heard = Hears()
        async with consumer(cluster, "t", enable_auto_commit=False, listener=heard, **settings) as reader:
            await read(reader, 100)
            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            outcomes = []

            async def commit() -> None:
                outcomes.append(await reader.commit({T0: 20}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await until(lambda: any(request.api == "OffsetCommit" for request in cluster.requests))
                await lose_all(cluster, reader, heard)
                cluster.faults.clear()
            assert isinstance(outcomes[0][T0], PartitionRevokedError)
            assert await committed_in(cluster, [T0, T1]) == {}


async def test_a_commit_of_a_member_that_left_for_a_while_has_an_outcome_for_each() -> None:
    async with cluster_of() as cluster:
        await spread(cluster, "t", 2, 50)
        async with consumer(cluster, "t", enable_auto_commit=False, max_poll_interval_ms=3000) as reader:
            await read(reader, 10)
            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            refused = await reader.commit({T0: 1, T1: 1})
            assert list(refused) == [T0, T1]
            assert all(isinstance(error, PartitionRevokedError) for error in refused.values())


@pytest.mark.parametrize("settings", PROTOCOLS, ids=lambda each: next(iter(each.values())))
async def test_a_commit_under_way_is_waited_for_before_the_partition_goes(settings: dict[str, str]) -> None:
    """Nothing of it is read twice, and nothing of it is said to be."""
    async with cluster_of() as cluster:
        await spread(cluster, "t", 2, 50)
        async with consumer(cluster, "t", enable_auto_commit=False, **settings) as first:
            await read(first, 100)
            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            outcomes = []

            async def commit() -> None:
                outcomes.append(await first.commit())

            async def recover() -> None:
                await until(lambda: any(state.is_held for state in first._assignment.states.values()))
                cluster.faults.clear()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await until(lambda: any(request.api == "OffsetCommit" for request in cluster.requests))
                tasks.start_soon(recover)
                async with consumer(cluster, "t", enable_auto_commit=False, **settings) as second:
                    await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            assert outcomes == [{}]
            assert await first.commit() == {}
        assert await committed_in(cluster, [T0, T1]) == {0: 50, 1: 50}
