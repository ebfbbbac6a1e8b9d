"""Standard input and output without ever blocking the event loop.

The tools run on asyncio.  A pipe or terminal that the other side does not read would stop a plain ``write`` for as
long, and with it every connection; a pipe is therefore written in pieces that the kernel takes at once, and waited for
between.  Where the system cannot poll (Windows), plain calls are used.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from collections.abc import AsyncIterator, Callable

import anyio.lowlevel

from pykafka08.errors import KafkaError

__all__ = [
    "Output",
    "OutputClosedError",
    "ends_with_its_peer",
    "read_chunks",
    "split_lines",
    "standard_input",
    "standard_output",
    "wait_for_end",
]

CHUNK = 64 * 1024
PIECE: int = getattr(select, "PIPE_BUF", 512)
"""Bytes that a pipe takes without blocking once it is reported ready."""


class OutputClosedError(KafkaError):
    """Nobody reads standard output any more: the tool's work is done."""


def standard_output() -> Output:
    """Records go here; a KafkaError if the process was started without it."""
    if sys.stdout is None:
        raise KafkaError("standard output is not open")
    return Output(sys.stdout.fileno())


def standard_input() -> int:
    """Its file descriptor; a KafkaError if the process was started without it."""
    if sys.stdin is None:
        raise KafkaError("standard input is not open")
    return sys.stdin.fileno()


def _can_wait(fd: int) -> bool:
    """True for pipes, sockets and terminals; files and devices such as /dev/null are always ready."""
    mode = os.fstat(fd).st_mode
    return hasattr(select, "poll") and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd))


def ends_with_its_peer(fd: int) -> bool:
    """True if ``fd`` is a pipe or socket: its end means that whoever held the other side is gone."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class Output:
    """Writes bytes to a file descriptor; :class:`OutputClosedError` when nobody reads it any more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.is_terminal = os.isatty(fd)
        self._poll = None
        if _can_wait(fd):
            self._poll = select.poll()
            self._poll.register(fd, select.POLLOUT)

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if self._poll is None:
                view = view[self._write(view) :]
            elif self._poll.poll(0):
                view = view[self._write(view[:PIECE]) :]
            else:
                await self._wait_writable()

    def _write(self, view: memoryview) -> int:
        try:
            return os.write(self._fd, view)
        except (BrokenPipeError, ConnectionResetError):
            raise OutputClosedError("standard output was closed") from None
        except OSError as error:
            raise KafkaError(f"standard output cannot be written: {error.strerror}") from error

    async def _wait_writable(self) -> None:
        loop = asyncio.get_running_loop()
        await _when_ready(self._fd, loop.add_writer, loop.remove_writer)

    async def wait_closed(self) -> None:
        """Return when a pipe's reader is gone, which no write would tell while there is nothing to write."""
        if self._poll is None or not stat.S_ISFIFO(os.fstat(self._fd).st_mode):
            await anyio.sleep_forever()
        await _wait_readable(self._fd)


async def _when_ready(fd: int, add: Callable[[int, Callable[[], None]], None], remove: Callable[[int], object]) -> None:
    ready = asyncio.Event()
    add(fd, ready.set)
    try:
        await ready.wait()
    finally:
        remove(fd)


async def _wait_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    await _when_ready(fd, loop.add_reader, loop.remove_reader)


async def read_chunks(fd: int, size: int = CHUNK) -> AsyncIterator[bytes]:
    """What arrives on ``fd``, as it arrives, until its end."""
    waits = _can_wait(fd)
    while True:
        if waits:
            await _wait_readable(fd)
        else:
            await anyio.lowlevel.checkpoint()
        chunk = os.read(fd, size)
        if not chunk:
            return
        yield chunk


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """The lines of each chunk, without their ``\\n``; a last line may lack it."""
    rest: list[bytes] = []
    async for chunk in chunks:
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest.append(chunk)
            continue
        lines = b"".join([*rest, head]).split(b"\n")
        rest = [tail] if tail else []
        yield lines
    if rest:
        yield [b"".join(rest)]


async def wait_for_end(fd: int) -> None:
    """Return at the end of ``fd``; whatever comes before it is dropped."""
    async for _ in read_chunks(fd):
        pass
