"""That an old consumer's commits do not outlive its claims, and that none of its records are passed over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import TopicPartition
from pykafka08.errors import ClosedError, KafkaError, PartitionRevokedError
from pykafka08.zookeeper.legacy import commits
from pykafka08.zookeeper.legacy_consumer import LegacyConsumer
from tests.zookeeper.old_cluster import DEADLINE_S, SHORT_SESSION_MS, OldCluster, old_cluster, until

pytestmark = pytest.mark.anyio

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LOADING = 14
"""COORDINATOR_LOAD_IN_PROGRESS: asked again until the deadline."""
OFFSET_NODE = "/kafka/consumers/g/offsets/t/0"


async def take(consumer: LegacyConsumer, count: int) -> list[str]:
    """One by one: all but the last of them are finished."""
    return [((await consumer.getone(timeout=DEADLINE_S)).value or b"").decode() for _ in range(count)]


def commits_sent(old: OldCluster) -> int:
    return sum(each.api == "OffsetCommit" for each in old.brokers.requests)


class Answer:
    """What a commit in a task of its own ended in."""

    def __init__(self) -> None:
        self.refused: dict[TopicPartition, KafkaError] | None = None
        self.error: KafkaError | None = None

    async def of(self, commit: Callable[[], Awaitable[dict[TopicPartition, KafkaError]]]) -> None:
        try:
            self.refused = await commit()
        except KafkaError as error:
            self.error = error

    def is_there(self) -> bool:
        return self.refused is not None or self.error is not None


A = [f"a{number}" for number in range(10)]


@pytest.mark.parametrize("is_auto", [False, True])
async def test_an_outage_after_the_first_position_passes_over_nothing(is_auto: bool) -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", ["before"])
        settings = {"auto_offset_reset": "largest", "zookeeper_session_timeout_ms": SHORT_SESSION_MS}
        async with old.consumer("t", name="one", auto_commit_enable=is_auto, **settings) as consumer:
            if is_auto:
                await until(lambda: old.offset("t") == "1", "the commit of the first position")
            await old.send("t", A)
            assert await take(consumer, 5) == A[:5]
            await old.zookeeper.stop()
            await until(lambda: not consumer.assignment(), "the partitions are given up")
            await old.send("t", ["b0", "b1"])
            await old.zookeeper.start()
            assert await take(consumer, 12) == [*A, "b0", "b1"], "from where it began: nothing more was committed"


async def test_the_end_of_the_log_is_committed_at_once_as_the_first_position() -> None:
    async with old_cluster({"t": 2}) as old:
        await old.send("t", ["a", "b", "c"], 2)
        async with old.consumer("t", name="one", auto_offset_reset="largest"):
            await until(lambda: (old.offset("t", 0), old.offset("t", 1)) == ("2", "1"), "both positions")


async def test_without_auto_commit_the_first_position_is_not_committed() -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", name="one", auto_offset_reset="largest", auto_commit_enable=False) as consumer:
            await old.send("t", ["a"])
            assert await take(consumer, 1) == ["a"]
        assert old.offset("t") is None


async def test_a_commit_is_not_sent_again_once_the_session_may_be_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", offsets_storage="kafka", auto_commit_enable=False) as consumer:

            def end_session() -> None:
                """By the clock: a process that stood still goes on before it hears anything."""
                monkeypatch.setattr(consumer._zk, "is_session_sure", lambda number: False)

            old.brokers.faults.run("OffsetCommit", end_session)
            old.brokers.faults.answer("OffsetCommit", LOADING)
            refused = await consumer.commit({T0: 5})
            assert isinstance(refused[T0], PartitionRevokedError)
            assert commits_sent(old) == 1
            assert old.offset("t") is None


async def test_a_commit_in_kafka_is_not_followed_by_zookeeper_once_the_session_may_be_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", offsets_storage="kafka", auto_commit_enable=False) as consumer:
            old.brokers.faults.run(
                "OffsetCommit", lambda: monkeypatch.setattr(consumer._zk, "is_session_sure", lambda number: False)
            )
            refused = await consumer.commit({T0: 5})
            assert isinstance(refused[T0], PartitionRevokedError)
            assert old.offset("t") is None


async def test_a_commit_that_waits_leaves_out_what_went_to_another_member() -> None:
    async with old_cluster({"t": 2}) as old:
        settings = {"offsets_storage": "kafka", "auto_commit_enable": False}
        async with old.consumer("t", name="one", **settings) as one, anyio.create_task_group() as tasks:
            answer = Answer()
            old.brokers.faults.answer("OffsetCommit", LOADING, times=None)
            tasks.start_soon(answer.of, lambda: one.commit({T0: 3, T1: 7}, timeout=DEADLINE_S))
            await until(lambda: commits_sent(old), "the first try")
            async with old.consumer("t", name="two", **settings) as two:
                assert two.assignment() == (T1,)
                old.brokers.faults.clear()
                assert await two.commit({T1: 90}) == {}
                await until(answer.is_there, "the end of the other commit")
                assert answer.refused is not None
                assert {tp: type(each) for tp, each in answer.refused.items()} == {T1: PartitionRevokedError}
                assert await two.committed([T0, T1]) == {T0: 3, T1: 90}
                assert (old.offset("t", 0), old.offset("t", 1)) == ("3", "90")


async def test_a_partition_that_went_and_came_back_is_not_committed_by_what_began_before() -> None:
    async with old_cluster({"t": 2}) as old:
        settings = {"offsets_storage": "kafka", "auto_commit_enable": False}
        async with old.consumer("t", name="one", **settings) as one, anyio.create_task_group() as tasks:
            answer = Answer()
            old.brokers.faults.answer("OffsetCommit", LOADING, times=None)
            tasks.start_soon(answer.of, lambda: one.commit({T1: 7}, timeout=DEADLINE_S))
            await until(lambda: commits_sent(old), "the first try")
            async with old.consumer("t", name="two", **settings):
                await until(lambda: one.assignment() == (T0,), "the other half goes")
            await until(lambda: one.assignment() == (T0, T1), "and comes back")
            old.brokers.faults.clear()
            await until(answer.is_there, "the end of the commit")
            assert answer.refused is not None
            assert isinstance(answer.refused[T1], PartitionRevokedError)
            assert await one.committed([T1]) == {T1: None}


async def test_closing_ends_commits_before_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    async with old_cluster({"t": 1}) as old:
        await old.send("t", ["a", "b"])
        async with old.consumer("t", offsets_storage="kafka") as consumer, anyio.create_task_group() as tasks:
            assert await take(consumer, 2) == ["a", "b"]
            answer = Answer()
            close_session = consumer._zk.aclose

            async def close_slowly() -> None:
                """From here on others may own the partition."""
                old.brokers.faults.clear()
                await until(answer.is_there, "the end of the commit")
                await close_session()

            monkeypatch.setattr(consumer._zk, "aclose", close_slowly)
            old.brokers.faults.answer("OffsetCommit", LOADING, times=None)
            tasks.start_soon(answer.of, lambda: consumer.commit({T0: 1}, timeout=DEADLINE_S))
            await until(lambda: commits_sent(old), "the first try")
            await consumer.aclose(timeout=0.1)
            assert isinstance(answer.error, ClosedError), answer.refused
            assert old.offset("t") is None
        async with old.consumer("t", offsets_storage="kafka") as consumer:
            assert await consumer.committed([T0]) == {T0: None}


async def test_a_write_that_comes_late_does_not_undo_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", auto_commit_enable=False) as consumer:
            assert await consumer.commit({T0: 3}) == {}
            write = consumer._zk.write

            async def write_late(path: str, data: bytes, **how: int) -> object:
                """The process stands still after its last look at the clock."""
                monkeypatch.setattr(consumer._zk, "is_session_sure", lambda number: False)
                old.zookeeper.write(OFFSET_NODE, b"90")
                return await write(path, data, **how)

            monkeypatch.setattr(consumer._zk, "write", write_late)
            refused = await consumer.commit({T0: 4})
            assert isinstance(refused[T0], PartitionRevokedError)
            assert old.offset("t") == "90"


async def test_a_tools_write_is_written_over_while_the_partition_is_ours() -> None:
    async with old_cluster({"t": 1}) as old:
        async with old.consumer("t", auto_commit_enable=False) as consumer:
            old.zookeeper.create(OFFSET_NODE, b"1")
            assert await consumer.commit({T0: 3}) == {}
            old.zookeeper.write(OFFSET_NODE, b"90")
            assert await consumer.commit({T0: 4}) == {}
            assert old.offset("t") == "4"
            old.zookeeper.delete(OFFSET_NODE)
            assert await consumer.commit({T0: 5}) == {}
            assert old.offset("t") == "5"


@pytest.mark.parametrize("storage", ["kafka", "zookeeper"])
async def test_an_idle_consumer_commits_unchanged_offsets_in_kafka_again(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets in Kafka expire, those in ZooKeeper do not."""
    monkeypatch.setattr(commits, "MAX_AGE", 0.02)
    async with old_cluster({"t": 1}) as old:
        await old.send("t", A)
        settings = {"offsets_storage": storage, "dual_commit_enabled": False, "auto_commit_interval_ms": 10}
        async with old.consumer("t", **settings) as consumer:
            await take(consumer, 10)
            if storage == "kafka":
                await until(lambda: commits_sent(old) >= 1, "the first commit")
                old.brokers._state.groups.delete_offset("g", "t", 0)
                await until(lambda: ("t", 0) in old.brokers._state.groups.offsets("g"), "a renewal")
            else:
                await until(lambda: old.offset("t") == "9", "the first commit")
                old.zookeeper.write(OFFSET_NODE, b"5")
                await anyio.sleep(0.1)
                assert old.offset("t") == "5"
