"""The cluster's timers, on a clock of the test's own."""

from __future__ import annotations

import anyio
import pytest

from pykafka08.broker.timers import Timers
from pykafka08.errors import ClosedError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_timers_fire_in_the_order_of_their_times() -> None:
    clock, fired = Clock(), []
    timers = Timers(clock)
    for seconds in (3.0, 1.0, 2.0, 1.0):
        timers.call_after(seconds, lambda seconds=seconds: fired.append(seconds))
    assert timers.fire_due() == 101.0
    assert fired == []
    clock.now = 102.0
    assert timers.fire_due() == 103.0
    assert fired == [1.0, 1.0, 2.0]


def test_a_cancelled_timer_does_not_fire_and_wakes_nobody() -> None:
    clock, fired = Clock(), []
    timers = Timers(clock)
    timer = timers.call_after(1.0, lambda: fired.append("no"))
    timer.cancel()
    assert not timer.is_pending
    assert timers.fire_due() is None
    clock.now = 200.0
    timers.fire_due()
    assert fired == []


def test_a_timer_may_set_another_that_is_due() -> None:
    fired: list[str] = []
    timers = Timers(Clock())
    timers.call_at(99.0, lambda: (fired.append("first"), timers.call_at(98.0, lambda: fired.append("second")))[0])
    assert timers.fire_due() is None
    assert fired == ["first", "second"]


def test_before_the_cluster_runs_there_is_no_time() -> None:
    with pytest.raises(ClosedError, match="not running"):
        Timers().now()


@pytest.mark.anyio
async def test_the_task_wakes_for_an_earlier_timer() -> None:
    timers, done = Timers(), anyio.Event()
    timers.start()
    async with anyio.create_task_group() as group:
        group.start_soon(timers.run)
        timers.call_after(3600.0, done.set)
        await anyio.lowlevel.checkpoint()
        timers.call_after(0.01, done.set)
        await done.wait()
        group.cancel_scope.cancel()
