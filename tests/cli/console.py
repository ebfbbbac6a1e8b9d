"""Running the console tools as processes, as people do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import anyio

__all__ = ["Finished", "command", "console", "start", "until"]

DEADLINE_S = 120


class Finished(NamedTuple):
    """How a tool ended, and what it wrote."""

    status: int
    out: bytes
    err: str


def command(*words: str) -> list[str]:
    """``pykafka08 WORD...`` of this very tree."""
    return [sys.executable, "-W", "error", "-m", "pykafka08", *words]


async def console(*words: str, given: bytes = b"") -> Finished:
    """Run a tool to its end with ``given`` as standard input."""
    with anyio.fail_after(DEADLINE_S):
        run = await anyio.run_process(command(*words), input=given, check=False)
    return Finished(run.returncode, run.stdout, run.stderr.decode())


def start(*words: str, **streams: int) -> subprocess.Popen[bytes]:
    """Start a tool; its three streams are pipes unless said otherwise."""
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    return subprocess.Popen(command(*words), bufsize=0, **{**pipes, **streams})  # type: ignore[call-overload,no-any-return]


async def until(condition: Callable[[], bool]) -> None:
    """Return when ``condition()`` is true of something that another process brings about."""
    with anyio.fail_after(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what another process does sets no event here
            await anyio.sleep(0.01)
