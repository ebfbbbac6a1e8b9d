"""The clock: the running loop's own, whichever loop that is."""

from __future__ import annotations

import asyncio
import time

import trio

from pykafka08.clock import clock


class Standing(asyncio.SelectorEventLoop):
    """A loop whose time the tests would set."""

    def time(self) -> float:
        return 5.0


async def _asked() -> object:
    return clock()


def test_asyncio_is_asked_without_a_detour() -> None:
    assert asyncio.run(_asked()) is time.monotonic


def test_a_loop_with_a_clock_of_its_own_is_asked_itself() -> None:
    loop = Standing()
    try:
        loop.call_soon(loop.stop)
        loop.run_forever()  # nothing here waits for a time that does not pass
        found = loop.run_until_complete(_asked())
        assert callable(found)
        assert found() == 5.0
    finally:
        loop.close()


def test_trio_has_its_own() -> None:
    async def read() -> bool:
        now = clock()
        return trio.current_time() <= now() <= trio.current_time()

    assert trio.run(read)
