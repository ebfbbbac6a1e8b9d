"""Idle consumers keep their committed offsets: unchanged positions are committed again before brokers expire them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from pykafka08 import EmbeddedCluster, OffsetAndMetadata, Producer, TopicPartition
from pykafka08.consumer import member, renewals
from pykafka08.consumer.commits import Commits
from pykafka08.consumer.renewals import CLOSE_AGE, LOOK_SECONDS, MAX_AGE, Renewals
from pykafka08.errors import KafkaError
from tests.consumer.embedded import fill, read, values
from tests.consumer.groups import committed_in, consumer, until
from tests.virtual_loop import VirtualLoop

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
RETENTION = 60.0
"""The shortest retention that a broker allows."""


class Coordinator:
    """Committed offsets that expire."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.committed_at: dict[TopicPartition, float] = {}
        self.commits: list[dict[TopicPartition, OffsetAndMetadata]] = []
        self.now = now

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout: float | None = None
    ) -> dict[TopicPartition, KafkaError]:
        self.commits.append(dict(offsets))
        self.offsets.update(offsets)
        self.committed_at.update(dict.fromkeys(offsets, self.now()))
        return {}

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return {tp: self.offsets.get(tp) for tp in partitions}

    def is_kept(self, tp: TopicPartition) -> bool:
        return self.now() - self.committed_at[tp] < RETENTION


class Idle:
    """The renewals of an idle consumer, in virtual time."""

    def __init__(self, *, is_auto: bool) -> None:
        self.loop = VirtualLoop()
        self.coordinator = Coordinator(self.loop.time)
        self.positions = {T0: 7, T1: 0}
        state = SimpleNamespace(position=-1, position_epoch=-1)
        assignment: Any = SimpleNamespace(states=dict.fromkeys(self.positions, state))
        reader: Any = SimpleNamespace(finished=self.positions.get)
        self.commits = Commits(self.coordinator, assignment, reader)
        self.is_in_transaction = False
        self.renewals = Renewals(self.commits, is_auto=is_auto, is_allowed=lambda: not self.is_in_transaction)

    def run(self, seconds: float, between: Callable[[], None] = lambda: None) -> None:
        """Advance time by ``seconds``, and call ``between()`` each second."""

        async def passing() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.renewals.run, 10.0)
                end = anyio.current_time() + seconds
                while anyio.current_time() < end:
                    await anyio.sleep(1)
                    between()
                tasks.cancel_scope.cancel()

        self.loop.run_until_complete(passing())

    def commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.loop.run_until_complete(self.commits.commit(offsets, timeout=1))


@pytest.fixture
def idle(request: pytest.FixtureRequest) -> Any:
    made = Idle(is_auto=getattr(request, "param", True))
    yield made
    made.loop.close()


def test_an_idle_position_is_committed_before_the_shortest_retention(idle: Idle) -> None:
    idle.commit({T0: OffsetAndMetadata(7), T1: OffsetAndMetadata(0)})

    def check() -> None:
        assert idle.coordinator.is_kept(T0)
        assert idle.coordinator.is_kept(T1)

    idle.run(600, check)
    assert len(idle.coordinator.commits) <= 600 / MAX_AGE + 1


def test_an_offset_of_an_earlier_consumer_is_renewed_at_the_first_check(idle: Idle) -> None:
    """The offset may be nearly as old as the retention."""
    idle.coordinator.offsets[T0] = OffsetAndMetadata(7, 3, "by an earlier one")
    idle.commits.found(T0, 7)
    idle.run(LOOK_SECONDS + 1)
    assert idle.coordinator.commits == [{T0: OffsetAndMetadata(7, 3, "by an earlier one")}]


def test_an_expired_offset_is_committed_again(idle: Idle) -> None:
    idle.commit({T0: OffsetAndMetadata(7)})
    idle.coordinator.offsets.clear()
    idle.run(MAX_AGE + LOOK_SECONDS + 1)
    assert idle.coordinator.offsets == {T0: OffsetAndMetadata(7)}


@pytest.mark.parametrize("idle", [True, False], indirect=True)
def test_an_offset_that_another_client_has_changed_is_not_renewed(idle: Idle) -> None:
    idle.commit({T0: OffsetAndMetadata(7)})
    idle.coordinator.offsets[T0] = OffsetAndMetadata(3)
    idle.run(5 * MAX_AGE)
    assert idle.coordinator.offsets == {T0: OffsetAndMetadata(3)}


@pytest.mark.parametrize("idle", [False], indirect=True)
def test_without_auto_commit_the_applications_own_commits_are_renewed(idle: Idle) -> None:
    """Neither positions nor commits of other clients are renewed: a transaction may have newer offsets."""
    idle.coordinator.offsets[T1] = OffsetAndMetadata(0)
    idle.commits.found(T1, 0)
    idle.commit({T0: OffsetAndMetadata(5, 2, "by hand")})
    idle.run(600, lambda: None if idle.coordinator.is_kept(T0) else pytest.fail("expired"))
    assert idle.coordinator.offsets == {T0: OffsetAndMetadata(5, 2, "by hand"), T1: OffsetAndMetadata(0)}
    assert all(each == {T0: OffsetAndMetadata(5, 2, "by hand")} for each in idle.coordinator.commits)


@pytest.mark.parametrize("idle", [False], indirect=True)
def test_nothing_is_renewed_after_send_offsets(idle: Idle) -> None:
    idle.commit({T0: OffsetAndMetadata(5)})
    idle.is_in_transaction = True
    idle.run(5 * MAX_AGE)
    assert len(idle.coordinator.commits) == 1


@pytest.mark.parametrize("idle", [False], indirect=True)
@pytest.mark.parametrize(("end_offset", "kept"), [(0, {}), (4, {}), (5, {T0: OffsetAndMetadata(5)})])
def test_an_offset_behind_the_end_of_a_log_that_was_cut_is_not_brought_back(
    idle: Idle, end_offset: int, kept: dict[TopicPartition, OffsetAndMetadata]
) -> None:
    """Brokers delete the offsets of a deleted topic; in one of the same name they would skip the first records."""
    idle.commit({T0: OffsetAndMetadata(5)})
    idle.coordinator.offsets.clear()
    idle.commits.cut(T0, end_offset)
    idle.run(5 * MAX_AGE)
    assert idle.coordinator.offsets == kept


@pytest.mark.parametrize(("age", "renewals_at_close"), [(CLOSE_AGE - 1, 0), (CLOSE_AGE + 1, 1)])
def test_a_close_renews_all_but_the_newest_offsets(idle: Idle, age: float, renewals_at_close: int) -> None:
    async def close() -> None:
        await idle.commits.commit({T0: OffsetAndMetadata(7)}, timeout=1)
        await anyio.sleep(age)
        await idle.renewals.renew(None, max_age=CLOSE_AGE, timeout=1)

    idle.loop.run_until_complete(close())
    assert len(idle.coordinator.commits) == 1 + renewals_at_close


# Over the wire


def expire(cluster: EmbeddedCluster, tp: TopicPartition) -> None:
    cluster._state.groups.delete_offset("g", *tp)


def has_offset(cluster: EmbeddedCluster, tp: TopicPartition) -> bool:
    return tuple(tp) in cluster._state.groups.offsets("g")


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOK_SECONDS", 0.01), ("MAX_AGE", 0.02), ("CLOSE_AGE", 0.0)):
        monkeypatch.setattr(renewals, name, seconds)


@pytest.mark.anyio
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("is_auto", [True, False], ids=["auto", "manual"])
@pytest.mark.parametrize("kind", ["group", "assign"])
@pytest.mark.parametrize("version", ["0.10.2", "4.3"])
async def test_an_idle_consumer_commits_an_expired_offset_again(version: str, kind: str, is_auto: bool) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 3))
        topics = ["t"] if kind == "group" else []
        async with consumer(cluster, *topics, enable_auto_commit=is_auto, auto_commit_interval_ms=10) as reader:
            if kind == "assign":
                reader.assign([T0])
            await read(reader, 3)
            if is_auto:
                await until(lambda: has_offset(cluster, T0))
            else:
                assert await reader.commit() == {}
            expire(cluster, T0)
            await until(lambda: has_offset(cluster, T0))
        assert (await committed_in(cluster, [T0]))[0] in (2, 3)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["group", "assign"])
async def test_an_idle_consumer_commits_its_unchanged_position_at_close(kind: str) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        await fill(cluster, "t", values(0, 3))
        async with consumer(cluster) as outsider:
            assert await outsider.commit({T0: 2}) == {}
        async with consumer(cluster, *(["t"] if kind == "group" else []), auto_offset_reset="latest") as reader:
            if kind == "assign":
                reader.assign([T0])
            assert await reader.position(T0) == 2
            expire(cluster, T0)
        assert await committed_in(cluster, [T0]) == {0: 2}


@pytest.mark.anyio
async def test_an_offset_of_a_topic_that_was_made_again_is_not_brought_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 3.1 do not tell a fetch that the topic is another."""
    monkeypatch.setattr(member, "CLOSE_AGE", 0.0)
    async with EmbeddedCluster(version="0.10.2", topics={"t": 1}, auto_create_topics=False) as cluster:
        await fill(cluster, "t", values(0, 3))
        async with consumer(cluster, "t", enable_auto_commit=False, auto_offset_reset="earliest") as reader:
            await read(reader, 3)
            assert await reader.commit() == {}
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            await fill(cluster, "t", values(0, 1))
            await read(reader, 1)
        assert not has_offset(cluster, T0)


@pytest.mark.anyio
@pytest.mark.usefixtures("_short")
async def test_offsets_of_a_transaction_are_not_overwritten_by_a_renewal() -> None:
    async with EmbeddedCluster(topics={"t": 1, "out": 1}) as cluster:
        await fill(cluster, "t", values(0, 3))
        async with (
            consumer(cluster, "t", enable_auto_commit=False) as reader,
            Producer(cluster.bootstrap_servers, transactional_id="x") as producer,
        ):
            await read(reader, 1)
            assert await reader.commit() == {}
            await read(reader, 1)
            async with producer.transaction():
                await producer.send_offsets(reader)
                sent = len(cluster.requests)
                await anyio.sleep(0.1)
                assert not any(each.api == "OffsetCommit" for each in cluster.requests[sent:])
        assert await committed_in(cluster, [T0]) == {0: 2}
