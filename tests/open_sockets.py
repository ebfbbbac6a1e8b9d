"""Who opened a socket that nobody closed: the garbage collector often meets it in a later test."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

__all__ = ["OPENERS"]

OPENERS = "who opened the sockets that were not closed"
"""The section of a failure's report that tells."""
FRAMES = 12
UNCLOSED = re.compile(r"unclosed (?:transport )?<\S+ fd=(\d+)")

_running = "before the first test"
_opened: dict[int, str] = {}
"""Of each file descriptor the newest opener: while a socket is not closed, nobody else gets its number."""
_open = socket.socket.__init__


def _open_and_note(self: socket.socket, *args: Any, **kwargs: Any) -> None:
    _open(self, *args, **kwargs)
    _opened[self.fileno()] = f"{_running}\n{_places(sys._getframe(1))}"


def _places(frame: FrameType | None) -> str:
    places = []
    while frame is not None and len(places) < FRAMES:
        places.append(f"  {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return "\n".join(places)


def pytest_configure() -> None:
    socket.socket.__init__ = _open_and_note  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    socket.socket.__init__ = _open  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid: str) -> None:
    global _running
    _running = nodeid


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        numbers = [int(found) for found in UNCLOSED.findall(report.longreprtext)]
        openers = [f"fd {number}: {_opened[number]}" for number in dict.fromkeys(numbers) if number in _opened]
        if openers:
            report.sections.append((OPENERS, "\n".join(openers)))
    return report
