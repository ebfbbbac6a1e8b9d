"""Waits for a wake-up end when it is set, or at their deadline, whatever timer the wait before has left."""

from __future__ import annotations

import asyncio
import random

import pytest

from pykafka08.driver import Wakeup
from tests.virtual_loop import VirtualLoop


async def waits(numbers: random.Random) -> None:
    loop, wakeup = asyncio.get_running_loop(), Wakeup(keeps_timer=True)
    for _ in range(100):
        started = loop.time()
        deadline = started + numbers.choice([-1, 0, 1, 2, 5, 30, numbers.uniform(0, 40)])
        sets = [loop.call_at(started + numbers.uniform(0, 10), wakeup.set) for _ in range(numbers.choice([0, 0, 1, 2]))]
        if numbers.random() < 0.15:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wakeup.wait(started + 100), numbers.choice([0.5, 3]) if not sets else 0)
        elif not sets and numbers.random() < 0.2:
            wakeup.set()
            await wakeup.wait(deadline)
            assert loop.time() == started
        else:
            await wakeup.wait(deadline)
            due = min([deadline, *[each.when() for each in sets]])
            assert loop.time() == pytest.approx(max(started, due), abs=1e-6)
        for each in sets:
            each.cancel()
    wakeup.close()


@pytest.mark.parametrize("seed", range(20))
def test_waits_end_when_they_are_due(seed: int) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(waits(random.Random(seed)))
    finally:
        loop.close()
