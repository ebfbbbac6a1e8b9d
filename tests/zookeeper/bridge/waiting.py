"""Waiting for what a bridge tells, without a guess how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio

from pykafka08.zookeeper.bridge import ZooKeeper
from pykafka08.zookeeper.events import Event

__all__ = ["LONG_SESSION_MS", "event_of", "until"]

E = TypeVar("E")

LONG_SESSION_MS = 30_000
"""For tests in which no session is to end, however busy the machine is."""
PATIENCE = 60.0


async def event_of(zk: ZooKeeper, kind: type[E]) -> E:
    """The next event of a kind; others before it are passed over."""
    while True:
        event: Event | None = await zk.next_event(PATIENCE)
        assert event is not None, f"no {kind.__name__} came"
        if isinstance(event, kind):
            return event


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nobody sets an event for it
            await anyio.sleep(0.01)
