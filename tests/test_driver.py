"""The waiter, the wake-up, the loop around a machine, and the task tree."""

from __future__ import annotations

import asyncio
import logging
import sys

import anyio
import anyio.lowlevel
import pytest

from pykafka08.driver import Driver, TaskTree, Waiter, Wakeup, library_logger
from pykafka08.errors import ClientFailedError, ClosedError

pytestmark = pytest.mark.anyio


async def test_a_waiter_wakes_all_its_awaiters() -> None:
    waiter: Waiter[int] = Waiter()
    seen: list[int] = []

    async def wait() -> None:
        seen.append(await waiter)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert waiter.set_result(7)
        assert not waiter.set_result(8)
    assert seen == [7, 7, 7]
    assert await waiter == 7


async def test_a_cancelled_awaiter_leaves_the_waiter_to_the_others() -> None:
    waiter: Waiter[str] = Waiter()
    with anyio.move_on_after(0.01):
        await waiter
    assert not waiter.is_done
    waiter.set_result("later")
    assert await waiter == "later"


async def test_an_error_is_raised_at_each_await_and_told_to_callbacks() -> None:
    waiter: Waiter[None] = Waiter()
    told: list[BaseException | None] = []
    waiter.add_done_callback(lambda ended: told.append(ended.error))
    error = ValueError("no")
    waiter.set_exception(error)
    waiter.add_done_callback(lambda ended: told.append(ended.error))
    assert told == [error, error]
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await waiter


async def test_a_wakeup_set_before_the_wait_is_not_lost() -> None:
    wakeup = Wakeup()
    wakeup.set()
    await wakeup.wait()
    started = anyio.current_time()
    await wakeup.wait(started + 0.02)
    assert anyio.current_time() >= started + 0.02


async def test_a_kept_timer_serves_later_waits_and_moves_for_earlier_ones() -> None:
    wakeup = Wakeup(keeps_timer=True)
    started = anyio.current_time()

    async def wait_and_be_woken(until: float) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(wakeup.wait, until)
            await anyio.wait_all_tasks_blocked()
            wakeup.set()

    await wait_and_be_woken(started + 0.02)  # leaves a timer that is too early for the next wait
    await wakeup.wait(started + 0.04)
    assert anyio.current_time() >= started + 0.04
    await wait_and_be_woken(started + 3600)
    await wakeup.wait(started + 0.05)  # would last an hour
    await wakeup.wait(started)  # over already
    with anyio.move_on_after(0.01) as scope:
        await wakeup.wait(started + 3600)
    assert scope.cancelled_caught
    wakeup.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_wakeup_leaves_no_timer_behind() -> None:
    timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]

    def pending() -> int:
        return sum(not timer.cancelled() for timer in timers)

    before = pending()
    wakeup = Wakeup(keeps_timer=True)
    for _ in range(3):
        async with anyio.create_task_group() as group:
            group.start_soon(wakeup.wait, anyio.current_time() + 3600)
            await anyio.wait_all_tasks_blocked()
            assert pending() == before + 1
            wakeup.set()
    assert pending() == before + 1, "one timer for all the waits"
    wakeup.close()
    assert pending() == before
    with anyio.CancelScope() as scope:
        scope.cancel()
        await wakeup.wait(anyio.current_time() + 3600)
    assert pending() == before


class CountDown:
    def __init__(self) -> None:
        self.polls = 0
        self.asked = False

    def poll(self, now: float) -> list[str]:
        self.polls += 1
        return ["go"] if self.asked else []

    def next_wakeup(self) -> float | None:
        return None


async def test_a_driver_performs_what_its_machine_says() -> None:
    machine = CountDown()
    done = anyio.Event()
    driver = Driver(machine, lambda action: done.set())
    async with anyio.create_task_group() as group:
        group.start_soon(driver.run)
        await anyio.wait_all_tasks_blocked()
        assert machine.polls == 1
        machine.asked = True
        driver.wake()
        await done.wait()
        group.cancel_scope.cancel()


async def test_a_dead_task_is_raised_with_its_cause() -> None:
    tree = TaskTree()
    told: list[ClientFailedError] = []
    tree.on_failure(told.append)

    async def die() -> None:
        raise RuntimeError("boom")

    async with tree:
        tree.check()
        tree.start("victim", die)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(ClientFailedError, match="'victim' ended") as caught:
            tree.check()
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert told == [caught.value]
        tree.on_failure(told.append)
        assert told == [caught.value] * 2


async def test_a_death_in_a_task_group_is_told_by_its_cause() -> None:
    async def die() -> None:
        raise RuntimeError("boom")

    async def run_group() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(die)

    async with TaskTree() as tree:
        tree.start("victim", run_group)
        await anyio.wait_all_tasks_blocked()
        assert tree.failure is not None
        assert isinstance(tree.failure.__cause__, RuntimeError)


async def test_nothing_outlives_the_tree() -> None:
    tree = TaskTree()
    ended: list[str] = []

    async def stay() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stay")

    with pytest.raises(ClosedError, match="async with"):
        tree.check()
    async with tree:
        tree.start("stay", stay)
        await anyio.wait_all_tasks_blocked()
    assert ended == ["stay"]
    with pytest.raises(ClosedError, match="closed"):
        tree.check()
    with pytest.raises(ClosedError):
        tree.start("late", stay)


def test_a_tree_whose_tasks_the_event_loop_cancels_has_failed() -> None:
    """As at the end of asyncio.run(), where a client that another task has open would wait for its own tasks."""
    told: list[ClientFailedError] = []

    async def hold(entered: asyncio.Event) -> None:
        async with TaskTree() as tree:
            tree.start("stay", anyio.sleep_forever)
            failure: Waiter[None] = Waiter()
            tree.on_failure(lambda error: (told.append(error), failure.set_result(None)))
            entered.set()
            try:
                await anyio.sleep_forever()
            finally:
                await failure  # as a close that waits for an answer

    async def main() -> None:
        entered = asyncio.Event()
        main.task = asyncio.create_task(hold(entered))  # type: ignore[attr-defined]
        await entered.wait()

    asyncio.run(main())
    assert [type(each.__cause__) for each in told] == [ClosedError]


async def test_a_tree_is_left_in_any_task_and_scope() -> None:
    tree = TaskTree()
    ended: list[str] = []

    async def stay() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stay")

    async def enter() -> None:
        await tree.__aenter__()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(enter)
    tree.start("stay", stay)
    await anyio.wait_all_tasks_blocked()
    with anyio.fail_after(30):
        await tree.__aexit__()
    assert ended == ["stay"]
    await anyio.lowlevel.checkpoint()


async def test_logging_prints_nothing_unless_configured(capfd: pytest.CaptureFixture[str]) -> None:
    log = library_logger("test")
    log.warning("nobody.listens", broker="h:1")
    assert capfd.readouterr() == ("", "")


HEARD = """
import logging, sys
from pykafka08.logs import is_prepared, library_logger, prepare

log = library_logger("test")
log.debug("not.heard")
unheard = is_prepared(), "structlog" in sys.modules
logging.basicConfig(stream=sys.stdout, format="%(message)s")
heard = is_prepared()
prepare()
print(*unheard, heard, is_prepared(), "structlog" in sys.modules)
log.warning("heard", partition=0)
"""


async def test_structlog_is_loaded_where_somebody_listens_and_before_there_is_something_to_say() -> None:
    done = await anyio.run_process([sys.executable, "-c", HEARD])
    assert done.stdout.decode().splitlines() == ["True False False True True", "heard partition=0"]


async def test_logging_reaches_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="pykafka08"):
        log = library_logger("test")
        log.debug("nothing.worth", broker="h:1")
        log.info("something.happened", broker="h:1", cause="100% 'gone'\nfor good", partitions=0, reason="")
        log.info("plain")
    first, second = caplog.records
    assert first.getMessage() == (
        """something.happened broker=h:1 cause="100% 'gone'\\nfor good" partitions=0 reason=''"""
    )
    assert {name: vars(first)[name] for name in ("event", "broker", "partitions")} == {
        "event": "something.happened",
        "broker": "h:1",
        "partitions": 0,
    }
    assert second.getMessage() == "plain"


async def test_the_level_debug_is_heard_from_the_moment_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    log = library_logger("test")
    log.debug("not.heard")
    with caplog.at_level(logging.DEBUG, logger="pykafka08"):
        log.debug("a.request", node_id=1)
    log.debug("not.heard")
    assert [record.getMessage() for record in caplog.records] == ["a.request node_id=1"]


async def test_an_exception_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    library_logger("test").error("it.failed", exc_info=ValueError("why"), broker=1)
    assert caplog.records[0].getMessage() == "it.failed broker=1"
    assert "ValueError: why" in caplog.text
