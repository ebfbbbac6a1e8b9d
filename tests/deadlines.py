"""Async tests end by a cancellation inside their event loop, a little before pytest-timeout would end them.

pytest-timeout raises wherever the main thread is. Inside a loop that can be anywhere, and under trio the loop's runner
then waits for ever for a loop that no longer runs: one test that hangs would hang the whole run.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

SHARE = 0.9
"""Part of the test's time-out after which it is cancelled; the rest is for its own cleaning up."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    if not isinstance(item, pytest.Function) or "anyio_backend" not in item.fixturenames:
        return
    limit = time_limit(item)
    if inspect.iscoroutinefunction(item.obj):
        item.obj = bounded(item.obj, limit * SHARE)


def time_limit(item: pytest.Item) -> float:
    """The test's own `timeout` marker, in seconds, else the command line's, else the configuration's."""
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0] if marker.args else marker.kwargs["timeout"])
    return float(item.config.getoption("timeout") or item.config.getini("timeout"))


def bounded(test: Callable[..., Coroutine[Any, Any, None]], seconds: float) -> Callable[..., Coroutine[Any, Any, None]]:
    """The test, cancelled after so many seconds; the failure shows where it waited."""

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        stack = ""
        with anyio.move_on_after(seconds) as scope:
            try:
                await test(*args, **kwargs)
            except anyio.get_cancelled_exc_class():
                stack = traceback.format_exc()
                raise
        if scope.cancelled_caught:
            pytest.fail(f"the test did not end in {seconds:g} s and was cancelled:\n{stack}", pytrace=False)

    return run
