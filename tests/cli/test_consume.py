"""``pykafka08 consume`` on the embedded broker; a process where signals, pipes or the shell matter.

The tools run on asyncio alone, and so do these tests.
"""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from pykafka08 import EmbeddedCluster, NewRecord, Producer
from pykafka08.cli import copying
from pykafka08.cli.notes import note
from tests.cli.console import DEADLINE_S, command, console_here, start, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def flights(version: str = "4.3", count: int = 5) -> AsyncIterator[EmbeddedCluster]:
    """A cluster with a topic ``flights`` of one partition and ``count`` records in it."""
    async with EmbeddedCluster(version=version, topics={"flights": 1, "empty": 1}, auto_create_topics=False) as cluster:
        if count:
            async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                await producer.send_many("flights", [b"flight %d" % number for number in range(count)])
        yield cluster


def lines(first: int, last: int) -> bytes:
    return b"".join(b"flight %d\n" % number for number in range(first, last))


@pytest.mark.parametrize("version", ["0.8.0", "0.9.0", "0.10.0", "2.8", "4.3"])
async def test_records_and_nothing_else_go_to_standard_output(version: str) -> None:
    async with flights(version) as cluster:
        ran = await console_here(
            *("consume", "--bootstrap-server", cluster.bootstrap_servers, "--topic", "flights"),
            *("--from-beginning", "--max-messages", "5"),
        )
    assert ran == (0, lines(0, 5), "Processed a total of 5 messages\n")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from-beginning", "-n", "2"], lines(0, 2)),
        (["-p", "0", "-o", "3", "-n", "2"], lines(3, 5)),
        (["-p", "0", "-o", "earliest", "-n", "5"], lines(0, 5)),
        (["-p", "0", "--from-beginning", "-n", "1"], lines(0, 1)),
        (["-p", "0", "-o", "latest", "--timeout-ms", "400"], b""),
        (["-p", "0", "--timeout-ms", "400"], b""),
        (["--timeout-ms", "400"], b""),
        (["--consumer-property", "auto.offset.reset=earliest", "-n", "5"], lines(0, 5)),
        (["--from-beginning", "--formatter", "kafka.tools.NoOpMessageFormatter", "-n", "5"], b""),
    ],
)
async def test_where_it_starts_and_ends(options: list[str], expected: bytes) -> None:
    async with flights() as cluster:
        ran = await console_here("consume", "-b", cluster.bootstrap_servers, "-t", "flights", *options)
    assert (ran.status, ran.out) == (0, expected)


async def test_a_reader_that_takes_one_line_ends_it_quietly() -> None:
    async with flights(count=20_000) as cluster:
        ran = await shell(f"{tool(cluster)} --from-beginning | head -1; echo ${{PIPESTATUS[0]}}")
    assert (ran.stdout, ran.stderr) == (b"flight 0\n0\n", b"")


async def test_a_reader_that_leaves_ends_it_though_no_more_records_come() -> None:
    async with flights(count=1) as cluster:
        ran = await shell(f"{tool(cluster)} --from-beginning | head -1; echo ${{PIPESTATUS[0]}}")
    assert (ran.stdout, ran.stderr) == (b"flight 0\n0\n", b"")


async def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    async with flights() as cluster:
        ran = await shell(f"ulimit -f 0; {tool(cluster)} --from-beginning > {tmp_path}/full; echo $?")
        closed = await shell(f"{tool(cluster)} --from-beginning >&-; echo $?")
    assert ran.stdout == closed.stdout == b"1\n"
    assert b"standard output cannot be written: File too large" in ran.stderr
    assert closed.stderr.startswith(b"pykafka08 consume: standard output is not open")


def tool(cluster: EmbeddedCluster) -> str:
    return " ".join(command("consume", "-b", cluster.bootstrap_servers, "-t", "flights"))


async def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    with anyio.fail_after(DEADLINE_S):
        return await anyio.run_process(["bash", "-c", line])


async def test_each_record_is_shown_when_it_arrives() -> None:
    async with flights() as cluster, Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        with start("consume", "-b", cluster.bootstrap_servers, "-t", "flights", "--from-beginning") as process:
            assert process.stdout is not None
            try:
                for number in range(10):
                    if number >= 5:
                        await producer.send("flights", b"flight %d" % number)
                    shown = await anyio.to_thread.run_sync(process.stdout.readline)
                    assert shown == b"flight %d\n" % number
            finally:
                process.terminate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_after_closing(number: signal.Signals) -> None:
    async with flights() as cluster:
        with start("consume", "-b", cluster.bootstrap_servers, "-t", "flights", "--from-beginning") as process:
            assert process.stdout is not None
            assert await anyio.to_thread.run_sync(process.stdout.readline) == b"flight 0\n"
            process.send_signal(number)
            out, err = await anyio.to_thread.run_sync(process.communicate)
    assert process.returncode == 128 + number
    assert out == lines(1, 5)
    assert err == b"Processed a total of 5 messages\n"


async def test_include_leaves_internal_topics_out() -> None:
    async with EmbeddedCluster(version="0.9", topics={"a": 1, "__consumer_offsets": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for topic in ("a", "__consumer_offsets"):
                await producer.send(topic, topic.encode())
        options = ("--include", ".*", "--from-beginning", "--timeout-ms", "1000")
        ran = await console_here("consume", "-b", cluster.bootstrap_servers, *options)
    assert (ran.status, ran.out) == (0, b"a\n")
    assert ran.err == "no record for 1 s\nProcessed a total of 1 messages\n"


async def test_a_terminal_that_is_held_up_does_not_hold_up_the_signal() -> None:
    async with flights(count=20_000) as cluster:
        with start("consume", "-b", cluster.bootstrap_servers, "-t", "flights", "--from-beginning") as process:
            assert process.stdout is not None
            assert await anyio.to_thread.run_sync(process.stdout.read, 9) == b"flight 0\n"
            process.terminate()  # the pipe is full, and nobody reads it
            assert await anyio.to_thread.run_sync(process.wait) == 143


@pytest.mark.parametrize("options", [[], ["-vv"]])
async def test_no_broker_at_the_address(options: list[str], refusing_port: int) -> None:
    ran = await console_here("consume", "-b", f"127.0.0.1:{refusing_port}", "-t", "flights", *options)
    assert (ran.status, ran.out) == (4, b"")
    last = ran.err.splitlines()[-1]
    assert last.startswith("pykafka08 consume: ")
    assert f"127.0.0.1:{refusing_port}" in last
    assert "check the address of the brokers" in last
    assert ("Traceback" in ran.err) == bool(options)


@pytest.fixture
def refusing_port() -> Iterator[int]:
    """Bound, so that nobody else is given it meanwhile, and not listening."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def test_an_unknown_topic() -> None:
    async with flights() as cluster:
        patience = ("--consumer-property", "default.api.timeout.ms=3000")
        ran = await console_here("consume", "-b", cluster.bootstrap_servers, "-t", "nothere", *patience)
    assert (ran.status, ran.out) == (1, b"")
    assert "topic 'nothere'" in ran.err
    assert "check the name" in ran.err


@pytest.mark.parametrize("options", [[], ["--partition", "0"]])
async def test_a_topic_that_comes_late_is_told_of_and_waited_for(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def note_and_tell(text: str) -> None:
        note(text)
        told.append(text)

    async def make_topic_when_told() -> None:
        await until(lambda: bool(told))
        assert told == ["topic 'late' does not exist yet; waiting for it"]
        cluster.create_topic("late", 1)
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send("late", b"one")

    monkeypatch.setattr(copying, "note", note_and_tell)
    monkeypatch.setattr(copying, "MISSING_AFTER_S", 0.05)
    async with flights(count=0) as cluster, anyio.create_task_group() as tasks:
        words = ("consume", "-b", cluster.bootstrap_servers, "-t", "late", "--from-beginning", "-n", "1", *options)
        tasks.start_soon(make_topic_when_told)
        ran = await console_here(*words, "--consumer-property", "default.api.timeout.ms=40000")
    assert (ran.status, ran.out) == (0, b"one\n")
    assert ran.err == "topic 'late' does not exist yet; waiting for it\nProcessed a total of 1 messages\n"


async def test_a_partition_that_is_not_there() -> None:
    async with flights() as cluster:
        ran = await console_here(
            "consume", "-b", cluster.bootstrap_servers, "-t", "flights", "-p", "9", "--timeout-ms", "3000"
        )
    assert (ran.status, ran.out) == (1, b"")
    assert "partition 9" in ran.err
    assert ran.err.count("\n") == 1


async def test_a_broker_version_that_is_none() -> None:
    ran = await console_here("consume", "-b", "h:1", "-t", "t", "--command-property", "broker.version=foo")
    assert (ran.status, ran.out) == (2, b"")
    assert "broker.version='foo'" in ran.err
    assert ran.err.count("\n") == 1


async def test_the_option_new_consumer_means_nothing() -> None:
    ran = await console_here(
        "consume", "-b", "h:1", "-t", "t", "--new-consumer", "--command-property", "broker.version=foo"
    )
    assert "broker.version='foo'" in ran.err
    assert "new-consumer" not in ran.err


async def test_wrong_usage() -> None:
    ran = await console_here("consume", "-b", "h:1")
    assert (ran.status, ran.out) == (2, b"")
    assert "exactly one of --topic and --include" in ran.err


@pytest.mark.parametrize("options", [("--group", "g"), ("--consumer-property", "group.id=g")])
async def test_a_group_goes_on_where_it_has_stopped(options: tuple[str, str]) -> None:
    """Also in the midst of a batch."""
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send_many("t", [b"%d" % number for number in range(10)])
        words = ("consume", "-b", cluster.bootstrap_servers, "-t", "t", "--from-beginning")
        first = await console_here(*words, *options, "--max-messages", "4")
        second = await console_here(*words, *options, "--max-messages", "6")
    assert (first.status, first.out.split()) == (0, [b"0", b"1", b"2", b"3"])
    assert (second.status, second.out.split()) == (0, [b"%d" % number for number in range(4, 10)])


async def test_a_pattern_takes_topics_that_come_later_too() -> None:
    async with EmbeddedCluster(topics={"log.a": 1, "log.b": 2, "other": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for topic in ("log.a", "log.b", "other"):
                await producer.send(topic, topic.encode())
            options = ("--include", "log[.].*", "--from-beginning", "--consumer-property", "metadata.max.age.ms=100")
            with start("consume", "-b", cluster.bootstrap_servers, *options) as process:
                assert process.stdout is not None
                try:
                    first = {await anyio.to_thread.run_sync(process.stdout.readline) for _ in range(2)}
                    cluster.create_topic("log.c", 1)
                    await producer.send("log.c", b"log.c")
                    last = await anyio.to_thread.run_sync(process.stdout.readline)
                finally:
                    process.terminate()
    assert first == {b"log.a\n", b"log.b\n"}
    assert last == b"log.c\n"


@pytest.mark.parametrize("skips", [False, True])
async def test_a_record_that_cannot_be_shown(skips: bool) -> None:
    async with EmbeddedCluster(topics={"numbers": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send_many("numbers", [b"\0\0\0\1", b"five!", b"\0\0\0\3"])
        options = ["--skip-message-on-error", "-n", "3"] if skips else []
        ran = await console_here(
            *("consume", "-b", cluster.bootstrap_servers, "-t", "numbers", "--from-beginning"),
            *("--value-deserializer", "IntegerDeserializer", *options),
        )
    assert ran.out == (b"1\n3\n" if skips else b"1\n")
    assert ran.status == (0 if skips else 1)
    assert "needs 4 bytes, the record has 5 [topic 'numbers', partition 0, offset 1]" in ran.err


@pytest.mark.parametrize("skips", [False, True])
async def test_a_damaged_batch(skips: bool) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for value in (b"first", b"second", b"third"):
                await producer.send("t", value)
        damaged = cluster._partition("t", 0).log._batches[1]
        damaged.data = bytes(damaged.data).replace(b"second", b"SECOND")
        options = ["--skip-message-on-error", "-n", "2"] if skips else []
        ran = await console_here("consume", "-b", cluster.bootstrap_servers, "-t", "t", "--from-beginning", *options)
    assert ran.out == (b"first\nthird\n" if skips else b"first\n")
    assert ran.status == (0 if skips else 1)
    assert "topic 't', partition 0, offset 1]" in ran.err
    assert "--skip-message-on-error" in ran.err or skips


async def test_keys_headers_and_nulls() -> None:
    record = NewRecord(None, b"key", (("a", b"1"), ("b", None)), 1_357_034_400_000)
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send_many("t", [record, NewRecord(b"\xff\0")])
        shown = [f"print.{name}=true" for name in ("timestamp", "partition", "offset", "epoch", "headers", "key")]
        ran = await console_here(
            *("consume", "-b", cluster.bootstrap_servers, "-t", "t", "--from-beginning", "--max-messages", "2"),
            *(word for text in [*shown, "key.separator=|"] for word in ("--property", text)),
        )
    first, second = ran.out.splitlines()
    assert first == b"CreateTime:1357034400000|Partition:0|Offset:0|Epoch:NOT_PRESENT|a:1,b:null|key|null"
    assert second.endswith(b"|Partition:0|Offset:1|Epoch:NOT_PRESENT|NO_HEADERS|null|\xff\0")
