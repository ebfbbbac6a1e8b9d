"""Standard input and output of the tools, which run on asyncio alone: so these tests do."""

from __future__ import annotations

import io
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from pykafka08.cli.formats import RecordFormat
from pykafka08.cli.notes import note
from pykafka08.cli.printer import Printer
from pykafka08.cli.progress import Progress
from pykafka08.cli.streams import Output, OutputClosedError, ends_with_its_peer, read_chunks, split_lines, wait_for_end
from pykafka08.records.record import Record

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    """``[read end, write end]``; what a test closes it replaces by -1."""
    ends = list(os.pipe())
    yield ends
    for fd in ends:
        if fd >= 0:
            os.close(fd)


def close(ends: list[int], index: int) -> None:
    os.close(ends[index])
    ends[index] = -1


async def test_more_than_a_pipe_holds_is_written_while_others_run(pipe: list[int]) -> None:
    data = bytes(range(256)) * 4096
    taken = bytearray()

    async def read() -> None:
        while len(taken) < len(data):
            taken.extend(os.read(pipe[0], 10_000))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await Output(pipe[1]).write(data)
    assert taken == data


async def test_a_full_pipe_does_not_hold_up_a_cancellation(pipe: list[int]) -> None:
    with anyio.move_on_after(0.05) as scope:
        await Output(pipe[1]).write(b"x" * 10_000_000)
    assert scope.cancelled_caught


async def test_a_reader_that_went_away_is_an_error_of_its_own(pipe: list[int]) -> None:
    close(pipe, 0)
    with pytest.raises(OutputClosedError):
        await Output(pipe[1]).write(b"x")


async def test_a_reader_that_goes_away_is_seen_without_writing(pipe: list[int]) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Output(pipe[1]).wait_closed)
        await anyio.lowlevel.checkpoint()
        close(pipe, 0)


async def test_a_file_is_written_whole(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        await Output(file.fileno()).write(b"a" * 100_000)
    assert (tmp_path / "out").stat().st_size == 100_000


async def test_the_null_device_is_always_ready() -> None:
    fd = os.open(os.devnull, os.O_RDWR)
    try:
        await Output(fd).write(b"a" * 100_000)
        assert [chunk async for chunk in read_chunks(fd)] == []
        assert not ends_with_its_peer(fd)
    finally:
        os.close(fd)


async def test_chunks_come_as_they_arrive(pipe: list[int]) -> None:
    chunks = read_chunks(pipe[0])
    os.write(pipe[1], b"one")
    assert await anext(chunks) == b"one"
    os.write(pipe[1], b"two")
    assert await anext(chunks) == b"two"
    close(pipe, 1)
    assert [chunk async for chunk in chunks] == []


async def test_the_end_of_a_pipe_is_waited_for(pipe: list[int]) -> None:
    assert ends_with_its_peer(pipe[0])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_end, pipe[0])
        os.write(pipe[1], b"whatever")
        await anyio.lowlevel.checkpoint()
        close(pipe, 1)


def test_a_descriptor_that_is_not_open_has_no_peer() -> None:
    assert not ends_with_its_peer(10_000)


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a\nb"], [b"a", b"b"]),
        ([b"a", b"b\nc", b"d"], [b"ab", b"cd"]),
        ([b"a\n", b"\n", b"b\r\n"], [b"a", b"", b"b\r"]),
        ([b"\n"], [b""]),
        ([], []),
    ],
)
async def test_lines(chunks: list[bytes], lines: list[bytes]) -> None:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    assert [line async for group in split_lines(source()) for line in group] == lines


class Everything:
    """A plan to print all values."""

    limit = 10.0
    record_format = RecordFormat()
    skips_errors = False


class Values(list[Record]):
    def values(self) -> list[bytes | None]:
        return [record.value for record in self]


async def printed(output: Output) -> None:
    printer = Printer(Everything(), output, Progress(False, lambda _: None))
    await printer.print(Values([Record("t", 0, 0, 1, 0, None, b"\x1b[2J bad \xc3\xa9")]))


async def test_control_characters_of_payloads_are_escaped_only_on_a_terminal(pipe: list[int]) -> None:
    ours, theirs = os.openpty()
    try:
        await printed(Output(theirs))
        assert os.read(ours, 1000) == b"\\x1b[2J bad \xc3\xa9\r\n"  # the terminal makes the carriage return
    finally:
        os.close(ours)
        os.close(theirs)
    await printed(Output(pipe[1]))
    assert os.read(pipe[0], 1000) == b"\x1b[2J bad \xc3\xa9\n"


async def test_control_characters_in_notes_are_escaped_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, expected in ((True, "\\x1b[2J said the broker\n"), (False, "\x1b[2J said the broker\n")):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda answer=is_terminal: answer, raising=False)
        monkeypatch.setattr("sys.stderr", stream)
        note("\x1b[2J said the broker")
        assert stream.getvalue() == expected
