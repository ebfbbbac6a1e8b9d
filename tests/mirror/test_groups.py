"""Groups that are carried over: what is wrong with one does not end a mirror that follows, and is always said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from pykafka08 import Consumer, EmbeddedCluster, TopicPartition
from pykafka08.admin import Admin
from pykafka08.mirror import GroupMove, Mirror, MirrorReport
from pykafka08.mirror import carrying as carrying_module
from pykafka08.mirror import groups as groups_module
from pykafka08.mirror.columns import content_of
from pykafka08.records.record import Record
from tests.mirror.embedded import fill, held

pytestmark = pytest.mark.anyio

DEADLINE_S = 90
T = TopicPartition("t", 0)
REFUSED = 29  # TOPIC_AUTHORIZATION_FAILED


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not await is_so():  # noqa: ASYNC110 - others' doing
            await anyio.sleep(0.02)


class Following:
    """A mirror that follows topic ``t`` and group ``g``, and what it said last."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
        self.mirror = Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"], groups=["g"])

    @property
    def move(self) -> GroupMove | None:
        return next(iter(self.mirror.report().groups), None)

    async def moved(self, is_so: Callable[[GroupMove], bool]) -> GroupMove:
        """The group's move, once it is so."""

        async def is_moved() -> bool:
            return self.move is not None and is_so(self.move)

        await until(is_moved)
        assert self.move is not None
        return self.move


@asynccontextmanager
async def following(
    source: EmbeddedCluster, target: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Following]:
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.05)
    run = Following(source, target)
    async with run.mirror, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: run.mirror.run(follow=True))
        yield run
        tasks.cancel_scope.cancel()


async def is_copied(target: EmbeddedCluster, count: int) -> None:
    async def has_all() -> bool:
        return len((await held(target, "t"))[0]) == count

    await until(has_all)


async def test_a_group_whose_offsets_expire_in_the_source_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        async with Admin(source.bootstrap_servers) as old:
            await old.alter_group_offsets("g", {T: 30})
            async with following(source, target, monkeypatch) as run:
                await run.moved(lambda move: move.target_offset == 30)
                await old.delete_groups(["g"])
                gone = await run.moved(lambda move: move.why_not is not None)
                assert gone.target_offset == 30
                assert "no offsets in the source" in (gone.why_not or "")
                await fill(source, "t", 100, 110)
                await is_copied(target, 110)
                await old.alter_group_offsets("g", {T: 105})
                back = await run.moved(lambda move: move.source_offset == 105)
                assert back.why_not is None


async def test_a_group_that_has_members_in_the_target_waits_and_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        async with Admin(source.bootstrap_servers) as old:
            await old.alter_group_offsets("g", {T: 30})
            async with following(source, target, monkeypatch) as run:
                await run.moved(lambda move: move.target_offset == 30)
                settings = {"group_id": "g", "enable_auto_commit": False}
                async with Consumer("t", bootstrap_servers=target.bootstrap_servers, **settings) as consumer:
                    await consumer.getone(timeout=30)
                    await old.alter_group_offsets("g", {T: 60})
                    early = await run.moved(lambda move: move.source_offset == 60)
                    assert early.target_offset is None
                    assert "member" in (early.why_not or "")
                    await fill(source, "t", 100, 110)
                    await is_copied(target, 110)
                late = await run.moved(lambda move: move.target_offset is not None)
                assert late[-2:] == (60, None)


async def test_a_commit_that_is_refused_is_no_move() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        async with Admin(source.bootstrap_servers) as old:
            await old.alter_group_offsets("g", {T: 30})
        target.faults.answer("OffsetCommit", REFUSED, times=None)
        report = await once(source, target)
        (move,) = report.groups
        assert move.target_offset is None
        assert move.why_not


async def once(source: EmbeddedCluster, target: EmbeddedCluster) -> MirrorReport:
    with anyio.fail_after(DEADLINE_S):
        async with Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"], groups=["g"]) as mirror:
            return await mirror.run()


async def test_what_could_not_be_committed_is_not_translated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    translated: list[int] = []
    translate = carrying_module.translate

    async def counted(state: object, offset: int, *ranges: object) -> tuple[int | None, str | None]:
        translated.append(offset)
        return await translate(state, offset, *ranges)  # type: ignore[arg-type]

    monkeypatch.setattr(carrying_module, "translate", counted)
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        async with Admin(source.bootstrap_servers) as old, Admin(target.bootstrap_servers) as new:
            await old.alter_group_offsets("g", {T: 30})
            target.faults.answer("OffsetCommit", REFUSED, times=5)
            async with following(source, target, monkeypatch) as run:
                await run.moved(lambda move: move.target_offset == 30)
                assert translated == [30]
                await new.alter_group_offsets("g", {T: 70})
                await old.alter_group_offsets("g", {T: 50})
                await run.moved(lambda move: "further on" in (move.why_not or ""))
                await old.alter_group_offsets("g", {T: 80})
                await run.moved(lambda move: move.target_offset == 80)
        assert translated == [30, 50, 80]


async def test_records_are_not_held_while_an_offset_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    """All between two points are read, one after the other."""
    alive = most = 0

    class Content(tuple[object, ...]):
        """Counts those of its kind."""

        def __new__(cls, record: Record) -> Content:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return super().__new__(cls, content_of(record))

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    monkeypatch.setattr(groups_module, "content_of", Content)
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 500)
        async with Admin(source.bootstrap_servers) as old:
            await old.alter_group_offsets("g", {T: 30})
        (move,) = (await once(source, target)).groups
        assert (move.target_offset, move.why_not) == (30, None)
    assert 0 < most < 10
