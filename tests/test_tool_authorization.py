"""Missing ACLs of the mirror, the old consumer, migrations and tools: one error that names the ACL."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from pykafka08 import Admin, GroupMigration, LegacyConsumer, Mirror, NewTopic, Producer, TopicPartition
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.zookeeper import EmbeddedZooKeeper
from pykafka08.errors import AuthorizationError
from tests.authorization import ALICE, Rights, guarded
from tests.cli.console import console_here

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

ERROR_S = 10
"""The default of the connections' set-up time-out."""
MIRROR = "pykafka08-mirror-mirror"
T = TopicPartition("t", 0)


class Old:
    """A cluster with ZooKeeper, which has an offset of the group "old"."""

    def __init__(self, rights: Rights, zookeeper: EmbeddedZooKeeper) -> None:
        self.rights = rights
        self.servers = rights.cluster.bootstrap_servers
        self.zookeeper = zookeeper.address


@asynccontextmanager
async def cluster(*given: str, version: str = "2.8") -> AsyncIterator[Old]:
    """One with a record in the topic "t", and an offset of the group "g" for it, in Kafka and in ZooKeeper."""
    async with (
        EmbeddedZooKeeper() as zookeeper,
        guarded(version=version, topics={"t": 1}, zookeeper=zookeeper) as rights,
        Producer(rights.cluster.bootstrap_servers) as producer,
        Admin(rights.cluster.bootstrap_servers) as admin,
    ):
        await producer.send("t", b"x")
        assert await admin.alter_group_offsets("g", {T: 1}) == {}
        zookeeper.create("/consumers/g/offsets/t/0", b"1")
        zookeeper.create("/consumers/old/offsets/t/0", b"1")
        rights.give(*given)
        yield Old(rights, zookeeper)


async def mirror(old: Old, **more: Any) -> None:
    settings = {"source_settings": ALICE, "target_settings": ALICE}
    async with Mirror(old.servers, old.servers, topics=["t"], rename={"t": "copy"}, **settings, **more) as each:
        await each.run()


async def mirror_group(old: Old) -> None:
    await mirror(old, groups=["g"])


async def consume(old: Old, **more: Any) -> None:
    settings = {"zookeeper": old.zookeeper, "client_id": "alice", "auto_offset_reset": "smallest", **more}
    async with LegacyConsumer("t", group_id="new", **settings) as consumer:
        await consumer.getone(timeout=ERROR_S)
        for error in (await consumer.commit()).values():
            raise error


async def consume_with_offsets_in_kafka(old: Old) -> None:
    await consume(old, offsets_storage="kafka")


async def migrate(old: Old) -> None:
    async with GroupMigration(old.zookeeper, old.servers, "old", **ALICE) as migration:
        report = await migration.run()
        assert report.is_in_kafka


Action = Callable[[Old], Awaitable[None]]
COPYING = ("READ topic t", "CREATE topic copy", "WRITE topic copy", "READ topic copy")
MOVING = (*COPYING, f"READ group {MIRROR}", f"WRITE transactional-id {MIRROR}")
CASES: dict[str, tuple[Action, tuple[str, ...], tuple[str, str, str]]] = {
    "mirror, hidden source": (mirror, MOVING[1:], ("topic", "t", "DESCRIBE")),
    "mirror, source": (mirror, ("DESCRIBE topic t", *MOVING[1:]), ("topic", "t", "READ")),
    "mirror, hidden target": (mirror, ("READ topic t", "CREATE topic copy"), ("topic", "copy", "DESCRIBE")),
    "mirror, target": (mirror, (*MOVING[:2], "READ topic copy", *MOVING[4:]), ("topic", "copy", "WRITE")),
    "mirror, its progress": (mirror, (*MOVING[:3], *MOVING[4:]), ("topic", "copy", "READ")),
    "mirror, its group": (mirror, (*COPYING, MOVING[5]), ("group", MIRROR, "DESCRIBE")),
    "mirror, its id": (mirror, MOVING[:5], ("transactional id", MIRROR, "DESCRIBE")),
    "mirror, a group": (mirror_group, MOVING, ("group", "g", "DESCRIBE")),
    "mirror, a group's commit": (mirror_group, (*MOVING, "DESCRIBE group g"), ("group", "g", "READ")),
    "old consumer, hidden": (consume, (), ("topic", "t", "DESCRIBE")),
    "old consumer": (consume, ("DESCRIBE topic t",), ("topic", "t", "READ")),
    "old consumer, offsets": (consume_with_offsets_in_kafka, COPYING[:1], ("group", "new", "DESCRIBE")),
    "old consumer, commit": (
        consume_with_offsets_in_kafka, (*COPYING[:1], "DESCRIBE group new"), ("group", "new", "READ")
    ),
    "migration, group": (migrate, COPYING[:1], ("group", "old", "DESCRIBE")),
    "migration, topic": (migrate, ("READ group old",), ("topic", "t", "DESCRIBE")),
}  # fmt: skip
"""An action of the user, the rights that the user has, and the resource and operation that are refused."""


@pytest.mark.parametrize("name", CASES)
async def test_a_missing_right_is_one_clear_error_at_once(name: str) -> None:
    act, given, refused = CASES[name]
    async with cluster(*given) as old:
        with anyio.fail_after(ERROR_S), pytest.raises(AuthorizationError) as caught:
            await act(old)
    error = caught.value
    assert (error.resource_type, error.resource_name, error.operation) == refused
    assert f"the user may not {refused[2]} {refused[0]} {refused[1]!r}: " in error.message


@pytest.mark.parametrize("act", [mirror_group, consume_with_offsets_in_kafka, migrate])
async def test_these_rights_suffice(act: Action) -> None:
    async with cluster(*MOVING, "READ group g", "READ group new", "READ group old") as old:
        await act(old)


async def test_a_mirror_warns_of_settings_that_it_may_not_read(caplog: pytest.LogCaptureFixture) -> None:
    """The settings of the other topics are copied."""
    async with cluster(*MOVING, "ALL topic u", "ALL topic copy-of-u") as old:
        async with Admin(old.servers) as admin:
            await admin.create_topics([NewTopic("u", 1, 1, {"retention.ms": "-1"})])
        settings: dict[str, Any] = {"source_settings": ALICE, "target_settings": ALICE}
        rename = {"t": "copy", "u": "copy-of-u"}
        async with Mirror(old.servers, old.servers, topics=["t", "u"], rename=rename, **settings) as each:
            await each.run()
        async with Admin(old.servers) as admin:
            copied = await admin.describe_topic_configs(["copy-of-u"])
    assert copied["copy-of-u"]["retention.ms"].value == "-1"
    (warning,) = (each.getMessage() for each in caplog.records if "mirror.configs_refused" in each.getMessage())
    assert "the user may not DESCRIBE_CONFIGS topic 't'" in warning


@pytest.mark.parametrize(
    ("given", "exists", "refused"),
    [((), False, "CREATE topic 'copy'"), (("CREATE topic copy",), True, "DESCRIBE topic 'copy'")],
)
async def test_a_topic_that_the_mirror_cannot_make_is_in_its_plan(
    given: tuple[str, ...], exists: bool, refused: str
) -> None:
    async with cluster("READ topic t", *given) as old:
        if exists:
            old.rights.cluster.create_topic("copy", 1)
        settings: dict[str, Any] = {"source_settings": ALICE, "target_settings": ALICE, "rename": {"t": "copy"}}
        async with Mirror(old.servers, old.servers, topics=["t"], **settings) as each:
            with anyio.fail_after(ERROR_S):
                [plan] = await each.plan()
            assert f"the user may not {refused}" in str(plan.problem)
            with anyio.fail_after(ERROR_S), pytest.raises(AuthorizationError, match=f"the user may not {refused}"):
                await each.run()


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("is_made", [True, False], ids=["made", "allowed"])
async def test_a_topic_that_appears_while_the_mirror_plans_is_mirrored(
    side: str, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of topics lacks it, and the requests that follow find it."""
    list_topics = Admin.list_topics
    async with cluster("READ topic t", "ALL topic new", "ALL topic copy", *MOVING[4:]) as old:
        rights, late = old.rights, "new" if side == "source" else "copy"
        if not is_made:
            rights.cluster.create_topic(late, 1)
            rights.take(f"ALL topic {late}")
        listed: list[list[str]] = []

        async def list_and_change(admin: Admin, *, internal: bool = False) -> list[str]:
            names = await list_topics(admin, internal=internal)
            if internal is (side == "target"):
                listed.append(names)
                if is_made and len(listed) == 1:
                    rights.cluster.create_topic(late, 1)
                rights.give(f"ALL topic {late}")
            return names

        monkeypatch.setattr(Admin, "list_topics", list_and_change)
        settings: dict[str, Any] = {"source_settings": ALICE, "target_settings": ALICE}
        topic = "new" if side == "source" else "t"
        async with Mirror(old.servers, old.servers, topics=[topic], rename={topic: "copy"}, **settings) as each:
            with anyio.fail_after(ERROR_S):
                [plan] = await each.plan()
        assert late not in listed[0]
        assert (plan.problem, plan.refused) == (None, None)
        assert (plan.has, plan.target_id is not None) == ((0, False) if side == "source" else (1, True))


LOST: dict[str, tuple[tuple[str, ...], str]] = {
    "source": (("READ topic t",), "READ topic 't'"),
    "hidden source": (("READ topic t", "DESCRIBE topic t"), "(READ|DESCRIBE) topic 't'"),
    "target": (("WRITE topic copy",), "WRITE topic 'copy'"),
}
"""The rights to a topic that a mirror loses, and what is refused."""


def names(cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic, 0, committed=True)]


@asynccontextmanager
async def mirror_of_two(**more: Any) -> AsyncIterator[tuple[Old, Mirror]]:
    """Of the topics "t" and "u", which each have a record."""
    rename = {"t": "copy", "u": "other"}
    settings: dict[str, Any] = {"source_settings": ALICE, "target_settings": ALICE, "rename": rename, **more}
    both = ("DESCRIBE topic t", "READ topic u", "CREATE topic other", "WRITE topic other", "READ topic other")
    async with cluster(*MOVING, *both) as old:
        for topic in ("u", "copy", "other"):
            old.rights.cluster.create_topic(topic, 1)
        async with Producer(old.servers) as producer:
            await producer.send("u", b"y")
        async with Mirror(old.servers, old.servers, **settings) as each:
            yield old, each


@pytest.mark.parametrize("chosen", [{"topics": ["t", "u"]}, {"pattern": "t|u"}], ids=["topics", "pattern"])
@pytest.mark.parametrize("lost", ["source", "target"])
async def test_a_mirror_copies_other_topics_before_it_raises(lost: str, chosen: dict[str, Any]) -> None:
    rights, refused = LOST[lost]
    async with mirror_of_two(**chosen) as (old, each):
        old.rights.take(*rights)
        with anyio.fail_after(ERROR_S), pytest.raises(AuthorizationError, match=f"the user may not {refused}"):
            await each.run()
        assert names(old.rights.cluster, "other") == [b"y"]
        assert names(old.rights.cluster, "copy") == []


@pytest.mark.parametrize("lost", LOST)
async def test_a_mirror_that_follows_copies_other_topics_until_the_right_returns(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykafka08.mirror.mirror.REVIEW_S", 0.1)
    monkeypatch.setattr("pykafka08.mirror.mirror.REFUSED_S", 0.5)
    rights, refused = LOST[lost]
    async with (
        mirror_of_two(topics=["t", "u"]) as (old, each),
        anyio.create_task_group() as tasks,
        Producer(old.servers) as producer,
    ):
        broker = old.rights.cluster

        async def until(is_so: Callable[[], bool]) -> None:
            with anyio.fail_after(30):
                while not is_so():  # noqa: ASYNC110 - the broker's log has no event
                    await anyio.sleep(0.02)

        tasks.start_soon(partial(each.run, follow=True))
        await until(lambda: (names(broker, "copy"), names(broker, "other")) == ([b"x"], [b"y"]))
        old.rights.take(*rights)
        await producer.send("t", b"x2")
        await until(lambda: re.search(f"the user may not {refused}", str(each.report().trouble)) is not None)
        await producer.send("u", b"y2")
        await until(lambda: names(broker, "other") == [b"y", b"y2"])
        assert names(broker, "copy") == [b"x"]
        old.rights.give(*rights)
        await until(lambda: names(broker, "copy") == [b"x", b"x2"])
        await until(lambda: each.report().trouble is None)
        tasks.cancel_scope.cancel()


async def test_an_old_consumer_reads_on_once_it_has_the_right() -> None:
    async with cluster("READ topic t") as old:
        settings: dict[str, Any] = {"zookeeper": old.zookeeper, "client_id": "alice", "auto_offset_reset": "smallest"}
        async with LegacyConsumer("t", group_id="new", offsets_storage="kafka", **settings) as consumer:
            with anyio.fail_after(ERROR_S), pytest.raises(AuthorizationError, match="DESCRIBE group 'new'"):
                await consumer.getone()
            old.rights.give("READ group new")
            with anyio.fail_after(ERROR_S):
                while not await consumer.getmany(timeout=0.1):
                    pass


AS_ALICE = ("--command-property", "client.id=alice")
TOOLS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "produce with a hidden topic": (("produce", "-b", "{servers}", "-t", "t", *AS_ALICE), (), "DESCRIBE topic 't'"),
    "produce with numbers": (
        ("produce", "-b", "{servers}", "-t", "t", *AS_ALICE, "--producer-property", "enable.idempotence=true"),
        ("DESCRIBE topic t",),
        "IDEMPOTENT_WRITE on the cluster",
    ),
    "consume a hidden topic": (
        ("consume", "-b", "{servers}", "-t", "t", "--from-beginning", *AS_ALICE),
        (),
        "DESCRIBE topic 't'",
    ),
    "consume": (
        ("consume", "-b", "{servers}", "-t", "t", "--from-beginning", *AS_ALICE),
        ("DESCRIBE topic t",),
        "READ topic 't'",
    ),
    "consume in a hidden group": (
        ("consume", "-b", "{servers}", "-t", "t", "--from-beginning", "--group", "new", *AS_ALICE),
        ("READ topic t",),
        "DESCRIBE group 'new'",
    ),
    "mirror's transactional id": (
        (
            *("mirror", "--from", "{servers}", "--to", "{servers}", "--topics", "t", "--rename", "t=copy"),
            *("--from-property", "client.id=alice", "--to-property", "client.id=alice"),
        ),
        MOVING[:5],
        f"DESCRIBE transactional id '{MIRROR}'",
    ),
    "produce": (("produce", "-b", "{servers}", "-t", "t", *AS_ALICE), ("DESCRIBE topic t",), "WRITE topic 't'"),
    "consume in a group": (
        ("consume", "-b", "{servers}", "-t", "t", "--from-beginning", "--group", "new", *AS_ALICE),
        ("READ topic t", "DESCRIBE group new"),
        "READ group 'new'",
    ),
    "consume --zookeeper": (
        ("consume", "--zookeeper", "{zookeeper}", "-t", "t", "--from-beginning", *AS_ALICE),
        ("DESCRIBE topic t",),
        "READ topic 't'",
    ),
    "mirror": (
        ("mirror", "--from", "{servers}", "--to", "{servers}", "--topics", "t", "--from-property", "client.id=alice"),
        (),
        "DESCRIBE topic 't'",
    ),
    "migrate": (
        ("migrate", "group", "old", "--zookeeper", "{zookeeper}", "-b", "{servers}", *AS_ALICE),
        ("READ group old",),
        "DESCRIBE topic 't'",
    ),
    "zk lag": (("zk", "lag", "-z", "{zookeeper}", "-g", "old", *AS_ALICE), (), "DESCRIBE topic 't'"),
}
"""The command, the rights of the user, and what is refused."""


@pytest.mark.parametrize("name", TOOLS)
async def test_a_tool_says_it_in_one_line(name: str) -> None:
    words, given, refused = TOOLS[name]
    async with cluster(*given) as old:
        places = {"servers": old.servers, "zookeeper": old.zookeeper}
        ran = await console_here(*(word.format(**places) for word in words), given=b"line\n")
    assert ran.status == 1
    lines = [line for line in ran.err.splitlines() if "may not" in line]
    assert len(lines) == 1, ran.err
    assert f"the user may not {refused}: " in lines[0]
    assert "Traceback" not in ran.err
