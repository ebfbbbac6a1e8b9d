"""The monotonic clock of whatever event loop runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import anyio

__all__ = ["clock", "current_time"]


def clock() -> Callable[[], float]:
    """The running event loop's clock, in seconds, called as directly as can be: every single record asks for the time.

    asyncio's own loops have ``time.monotonic`` behind a method, which is left out; a loop that overrides it, as
    those of tests do, or that has its own, as uvloop, is asked itself.
    """
    loop = asyncio._get_running_loop()
    if loop is None:
        return anyio.current_time
    if getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time:
        return time.monotonic
    return loop.time


def current_time() -> float:
    """The running event loop's time in seconds; unlike anyio's, it is also available outside any task."""
    return clock()()
