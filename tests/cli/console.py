"""Running the console tools: as processes, as people do, or in this process, which takes far less time."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import anyio
import anyio.to_thread
import pytest

from pykafka08.cli import exits
from pykafka08.cli.main import main
from pykafka08.errors import KafkaError

__all__ = ["Finished", "command", "console", "console_here", "run_here", "start", "until"]

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


def ignore(error: BaseException) -> None:
    """The default of ``on_error``."""


async def console_here(
    *words: str, given: bytes = b"", on_error: Callable[[BaseException], object] = ignore
) -> Finished:
    """:func:`run_here` in a thread, beside what the test's own event loop serves; one at a time."""
    return await anyio.to_thread.run_sync(partial(run_here, *words, given=given, on_error=on_error))


def run_here(*words: str, given: bytes = b"", on_error: Callable[[BaseException], object] = ignore) -> Finished:
    """Run a tool to its end in this process, with its own event loop, files as its streams, and without its signals.

    ``on_error`` gets the error that ends it. Log lines and warnings of the whole process are written to its standard
    error too.
    """
    describe = exits.describe

    def told(error: KafkaError, options: argparse.Namespace | None = None) -> str:
        on_error(error)
        return describe(error, options)

    async def supervised(work: exits.Work) -> int:
        with anyio.fail_after(DEADLINE_S):  # here, because no thread can be stopped from outside
            return await work(exits.Interrupt())

    temporary = partial(tempfile.TemporaryFile, "w+", encoding="utf-8", newline="")
    with temporary() as inlet, temporary() as out, temporary() as err, pytest.MonkeyPatch.context() as patch:
        inlet.buffer.write(given)
        inlet.seek(0)
        for name, stream in {"stdin": inlet, "stdout": out, "stderr": err}.items():
            patch.setattr(sys, name, stream)
        patch.setattr(exits, "_supervised", supervised)
        patch.setattr(exits, "describe", told)
        try:
            status = main(words)
        except SystemExit as end:  # of the parser
            status = end.code if isinstance(end.code, int) else 1
        out.flush()
        err.flush()
        out.seek(0)
        err.seek(0)
        return Finished(status, bytes(out.buffer.read()), err.read())


def start(*words: str, **streams: int) -> subprocess.Popen[bytes]:
    """Start a tool; its three streams are pipes unless said otherwise."""
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    return subprocess.Popen(command(*words), bufsize=0, **{**pipes, **streams})  # type: ignore[call-overload,no-any-return]


async def until(condition: Callable[[], bool]) -> None:
    """Return when ``condition()`` is true of something that another process brings about."""
    with anyio.fail_after(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what another process does sets no event here
            await anyio.sleep(0.01)
