"""``pykafka08 mirror`` between embedded clusters, once as a process."""

from __future__ import annotations

import json

import pytest

from pykafka08 import EmbeddedCluster, TopicPartition
from pykafka08.admin import Admin
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.cli import migrate
from pykafka08.cli.mirror import main, mirror_parser, settings_of_mirror
from pykafka08.cli.zookeeper_options import zookeeper_settings
from pykafka08.security.secret import Secret
from tests.cli.console import console, console_here
from tests.mirror.embedded import fill, held

in_loop = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def ends(source: EmbeddedCluster, target: EmbeddedCluster) -> tuple[str, ...]:
    return ("mirror", "--from", source.bootstrap_servers, "--to", target.bootstrap_servers)


@in_loop
async def test_it_says_what_it_would_do_then_does_it_and_moves_the_group() -> None:
    async with EmbeddedCluster(version="0.9.0", topics={"t": 2, "u": 1, "v": 1}) as source, EmbeddedCluster() as target:
        await fill(source, "t", 0, 20, partition=1)
        async with Admin(source.bootstrap_servers) as admin:
            await admin.alter_group_offsets("g", {TopicPartition("t", 1): 7})
        words = (
            *ends(source, target),
            "--whitelist",
            "[tuv]",
            "--blacklist",
            "v",
            "--rename",
            "t=copy",
            "--group",
            "g",
        )
        dry = await console_here(*words, "--dry-run")
        assert (dry.status, dry.err) == (0, "")
        assert [line.split() for line in dry.out.decode().splitlines()] == [
            ["FROM", "TO", "PARTITIONS", "TARGET", "PROBLEM"],
            ["t", "copy", "2", "is", "to", "be", "made"],
            ["u", "u", "1", "is", "to", "be", "made"],
            ["group", "g:", "offsets", "in", "1", "partitions"],
        ]
        assert target.topics == {}
        ran = await console_here(*words, "--json")
        assert ran.status == 0, ran.err
        assert all(line.endswith(" to go") for line in ran.err.splitlines()), ran.err  # told when it takes seconds
        report = json.loads(ran.out)
        assert [each["copied"] for each in report["partitions"]] == [0, 20, 0]
        assert [(each["target"], each["target_offset"]) for each in report["groups"]] == [(["copy", 1], 7)]
        assert await held(target, "copy", 2) == await held(source, "t", 2)
        again = await console(*words)
        assert again.status == 0
        assert b"copy-1" in again.out
        async with Admin(target.bootstrap_servers) as admin:
            assert (await admin.list_group_offsets("g"))[TopicPartition("copy", 1)].offset == 7


@in_loop
@pytest.mark.parametrize("is_dry", [True, False])
async def test_what_cannot_be_done_is_said_alike_by_both(is_dry: bool) -> None:
    words = ("--dry-run",) if is_dry else ()
    async with EmbeddedCluster(topics={"t": 2}) as source:
        async with EmbeddedCluster(version="0.8.2") as target:
            old = await console_here(*ends(source, target), "--topics", "t", *words)
            assert old.status == 1
            assert "pykafka08 zk topic create t --partitions 2" in old.out.decode() + old.err
        async with EmbeddedCluster() as target:
            for options, told in (
                (("--topics", "x"), "no topic 'x'"),
                (("--whitelist", "x.*"), "nothing to copy"),
                (("--topics", "t", "--rename", "x=y"), "renamed but not mirrored"),
                (("--topics", "t", "--group", "g"), "--zookeeper-group"),
            ):
                ran = await console_here(*ends(source, target), *options, *words)
                assert ran.status == 1, ran
                assert told in ran.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--topics", "t", "--whitelist", "t"),
        ("--topics", "t", "--rename", "t"),
        ("--topics", "t", "--zookeeper-group", "g"),
        ("--blacklist", "t"),
        ("--whitelist", "("),
        ("--topics", "t", "--once", "--follow"),
        ("--topics", "t", "--to-property", "acks=1"),
        ("--topics", "t", "--to-property", "linger.ms=-1"),
        ("--topics", "t", "--zookeeper-auth", "secret"),
        (
            "--topics",
            "t",
            "--zookeeper",
            "z:1",
            "--zookeeper-group",
            "g",
            "--zookeeper-property",
            "session.timeout.ms=-1",
        ),
        ("--topics", "t", "--from-property", "fetch.min.bytes=many"),
    ],
)
def test_wrong_usage_is_status_2(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--from", "localhost:1", "--to", "localhost:2", *words])
    assert ended.value.code == 2
    assert "pykafka08 mirror: " in capsys.readouterr().err


@in_loop
async def test_no_broker_is_status_4() -> None:
    ran = await console_here("mirror", "--from", "localhost:1", "--to", "localhost:1", "--topics", "t")
    assert ran.status == 4


SESSION = ("--zookeeper-auth", "digest:me:secret", "--zookeeper-property", "tls=true")


def test_who_one_is_to_zookeeper_is_handed_on() -> None:
    wanted = {"auth": (("digest", Secret("me:secret")),), "tls": True}
    words = ("--from", "a:1", "--to", "b:1", "--topics", "t", "--zookeeper", "z:1", "--zookeeper-group", "g", *SESSION)
    assert settings_of_mirror(mirror_parser().parse_args(words))["zookeeper_settings"] == wanted
    options = migrate.migrate_parser().parse_args(("g", "--zookeeper", "z:1", "-b", "a:1", *SESSION))
    assert zookeeper_settings(options) == wanted


@in_loop
async def test_credentials_reach_zookeeper() -> None:
    async with EmbeddedZooKeeper() as server, EmbeddedCluster(topics={"t": 1}) as source, EmbeddedCluster() as target:
        server.refuse_credentials()
        auth = ("--zookeeper", server.address, *SESSION[:2], "--zookeeper-property", "connection.timeout.ms=60000")
        ran = await console_here(*ends(source, target), "--topics", "t", "--zookeeper-group", "g", "--dry-run", *auth)
        assert ran.status == 1
        assert "refused" in ran.err
        ran = await console_here("migrate", "group", "g", "-b", source.bootstrap_servers, *auth)
        assert ran.status == 1
        assert "refused" in ran.err
