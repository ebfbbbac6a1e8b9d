"""``pykafka08 zk``: what it prints, what it changes, how it ends."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from io import StringIO
from pathlib import Path
from typing import Protocol

import pytest

from pykafka08 import Admin, EmbeddedCluster, KafkaError, Mirror, Producer, TopicPartition
from pykafka08.cli.exits import Interrupt, describe, status_of
from pykafka08.cli.notes import note
from pykafka08.cli.tables import table
from pykafka08.cli.zk import SHOWING, settings_of_zookeeper, zk_parser
from pykafka08.cli.zk_changing import change
from pykafka08.cli.zk_showing import show
from pykafka08.zookeeper.operations import Access, Permission, digest_identity
from tests.cli.console import Finished, console, console_here
from tests.zookeeper.stage import PATIENT, PATIENT_CLIENT, Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The tools are processes with a loop of their own."""
    return "asyncio"


class Tool(Protocol):
    def __call__(self, stage: Stage, *words: str) -> Awaitable[Finished]: ...


@pytest.fixture
def zk(capfd: pytest.CaptureFixture[str]) -> Tool:
    """Run the command in this process, without its parser's exit and its signals: a process each takes a minute."""

    async def run(stage: Stage, *words: str) -> Finished:
        patient = [f"--zookeeper-property={name}={value}" for name, value in {**PATIENT, **PATIENT_CLIENT}.items()]
        options = zk_parser().parse_args([*words, *patient, "--zookeeper", stage.address])
        work = show if options.command in SHOWING else change
        try:
            status = await work(options, *settings_of_zookeeper(options), Interrupt())
        except KafkaError as error:
            note(describe(error))
            status = status_of(error)
        out, err = capfd.readouterr()
        return Finished(status, out.encode(), err)

    return run


async def test_what_is_shown(zk: Tool) -> None:
    async with staged({1: "127.0.0.1:1001", 2: "127.0.0.1:1002"}) as stage:
        await stage.put("/controller", '{"version":1,"brokerid":2,"timestamp":"1"}')
        await stage.topic("events", {0: [1, 2], 1: [2, 1]})
        await stage.put("/config/topics/events", '{"version":1,"config":{"retention.ms":"1000"}}')
        await stage.put("/brokers/topics/broken", "{")
        await stage.put(
            "/consumers/g/ids/g_h", '{"subscription":{"events":1},"pattern":"static","timestamp":"1416810012297"}'
        )
        await stage.put("/consumers/g/ids/odd", "{}")
        await stage.put("/consumers/g/owners/events/0", "g_h-0")
        await stage.put("/consumers/g/offsets/events/0", "5")

        brokers = await zk(stage, "brokers")
        assert brokers.out.decode().splitlines() == [
            "ID  CONTROLLER  LISTENERS                   RACK  VERSION  RELEASE",
            " 1  no          PLAINTEXT://127.0.0.1:1001  -           1  0.8",
            " 2  yes         PLAINTEXT://127.0.0.1:1002  -           1  0.8",
        ]
        topics = await zk(stage, "topics")
        assert topics.out.decode().splitlines()[1:] == [
            "events           2         2           0                 0  retention.ms=1000  no"
        ]
        assert "malformed: /brokers/topics/broken: its data is not JSON" in topics.err
        one = await zk(stage, "topics", "--topic", "events", "--json")
        assert json.loads(one.out)["partitions"][1] == {
            "partition": 1,
            "leader": 2,
            "epoch": 0,
            "replicas": [2, 1],
            "in-sync": [2, 1],
        }
        groups = await zk(stage, "groups", "--json")
        assert json.loads(groups.out) == [{"group": "g", "members": 2, "owned": 1, "offsets": 1, "topics": ["events"]}]
        members = await zk(stage, "groups", "--group", "g")
        assert [line.split() for line in members.out.decode().splitlines()[1:]] == [
            ["g_h", "static", "events=1", "2014-11-24T06:20:12Z", "events:0"],
            ["odd", "MALFORMED", "-", "-", "-"],
        ]
        assert {each.status for each in (brokers, topics, one, groups, members)} == {0}


async def test_the_tree(zk: Tool) -> None:
    async with staged(1) as stage:
        secret = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"
        await stage.put("/config/users/alice", json.dumps({"version": 1, "config": {"SCRAM-SHA-256": secret}}))
        await stage.put("/brokers/topics/t", "{")
        await stage.put("/mine", "x\x1b[2J")
        tree = await zk(stage, "tree")
        assert tree.status == 0
        assert "\n  brokers\n    ids\n      1  {" in tree.out.decode()
        assert "t  {  MALFORMED: its data is not JSON" in tree.out.decode()
        assert "mine  x\\x1b[2J  (not Kafka's)" in tree.out.decode()
        assert b"c3RvcmVk" not in tree.out
        below = await zk(stage, "tree", "/config/users", "--json", "--show-secrets")
        assert [(each["path"], each["kind"]) for each in json.loads(below.out)] == [
            ("/config/users", "user_configs"),
            ("/config/users/alice", "user_config"),
        ]
        assert b"c3RvcmVk" in below.out
        missing = await zk(stage, "tree", "/nope")
        assert (missing.status, missing.out) == (1, b"")
        assert "/nope" in missing.err


async def test_offsets_of_both_stores_and_the_lag(zk: Tool) -> None:
    async with EmbeddedCluster(version="0.9", topics={"t": 2}) as cluster, staged(0) as stage:
        await stage.register({1: cluster.bootstrap_servers})
        await stage.topic("t", {0: [1], 1: [1]})
        await stage.topic("__consumer_offsets", {0: [1]})
        async with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for _ in range(5):
                await producer.send("t", b"x", partition=1)
        async with Admin(cluster.bootstrap_servers) as admin:
            await admin.alter_group_offsets("g", {TopicPartition("t", 1): 4})
        await stage.put("/consumers/g/offsets/t/0", "0")
        await stage.put("/consumers/g/offsets/t/1", "3")
        lag = await zk(stage, "lag", "--group", "g")
        assert (lag.status, lag.err) == (0, "")
        assert [line.split() for line in lag.out.decode().splitlines()] == [
            ["TOPIC", "PARTITION", "ZOOKEEPER", "KAFKA", "END", "LAG", "OWNER"],
            ["t", "0", "0", "-", "0", "0", "-"],
            ["t", "1", "3", "4", "5", "1", "-"],
        ]
        offsets = await zk(stage, "offsets", "--group", "g", "--json")
        assert json.loads(offsets.out)[1] == {"topic": "t", "partition": 1, "zookeeper": 3, "kafka": 4, "owner": None}
        nobody = await zk(stage, "lag", "--group", "nope")
        assert nobody.status == 1
        assert "neither ZooKeeper nor Kafka has a group 'nope'" in nobody.err
        far = await zk(stage, "group", "reset", "g", "--topic", "t", "--to", "6")
        assert far.status == 1
        assert "outside of the log" in far.err
        reset = await zk(stage, "group", "reset", "g", "--topic", "t", "--to", "latest")
        assert [line.split() for line in reset.out.decode().splitlines()[1:]] == [
            ["t", "0", "0", "0"],
            ["t", "1", "3", "5"],
        ]


async def test_brokers_of_another_cluster_are_told_of(zk: Tool) -> None:
    async with (
        EmbeddedCluster(version="0.9", topics={"t": 1}) as own,
        EmbeddedCluster(version="0.9", topics={"t": 1}) as other,
        staged(0) as stage,
    ):
        await stage.register({1: own.bootstrap_servers})
        await stage.topic("t", {0: [1]})
        await stage.put("/consumers/g/offsets/t/0", "0")
        lag = await zk(stage, "lag", "--group", "g", "--bootstrap-server", other.bootstrap_servers)
        assert lag.status == 1
        assert "these are two clusters: what is shown of Kafka is not of this group" in lag.err
        name = own.bootstrap_servers.replace("127.0.0.1", "localhost")
        lag = await zk(stage, "lag", "--group", "g", "--bootstrap-server", name)
        assert (lag.status, lag.err) == (0, "")


async def test_a_lag_that_cannot_be_known_is_a_failure(zk: Tool) -> None:
    async with staged(0) as stage:
        await stage.put("/consumers/g/offsets/t/0", "3")
        lag = await zk(stage, "lag", "--group", "g")
        assert lag.status == 1
        assert "no broker can be asked" in lag.err
        assert lag.out.decode().splitlines()[1].split() == ["t", "0", "3", "-", "-", "-", "-"]


async def test_topics_are_changed(zk: Tool) -> None:
    async with staged(2) as stage:
        create = ("topic", "create", "t", "--partitions", "2", "--no-wait")
        dry = await zk(stage, *create, "--dry-run", "--replica-assignment", "1:2,2:1")
        assert dry.out.decode().splitlines()[1:] == ["        0  1,2", "        1  2,1"]
        assert await stage.text("/brokers/topics/t") is None
        wrong = await zk(stage, *create, "--config", "retention.mss=5")
        assert wrong.status == 2
        assert "did you mean retention.ms?" in wrong.err
        assert (await zk(stage, *create, "--config", "retention.ms=5")).status == 0
        twice = await zk(stage, *create)
        assert twice.status == 1
        assert "there is a topic 't' already" in twice.err
        grown = await zk(stage, "topic", "add-partitions", "t", "3", "--no-wait", "--json")
        assert [each["partition"] for each in json.loads(grown.out)] == [2]
        moved = await zk(stage, "topic", "reassign", "t:0=2", "--no-wait")
        assert moved.out.decode().splitlines()[1].split() == ["t", "0", "running"]
        await stage.zk.delete("/admin/reassign_partitions")
        failed = await zk(stage, "topic", "reassign", "t:0=2,1", "--verify")
        assert (failed.status, failed.out.decode().splitlines()[1].split()) == (1, ["t", "0", "failed"])
        assert (await zk(stage, "topic", "elect", "--partition", "t:1", "--no-wait")).status == 0
        assert (await zk(stage, "topic", "delete", "t", "--no-wait")).status == 0
        assert await stage.text("/admin/delete_topics/t") == ""
        nothing = await zk(stage, "topic", "delete", "nope")
        assert nothing.status == 1


async def test_settings_and_rules_are_changed(zk: Tool) -> None:
    async with staged(1, version=2) as stage:
        await stage.topic("t", {0: [1]})
        altered = await zk(stage, "config", "alter", "--topic", "t", "--set", "flush.ms=5")
        assert altered.out.decode().splitlines()[1].split() == ["flush.ms", "5"]
        shown = await zk(stage, "config", "show", "--topic", "t", "--json")
        assert json.loads(shown.out) == {"flush.ms": "5"}
        missing = await zk(stage, "config", "show", "--topic", "nope")
        misspelt = await zk(stage, "config", "alter", "--topic", "t", "--remove", "flush.mss")
        assert (missing.status, misspelt.status) == (1, 1)
        assert "has no setting flush.mss to remove; it has flush.ms" in misspelt.err
        assert (await zk(stage, "config", "show")).status == 2
        await stage.put("/kafka-acl-changes")
        added = await zk(stage, "acl", "add", "--topic", "t", "--allow", "User:alice", "--operation", "Read")
        assert added.out.decode().splitlines()[1].split() == ["Allow", "User:alice", "Read", "*"]
        listed = await zk(stage, "acl", "list")
        assert listed.out.decode().splitlines()[1].split() == [
            *("Topic", "t", "literal", "Allow", "User:alice", "Read", "*")
        ]
        assert (await zk(stage, "acl", "remove", "--topic", "t")).status == 0


async def test_what_is_made_can_belong_to_its_maker(zk: Tool) -> None:
    async with staged(1) as stage:
        words = ("topic", "create", "t", "--no-wait", "--secure", "--auth", "digest:me:secret")
        assert (await zk(stage, *words)).status == 0
        assert list(await stage.zk.acl("/brokers/topics/t")) == [
            Access("digest", digest_identity("me", "secret")),
            Access("world", "anyone", Permission.READ),
        ]
        foreign = await zk(stage, "topic", "add-partitions", "t", "2", "--no-wait")
        assert foreign.status == 1
        assert "belongs to somebody else" in foreign.err


async def test_groups_are_changed(zk: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with staged(0) as stage:
        await stage.put("/consumers/g/offsets/t/0", "3")
        exported = await zk(stage, "group", "export")
        assert exported.out == b"/consumers/g/offsets/t/0:3\n"
        assert (await zk(stage, "group", "delete", "g")).status == 0
        await stage.topic("t", {0: [1]})
        file = tmp_path / "offsets"
        file.write_bytes(exported.out)
        misspelt = await zk(stage, "group", "reset", "gg", "--topic", "t", "--to", "0")
        assert (misspelt.status, await stage.text("/consumers/gg")) == (1, None)
        assert "ZooKeeper has no group 'gg'" in misspelt.err
        back = await zk(stage, "group", "import", str(file), "--force")
        assert (back.status, "groups that were not there, and are made: g\n" in back.err) == (0, True)
        near = await zk(stage, "group", "reset", "gg", "--topic", "t", "--to", "0", "--force")
        assert (near.status, await stage.text("/consumers/gg/offsets/t/0")) == (0, "0")
        assert await stage.text("/consumers/g/offsets/t/0") == "3"
        await stage.put("/consumers/g/ids/m", "{}")
        monkeypatch.setattr("sys.stdin", StringIO(exported.out.decode()))
        alive = await zk(stage, "group", "import", "-", "--force")
        assert alive.status == 1
        assert "has a member that is alive, m" in alive.err
        empty = await zk(stage, "group", "import", "-")  # read to its end already
        assert (empty.status, "no line with an offset" in empty.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("brokers",), 2, "--zookeeper"),
        (
            ("brokers", "--zookeeper", "127.0.0.1:1", "--zookeeper-property", "connection.timeout.ms=1000"),
            *(4, "check --zookeeper"),
        ),
        (("brokers", "--zookeeper", "127.0.0.1:1", "--auth", "secret"), 2, "digest:user:password"),
    ],
)
async def test_wrong_usage(words: tuple[str, ...], status: int, text: str) -> None:
    run = console if status == 4 else console_here
    ran = await run("zk", *words)
    assert ran.status == status
    assert text in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(("made", "action"), [({}, "create"), ({"t": 1}, "add-partitions")])
async def test_what_a_mirror_advises_is_a_command(made: dict[str, int], action: str) -> None:
    async with (
        EmbeddedCluster(topics={"t": 2}) as source,
        EmbeddedCluster(version="0.8.2", topics=made) as target,
        Mirror(source.bootstrap_servers, target.bootstrap_servers, topics=["t"]) as mirror,
    ):
        (plan,) = await mirror.plan()
    advice = (plan.problem or "").partition("pykafka08 zk ")[2]
    options = zk_parser().parse_args(advice.split())
    assert (options.action, options.topic) == (action, "t")


def test_control_characters_in_cells_of_a_table_are_escaped() -> None:
    rows = [{"text": "a\x1b[2J", "list": ["b\x1b[2J"], "map": {"c\x9b": "d\r"}}]
    assert table(rows, ("text", "list", "map")).splitlines()[1] == r"a\x1b[2J  b\x1b[2J  c\x9b=d\r"


def test_a_table() -> None:
    rows = [{"name": "a", "size": 5, "list": [1, 2], "map": {}}, {"name": "日本", "size": None, "list": [], "x": 1}]
    assert table(rows, ("name", "size", "list", "map")) == (
        "NAME  SIZE  LIST  MAP\na        5  1,2   -\n日本     -  -     -\n"
    )
    assert table([], ("name",)) == "NAME\n"
