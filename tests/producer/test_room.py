"""The line of those who wait for room: first come, first served; those who leave give back what they were promised."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pykafka08.errors import ClosedError
from pykafka08.producer.room import Room
from pykafka08.producer.waits import wait_for_room

pytestmark = pytest.mark.anyio


class Store:
    """Bytes in use, taken by those who were let in."""

    def __init__(self, capacity: int, used: int) -> None:
        self.used = used
        self.room = Room(capacity, lambda: self.used)
        self.served: list[str] = []

    async def take(self, name: str, size: int) -> None:
        assert await wait_for_room(self.room, size, math.inf)
        assert self.room.has(size)
        self.used += size
        self.served.append(name)

    def free(self, size: int) -> None:
        self.used -= size
        self.room.grant()


async def settle() -> None:
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


async def start_in_turn(group: anyio.abc.TaskGroup, *calls: Callable[[], Awaitable[None]]) -> None:
    for call in calls:
        group.start_soon(call)
        await settle()


async def test_first_come_first_served_even_if_a_later_one_would_fit() -> None:
    store = Store(100, used=100)
    async with anyio.create_task_group() as group:
        await start_in_turn(group, lambda: store.take("large", 80), lambda: store.take("small", 10))
        store.free(50)
        await settle()
        assert store.served == []
        assert not store.room.is_free(10)
        store.free(30)
        await settle()
        assert store.served == ["large"]
        store.free(10)
        await settle()
        assert store.served == ["large", "small"]
    assert (store.used, store.room.promised) == (100, 0)


async def test_promised_room_is_taken_before_its_caller_has_run() -> None:
    store = Store(100, used=100)
    async with anyio.create_task_group() as group:
        await start_in_turn(group, lambda: store.take("a", 60))
        store.free(100)
        assert not store.room.has(60)
        assert store.room.has(40)


async def test_a_time_that_has_passed_leaves_the_line() -> None:
    store = Store(100, used=100)
    assert not await wait_for_room(store.room, 10, anyio.current_time() + 0.01)
    assert not store.room.has_line
    store.free(100)
    assert store.room.is_free(100)


async def test_one_cancelled_before_and_one_after_its_promise() -> None:
    store = Store(100, used=100)
    async with anyio.create_task_group() as outer:
        async with anyio.create_task_group() as group:
            await start_in_turn(group, lambda: store.take("waits", 100), lambda: store.take("waits too", 100))
            group.cancel_scope.cancel()
        assert not store.room.has_line
        async with anyio.create_task_group() as group:
            await start_in_turn(group, lambda: store.take("promised", 100))
            await start_in_turn(outer, lambda: store.take("behind", 30))
            store.free(100)
            group.cancel_scope.cancel()
            # At the moment of its promise it takes its room, or leaves it to the next: nothing is lost either way.
        await settle()
        assert store.served in (["behind"], ["promised"])
        if store.served == ["promised"]:
            store.free(100)
    assert store.served[-1] == "behind"
    assert (store.room.promised, store.used) == (0, 30)


async def test_when_there_will_never_be_room_again_all_are_told() -> None:
    store = Store(100, used=100)
    told = []

    async def wait() -> None:
        try:
            await wait_for_room(store.room, 10, math.inf)
        except ClosedError as error:
            told.append(error)

    async with anyio.create_task_group() as group:
        await start_in_turn(group, wait, wait)
        store.room.fail(ClosedError("closed"))
    assert len(told) == 2
    assert (store.room.promised, store.room.has_line) == (0, False)
