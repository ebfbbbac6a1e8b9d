"""``pykafka08 produce`` on the embedded broker; a process where signals, pipes or terminals matter."""

from __future__ import annotations

import os
import signal

import anyio.to_thread
import pytest

from pykafka08 import EmbeddedCluster
from tests.cli.console import console, console_here, start, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The tools are processes that run asyncio themselves: the loop of the test changes nothing in them."""
    return "asyncio"


@pytest.mark.parametrize(
    ("version", "codec"),
    [("0.8.0", "gzip"), ("0.10.2", "lz4"), ("0.8.2", "zstd"), ("4.3", "none"), ("4.3", "snappy"), ("4.3", "zstd")],
)
async def test_lines_become_records(version: str, codec: str) -> None:
    given = b"".join(b"%d:value %d\n" % (number, number) for number in range(5000))
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        ran = await console_here(
            "produce", "-b", cluster.bootstrap_servers, "-t", "t", "-K", ":", "-c", codec, "--acks", "1", given=given
        )
        if codec == "zstd" and version != "4.3":
            assert ran.status == 1
            assert "zstd" in ran.err
            assert ran.err.count("\n") == 2
            return
        records = cluster.records("t", 0)
    assert (ran.status, ran.out) == (0, b"")
    assert ran.err.startswith("5,000 records, ")
    assert ran.err.count("\n") == 1
    assert [(record.key, record.value) for record in records] == [
        (b"%d" % number, b"value %d" % number) for number in range(5000)
    ]


async def test_what_a_line_is() -> None:
    async with EmbeddedCluster(topics={"t": 3}) as cluster:
        ran = await console_here(
            *(
                "produce",
                "-b",
                cluster.bootstrap_servers,
                "-t",
                "t",
                "-p",
                "2",
                "-H",
                "source=test",
                "--null-marker",
                "-",
            ),
            given=b"one\r\n\n-\n\xff\0 last",
        )
        records = cluster.records("t", 2)
    assert ran.status == 0
    assert [record.value for record in records] == [b"one", b"", None, b"\xff\0 last"]
    assert {record.headers for record in records} == {(("source", b"test"),)}
    assert {record.key for record in records} == {None}


@pytest.mark.parametrize("keeps", [False, True])
async def test_a_carriage_return_before_the_newline_is_dropped_or_kept(keeps: bool) -> None:
    """Java's tool drops it too: lines of Windows files end with it."""
    options = ["--keep-carriage-return"] if keeps else []
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ran = await console_here(
            *("produce", "-b", cluster.bootstrap_servers, "-t", "t", "-K", ":", "--null-marker", "-", *options),
            given=b"a:1\r\nb:\r\nc:-\r\nd:4\r5\re:6\r\r\nf:last\r",
        )
        records = cluster.records("t", 0)
    assert ran.status == 0
    if keeps:
        expected = [b"1\r", b"\r", b"-\r", b"4\r5\re:6\r\r", b"last\r"]
    else:
        expected = [b"1", b"", None, b"4\r5\re:6\r", b"last"]
    assert [record.value for record in records] == expected


async def test_no_input_is_no_record() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ran = await console_here("produce", "-b", cluster.bootstrap_servers, "-t", "t")
        assert cluster.records("t", 0) == []
    assert (ran.status, ran.out) == (0, b"")
    assert ran.err.startswith("0 records")


async def test_more_than_the_producers_memory() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ran = await console_here(
            *("produce", "-b", cluster.bootstrap_servers, "-t", "t", "--producer-property", "buffer.memory=100000"),
            *("--producer-property", "max.request.size=50000", "--producer-property", "batch.size=10000"),
            given=b"".join(b"%0100d\n" % number for number in range(20_000)),
        )
        records = cluster.records("t", 0)
    assert ran.status == 0
    assert [int(record.value or b"-1") for record in records] == list(range(20_000))


async def test_a_line_without_its_key_says_which_and_what_was_sent() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ran = await console_here("produce", "-b", cluster.bootstrap_servers, "-t", "t", "-K", ":", given=b"a:b\nc\n")
        delivered = [record.value for record in cluster.records("t", 0)]
    assert ran.status == 1
    assert "line 2 has no key delimiter" in ran.err
    assert ran.err.startswith("1 records, 3 B, ")
    assert "not acknowledged" not in ran.err
    assert delivered == [b"b"]


async def test_a_record_that_is_too_large() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ran = await console_here("produce", "-b", cluster.bootstrap_servers, "-t", "t", given=b"x" * 2_000_000)
    assert ran.status == 1
    assert "topic 't'" in ran.err
    assert ran.err.splitlines()[-1].startswith("pykafka08 produce: ")


async def test_each_line_is_sent_when_it_is_typed() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        with start("produce", "-b", cluster.bootstrap_servers, "-t", "t") as process:
            assert process.stdin is not None
            for number in range(3):
                process.stdin.write(b"%d\n" % number)
                process.stdin.flush()
                await until(lambda: cluster.log_end_offset("t", 0) > number)  # noqa: B023
            process.stdin.close()
            assert await anyio.to_thread.run_sync(process.wait) == 0


async def test_on_a_signal_what_was_read_is_still_delivered() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.delay("Produce", 1.0)
        with start("produce", "-b", cluster.bootstrap_servers, "-t", "t") as process:
            assert process.stdin is not None
            process.stdin.write(b"one\ntwo\n")
            process.stdin.flush()
            await until(lambda: any(request.api == "Produce" for request in cluster.requests))
            process.send_signal(signal.SIGINT)
            _, err = await anyio.to_thread.run_sync(process.communicate)
        sent = [record.value for record in cluster.records("t", 0)]
    assert sent == [b"one", b"two"]
    assert err.startswith(b"2 records, ")
    assert process.returncode == 130


async def test_no_broker_at_the_address() -> None:
    ran = await console_here("produce", "-b", "127.0.0.1:1", "-t", "t", given=b"x\n")
    assert (ran.status, ran.out) == (4, b"")
    assert "check the address of the brokers" in ran.err


async def test_a_person_at_a_terminal_sees_progress() -> None:
    ours, theirs = os.openpty()
    try:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            with start("produce", "-b", cluster.bootstrap_servers, "-t", "t", stderr=theirs) as process:
                assert process.stdin is not None
                process.stdin.write(b"one\n")
                shown = b""
                while b" records/s" not in shown:
                    shown += await anyio.to_thread.run_sync(os.read, ours, 10_000)
                process.stdin.close()
                assert await anyio.to_thread.run_sync(process.wait) == 0
            assert shown.startswith(b"\r0 records, 3 B, 0 records/s")
    finally:
        os.close(ours)
        os.close(theirs)


async def test_the_log_names_the_brokers() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        ran = await console("produce", "-b", cluster.bootstrap_servers, "-t", "t", "-v", given=b"one\n")
        port = cluster.brokers[0].port
    assert ran.status == 0
    assert f"127.0.0.1:{port}" in ran.err
