"""``pykafka08-console-consumer --zookeeper`` on an embedded old cluster."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio.to_thread
import pytest

from pykafka08.cli.old_consumer import TroubleWatch
from tests.cli.console import console_here, start
from tests.zookeeper.old_cluster import OldCluster, old_cluster

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The tools run on asyncio alone."""
    return "asyncio"


def where(old: OldCluster) -> tuple[str, str]:
    return ("--zookeeper", f"{old.zookeeper.address}/kafka")


def numbered(first: int, last: int) -> list[str]:
    return [f"flight {number}" for number in range(first, last)]


def shown(first: int, last: int) -> bytes:
    return "".join(line + "\n" for line in numbered(first, last)).encode()


async def test_from_the_beginning_in_a_group_that_goes_with_it() -> None:
    async with old_cluster({"flights": 1}) as old:
        await old.send("flights", numbered(0, 5))
        ran = await console_here(
            "consume", *where(old), "--topic", "flights", "--from-beginning", "--max-messages", "5"
        )
        assert ran == (0, shown(0, 5), "Processed a total of 5 messages\n")
        assert old.zookeeper.paths("/kafka/consumers") == []


async def test_a_named_group_goes_on_and_its_offsets_can_be_deleted(tmp_path: Path) -> None:
    config = tmp_path / "consumer.properties"
    config.write_text("group.id=g\nauto.offset.reset=smallest\nauto.comit.enable=true\n")
    async with old_cluster({"flights": 1}) as old:
        await old.send("flights", numbered(0, 5))
        with_group = ("consume", *where(old), "--topic", "flights", "--consumer.config", str(config), "-n", "2")
        status, text, said = await console_here(*with_group)
        assert (status, text) == (0, shown(0, 2))
        assert "auto.comit.enable means nothing to this consumer (did you mean auto_commit_enable?)" in said
        assert old.offset("flights") == "2"
        assert (await console_here(*with_group))[1] == shown(2, 4)
        status, text, said = await console_here(*with_group, "--from-beginning")
        assert (status, text) == (2, b"")
        assert "add --delete-consumer-offsets" in said
        assert (await console_here(*with_group, "--from-beginning", "--delete-consumer-offsets"))[1] == shown(0, 2)


async def test_a_white_list_and_a_black_list() -> None:
    async with old_cluster({"a.one": 1, "b.one": 1}) as old:
        await old.send("a.one", ["a"])
        await old.send("b.one", ["b"])
        common = ("consume", *where(old), "--from-beginning", "-n", "1")
        assert (await console_here(*common, "--whitelist", r"a\..*"))[1] == b"a\n"
        assert (await console_here(*common, "--blacklist", r"a\..*"))[1] == b"b\n"


async def test_what_is_wrong_is_told_and_ctrl_c_leaves_cleanly() -> None:
    async with old_cluster() as old:
        tool = start("consume", *where(old), "--topic", "flights", "--group", "g")
        try:
            assert tool.stderr is not None
            said = await anyio.to_thread.run_sync(tool.stderr.readline)
            tool.send_signal(signal.SIGINT)
            await anyio.to_thread.run_sync(tool.communicate)
        finally:
            tool.kill()
        assert tool.returncode == 130
        assert b"topics that do not exist are waited for: flights" in said
        assert old.zookeeper.children("/kafka/consumers/g/ids") == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--zookeeper", "h", "--topic", "t", "--partition", "0"], "--zookeeper and --partition exclude"),
        (["--zookeeper", "h", "--topic", "t", "-b", "h"], "--zookeeper and --bootstrap-server exclude"),
        (["--zookeeper", "h"], "exactly one of --topic, --whitelist and --blacklist"),
        (["--zookeeper", "h", "--whitelist", "("], "regular expression"),
        (["--topic", "t"], "one of --bootstrap-server and --zookeeper is needed"),
        (["-b", "h", "--blacklist", "t"], "need --zookeeper"),
    ],
)
async def test_wrong_usage(options: list[str], said: str) -> None:
    status, text, told = await console_here("consume", *options)
    assert (status, text) == (2, b"")
    assert said in told


def test_trouble_that_passes_at_once_is_not_told() -> None:
    watch = TroubleWatch()
    looks = ["UNKNOWN_TOPIC_OR_PARTITION", None, "away", "away", "away still", None, None, "again", "again"]
    assert [watch.look(each) for each in looks] == [
        *(None, None, None, "away", None, "reading goes on", None, None, "again")
    ]


async def test_a_chroot_that_is_not_there_leaves_nothing_behind() -> None:
    async with old_cluster() as old:
        words = ("consume", "--zookeeper", f"{old.zookeeper.address}/nope", "--topic", "t")
        status, text, said = await console_here(*words)
        assert (status, text) == (1, b"")
        assert "/nope" in said
        assert "left behind" not in said


async def test_nothing_listens_there() -> None:
    status, text, said = await console_here(
        "consume",
        "--zookeeper",
        "127.0.0.1:1",
        "--topic",
        "t",
        "--consumer-property",
        "zookeeper.session.timeout.ms=500",
        "--zookeeper-property",
        "connection.timeout.ms=500",
    )
    assert (status, text) == (4, b"")
    assert "127.0.0.1:1" in said
    assert "check --zookeeper" in said
    assert "left behind" not in said
