"""The administrator against embedded brokers of many releases."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pykafka08 import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigError,
    Consumer,
    EmbeddedCluster,
    ErrorCode,
    OffsetAndMetadata,
    RemoteProtocolError,
    TopicPartition,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.admin import Admin, NewTopic
from pykafka08.admin.asking import Asking, check_code
from pykafka08.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse

pytestmark = pytest.mark.anyio

WITH_TOPICS = ["0.10.1", "0.11.0", "2.3", "4.3"]
WITH_GROUPS = ["0.9.0", "0.10.1", "2.8", "4.3"]


@pytest.mark.parametrize("version", WITH_TOPICS)
async def test_topics_are_created_described_and_deleted(version: str) -> None:
    async with EmbeddedCluster(brokers=3, version=version, topics={"there": 1}) as cluster:
        async with Admin(cluster.bootstrap_servers) as admin:
            refused = await admin.create_topics([NewTopic("new", 4, 2), NewTopic("there", 1, 1)])
            assert list(refused) == ["there"]
            assert isinstance(refused["there"], BrokerError)
            assert refused["there"].code == ErrorCode.TOPIC_ALREADY_EXISTS
            assert await admin.list_topics() == ["new", "there"]
            described = (await admin.describe_topics(["new"]))["new"]
            assert [len(each.replicas) for each in described.partitions.values()] == [2] * 4
            assert (described.topic_id is not None) == (version == "4.3")
            assert await admin.delete_topics(["new"]) == {}
            assert await admin.list_topics() == ["there"]
            gone = await admin.delete_topics(["new"])
            assert isinstance(gone["new"], UnknownTopicError)
            with pytest.raises(UnknownTopicError, match="new"):
                await admin.describe_topics(["new"])


async def test_a_topic_may_name_its_brokers_and_be_only_checked() -> None:
    async with EmbeddedCluster(brokers=3) as cluster, Admin(cluster.bootstrap_servers) as admin:
        asked = NewTopic("t", assignments=[(2, 0), (1, 2)], configs={"cleanup.policy": "compact"})
        assert await admin.create_topics([asked], validate_only=True) == {}
        assert await admin.list_topics() == []
        assert await admin.create_topics([asked]) == {}
        described = (await admin.describe_topics(["t"]))["t"]
        assert [each.replicas for each in described.partitions.values()] == [(2, 0), (1, 2)]
        assert (await admin.describe_topic_configs(["t"]))["t"]["cleanup.policy"].value == "compact"


async def test_partitions_are_added_and_never_taken() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster, Admin(cluster.bootstrap_servers) as admin:
        assert await admin.create_partitions({"t": 5}) == {}
        assert len((await admin.describe_topics(["t"]))["t"].partitions) == 5
        refused = await admin.create_partitions({"t": 3})
        assert "INVALID_PARTITIONS" in str(refused["t"])


@pytest.mark.parametrize("version", WITH_GROUPS)
async def test_groups_are_listed_and_described_with_their_members(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 2}) as cluster:
        servers = cluster.bootstrap_servers
        async with Admin(servers) as admin, Consumer("t", bootstrap_servers=servers, group_id="g"):
            described = await admin.describe_groups(["g", "nobody"])
            assert [each.group_id for each in await admin.list_groups()] == ["g"]
            assert described["g"].state == "Stable"
            assert [sorted(each.partitions) for each in described["g"].members] == [
                [TopicPartition("t", 0), TopicPartition("t", 1)]
            ]
            assert described["nobody"].state == "Dead"
            assert not described["nobody"].has_members
            with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
                await admin.alter_group_offsets("g", {TopicPartition("t", 0): 0})


async def test_a_group_of_the_new_protocol_is_described_too() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        servers = cluster.bootstrap_servers
        settings = {"group_id": "g", "group_protocol": "consumer"}
        async with Admin(servers) as admin, Consumer("t", bootstrap_servers=servers, **settings):
            described = (await admin.describe_groups(["g"]))["g"]
            assert described.has_members
            assert [each.kind for each in await admin.list_groups()] == ["consumer"]
            assert [len(each.partitions) for each in described.members] == [2]


@pytest.mark.parametrize("version", ["0.8.2", "0.9.0", "0.10.2", "2.8", "4.3"])
async def test_offsets_of_a_group_are_set_and_told(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 3}) as cluster:
        async with Admin(cluster.bootstrap_servers) as admin:
            wanted = {TopicPartition("t", 0): 5, TopicPartition("t", 2): OffsetAndMetadata(7, -1, "why")}
            assert await admin.alter_group_offsets("g", wanted) == {}
            every = [TopicPartition("t", number) for number in range(3)]
            told = await admin.list_group_offsets("g", every)
            assert {tp: (each.offset, each.metadata) for tp, each in told.items()} == {
                every[0]: (5, ""),
                every[2]: (7, "why"),
            }
            if version in ("0.8.2", "0.9.0"):
                with pytest.raises(UnsupportedVersionError, match=r"0\.10\.2"):
                    await admin.list_group_offsets("g")
            else:
                assert await admin.list_group_offsets("g") == told
                assert await admin.list_group_offsets("other") == {}


async def test_a_group_is_deleted_with_its_offsets_unless_it_has_members() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        servers, tp = cluster.bootstrap_servers, TopicPartition("t", 0)
        async with Admin(servers) as admin:
            await admin.alter_group_offsets("idle", {tp: 3})
            async with Consumer("t", bootstrap_servers=servers, group_id="busy"):
                refused = await admin.delete_groups(["idle", "busy"])
            assert list(refused) == ["busy"]
            assert "NON_EMPTY_GROUP" in str(refused["busy"])
            assert await admin.list_group_offsets("idle", [tp]) == {}


async def test_settings_are_changed_one_by_one() -> None:
    async with EmbeddedCluster(version="3.9", topics={"t": 1}) as cluster, Admin(cluster.bootstrap_servers) as admin:
        await admin.alter_topic_configs("t", {"retention.ms": "1000", "cleanup.policy": "compact"})
        await admin.alter_topic_configs("t", {"retention.ms": None})
        told = (await admin.describe_topic_configs(["t"]))["t"]
        assert {name: each.value for name, each in told.items() if not each.is_default} == {"cleanup.policy": "compact"}
        with pytest.raises(UnknownTopicError):
            await admin.describe_topic_configs(["nope"])


@pytest.mark.parametrize(("version", "release"), [("0.10.0", "0.10.1"), ("0.8.2", "0.10.1")])
async def test_what_brokers_are_too_old_for_names_the_release_and_the_way_round(version: str, release: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        async with Admin(cluster.bootstrap_servers) as admin:
            with pytest.raises(UnsupportedVersionError, match=f"Kafka {release} or later.*pykafka08 zk"):
                await admin.create_topics([NewTopic("new", 1, 1)])
            with pytest.raises(UnsupportedVersionError, match=r"Kafka 0\.11 or later"):
                await admin.describe_topic_configs(["t"])


async def test_a_controller_that_has_moved_is_looked_for() -> None:
    async with EmbeddedCluster(brokers=2) as cluster, Admin(cluster.bootstrap_servers) as admin:
        cluster.faults.answer("CreateTopics", ErrorCode.NOT_CONTROLLER, times=2)
        with anyio.fail_after(30):
            assert await admin.create_topics([NewTopic("t", 1, 1)]) == {}


async def test_it_is_used_in_its_block() -> None:
    async with EmbeddedCluster() as cluster:
        admin = Admin(cluster.bootstrap_servers)
        with pytest.raises(ClosedError):
            await admin.list_topics()
        async with admin:
            with pytest.raises(ConfigError):
                await admin.delete_topics(["t"], timeout=-1)
        with pytest.raises(ClosedError):
            await admin.__aenter__()


# --- answers in which entries are missing or repeated ---


@pytest.fixture(params=[0, 2])
def copies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of times that each entry is in every answer."""
    ask = Asking._ask

    async def forged(self: Asking, *args: Any) -> Any:
        answer = await ask(self, *args)
        for name in ("topics", "responses", "results", "groups"):
            if hasattr(answer, name):
                setattr(answer, name, getattr(answer, name) * request.param)
        return answer

    monkeypatch.setattr(Asking, "_ask", forged)
    return int(request.param)


async def test_answers_without_or_with_repeated_groups_or_resources_are_refused(copies: int) -> None:
    said = "leaves it out" if copies == 0 else "has it 2 times"
    async with EmbeddedCluster(topics={"t": 1}) as cluster, Admin(cluster.bootstrap_servers) as admin:
        for call in (
            lambda: admin.describe_groups(["g"]),
            lambda: admin.delete_groups(["g"]),
            lambda: admin.describe_topic_configs(["t"]),
            lambda: admin.describe_broker_configs(0),
            lambda: admin.alter_topic_configs("t", {"retention.ms": "1000"}),
        ):
            with pytest.raises(RemoteProtocolError, match=said) as caught:
                await call()
            assert caught.value.api is not None


async def test_topics_that_are_missing_from_an_answer_are_reported(copies: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, Admin(cluster.bootstrap_servers) as admin:
        for refused in (
            await admin.create_topics([NewTopic("t", 1, 1)]),
            await admin.create_partitions({"t": 1}),
            await admin.delete_topics(["t"]) if copies == 0 else {},
        ):
            for name, error in refused.items():
                assert name == "t"
                if copies == 0:
                    assert isinstance(error, RemoteProtocolError)
                    assert "leaves the topic out" in str(error)
                else:
                    assert isinstance(error, BrokerError)
                assert error.broker is not None
            assert refused or copies


def test_errors_of_groups_name_group_and_broker() -> None:
    with pytest.raises(AuthorizationError, match="group 'g'") as caught:
        check_code(30, None, "DescribeGroups", group="g", broker="h:1 (id 1)")
    assert caught.value.broker == "h:1 (id 1)"


async def test_repeated_errors_are_retried_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with retry_backoff_ms=0, which caused a busy loop."""
    asked = 0

    async def forged(self: Asking, *_: Any) -> Any:
        nonlocal asked
        asked += 1
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)])

    async with EmbeddedCluster() as cluster:
        settings = {"retry_backoff_ms": 0, "retry_backoff_max_ms": 0}
        async with Admin(cluster.bootstrap_servers, **settings) as admin:
            monkeypatch.setattr(Asking, "_ask", forged)
            with pytest.raises(BrokerError, match="NOT_CONTROLLER"):
                await admin.delete_topics(["t"], timeout=0.4)
    assert asked <= 35


async def test_a_topic_name_that_collides_is_refused_until_the_other_topic_is_deleted() -> None:
    async with EmbeddedCluster(topics={"a.b": 1}) as cluster, Admin(cluster.bootstrap_servers) as admin:
        refused = await admin.create_topics([NewTopic("a_b", 1, 1)])
        assert list(refused) == ["a_b"]
        assert "collides with existing topic: a.b" in str(refused["a_b"])
        with pytest.raises(ConfigError, match=r"'a_b' collides with topic 'a\.b'"):
            cluster.create_topic("a_b")
        assert await admin.delete_topics(["a.b"]) == {}
        assert await admin.create_topics([NewTopic("a_b", 1, 1)]) == {}


async def test_a_broker_that_is_not_in_the_cluster_is_named_at_once() -> None:
    async with EmbeddedCluster(brokers=2) as cluster, Admin(cluster.bootstrap_servers) as admin:
        assert await admin.describe_broker_configs(1)
        with pytest.raises(TransportError, match=r"broker 9 is not in .* the live brokers are 0, 1"):
            await admin.describe_broker_configs(9)
        asked = [each.api for each in cluster.requests]
        assert asked.count("DescribeConfigs") == 1
        assert asked.count("Metadata") <= 4
