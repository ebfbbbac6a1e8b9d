"""A mirror that runs for long, or after long: what brokers forget, who else writes, machines that sleep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08 import EmbeddedCluster, Producer, TopicPartition
from pykafka08.admin import Admin
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import MirrorError
from pykafka08.mirror import Mirror, MirrorReport
from pykafka08.mirror.checkpoint import Checkpoint
from pykafka08.mirror.tenure import Tenure
from tests.mirror.embedded import fill, held

pytestmark = pytest.mark.anyio

DEADLINE_S = 90
GROUP = "pykafka08-mirror-mirror"
PARTITIONS = [TopicPartition("t", number) for number in range(2)]


async def once(source: EmbeddedCluster, target: EmbeddedCluster) -> MirrorReport:
    with anyio.fail_after(DEADLINE_S):
        async with Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"]) as mirror:
            return await mirror.run()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not await is_so():  # noqa: ASYNC110 - others' doing
            await anyio.sleep(0.02)


async def marks(admin: Admin) -> list[str | None]:
    kept = await admin.list_group_offsets(GROUP, PARTITIONS)
    found = [Checkpoint.parse(told.offset, told.metadata) for told in kept.values()]
    return [each.by for each in found if each is not None]


@pytest.mark.parametrize("new", ["4.3", "0.10.2"])
async def test_every_run_keeps_all_its_places_anew(new: str) -> None:
    async with EmbeddedCluster(topics={"t": 2}) as source, EmbeddedCluster(version=new) as target:
        await fill(source, "t", 0, 10)
        await once(source, target)
        async with Admin(target.bootstrap_servers) as admin:
            before = await marks(admin)
            assert len(before) == 2
            await once(source, target)
            after = await marks(admin)
            assert len(after) == 2
            assert not set(before) & set(after)


async def test_places_that_brokers_forget_are_kept_again_while_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka08.mirror.copying.RENEW_S", 0.1)
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.1)
    async with EmbeddedCluster(topics={"t": 2}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 10)
        copied = anyio.Event()
        async with (
            Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"]) as mirror,
            Admin(target.bootstrap_servers) as admin,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(lambda: mirror.run(follow=True, on_progress=lambda report: report.lag or copied.set()))
            with anyio.fail_after(DEADLINE_S):
                await copied.wait()
                assert await admin.delete_groups([GROUP]) == {}

            async def is_back() -> bool:
                return len(await marks(admin)) == 2

            await until(is_back)
            tasks.cancel_scope.cancel()
        assert (await once(source, target)).records == 0


@pytest.mark.parametrize("deleted", [50, 101])
async def test_without_its_place_and_the_first_copies_it_says_so(deleted: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 100)
        await once(source, target)
        target.delete_records("t", 0, deleted)
        async with Admin(target.bootstrap_servers) as admin:
            assert await admin.delete_groups([GROUP]) == {}
        with pytest.raises(MirrorError, match=r"no place of this mirror is kept.*restart"):
            await once(source, target)


async def test_a_program_that_writes_between_the_copies_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.1)
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 50)
        copied = anyio.Event()

        async def follow() -> None:
            async with Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"]) as mirror:
                with pytest.raises(MirrorError, match="another program, or a mirror of another name"):
                    await mirror.run(follow=True, on_progress=lambda report: report.lag or copied.set())

        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await copied.wait()
                await fill(target, "t", 1000, 1001)
                await fill(source, "t", 50, 60)
        assert len((await held(target, "t"))[0]) == 51


async def test_a_transaction_that_stays_open_between_the_copies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.1)
    monkeypatch.setattr("pykafka08.mirror.copying.LOOK_S", 0.5)
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 50)
        copied, waited = anyio.Event(), anyio.Event()
        troubles: list[str] = []

        def look(report: MirrorReport) -> None:
            if not report.lag:
                copied.set()
            if report.trouble is not None:
                troubles.append(report.trouble)
                waited.set()

        async def follow() -> None:
            async with Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"]) as mirror:
                await mirror.run(follow=True, on_progress=look)

        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await copied.wait()
                async with (
                    Producer(target.bootstrap_servers, transactional_id="other") as other,
                    other.transaction(),
                ):
                    await other.send("t", b"another's")
                    await fill(source, "t", 50, 60)
                    await waited.wait()
                    tasks.cancel_scope.cancel()
        assert "others have written, were not read within 0.5 s: their transaction may be open" in troubles[0]
        assert f"[broker {target.bootstrap_servers} (id 0), topic 't', partition 0, offset " in troubles[0]


async def test_of_two_mirrors_into_one_topic_one_ends_and_nothing_is_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.1)
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 50)
        ended: list[MirrorError] = []
        has_ended = anyio.Event()

        async def follow(name: str, follows: anyio.Event) -> None:
            servers = source.bootstrap_servers, target.bootstrap_servers
            async with Mirror(*servers, topics=["t"], name=name) as mirror:
                try:
                    await mirror.run(follow=True, on_progress=lambda report: report.lag or follows.set())
                except MirrorError as error:
                    ended.append(error)
                    has_ended.set()

        async def has_all() -> bool:
            return len((await held(target, "t"))[0]) >= 100

        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                for name in "ab":
                    follows = anyio.Event()
                    tasks.start_soon(follow, name, follows)
                    await follows.wait()
                await fill(source, "t", 50, 100)
                await has_ended.wait()
                await until(has_all)
                tasks.cancel_scope.cancel()
        (error,) = ended
        assert "a mirror of another name" in str(error)
        assert await held(target, "t") == await held(source, "t")


@pytest.mark.parametrize("version", ["2.4", "1.1"])
async def test_a_transaction_that_took_too_long_is_begun_again(version: str) -> None:
    """The coordinator aborts it and fences its producer, as if there were another mirror."""
    async with EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster(version=version) as target:
        await fill(source, "t", 0, 50)
        target.faults.answer("EndTxn", ErrorCode.INVALID_PRODUCER_EPOCH, skip=1)  # the first one keeps the places
        assert (await once(source, target)).records == 50
        assert await held(target, "t") == await held(source, "t")


def test_another_mark_ends_the_tenure_and_so_does_being_fenced_twice() -> None:
    tenure = Tenure("own")
    tenure.begins()
    tenure.found("older")
    tenure.fenced()
    assert tenure.is_in_doubt
    assert not tenure.is_over(["older", "own"])
    assert tenure.is_over(["older", "new"])
    tenure.marked()
    assert not tenure.is_in_doubt
    tenure.fenced()
    assert tenure.is_over(["older"])
    assert not tenure.is_over(["own", "own"])
    tenure.fenced()
    assert tenure.is_over(["own"])
