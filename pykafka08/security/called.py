"""Calls the application's functions for passwords and tokens."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio.to_thread

__all__ = ["called"]


async def called(function: Callable[[], Any]) -> Any:
    """The result of a plain or async function.  A plain one runs in a thread, because it may block."""
    if _is_async(function):
        return await function()
    # In a tuple, because trio refuses functions that return a coroutine.
    (answer,) = await anyio.to_thread.run_sync(lambda: (function(),), abandon_on_cancel=True)
    return await answer if inspect.isawaitable(answer) else answer


def _is_async(function: Callable[[], Any]) -> bool:
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
