"""Missing permissions: one typed error at once; other topics are still read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from pykafka08 import Admin, Consumer, Producer
from pykafka08.admin.values import NewTopic
from pykafka08.errors import AuthorizationError, KafkaError, UnknownTopicError
from pykafka08.records.record import TopicPartition
from tests.authorization import ALICE, Rights, guarded

pytestmark = pytest.mark.anyio

Action = Callable[[Rights], Awaitable[object]]
CONNECT_S = 10
"""The default of the connections' set-up time-out."""


def settings(rights: Rights, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": rights.cluster.bootstrap_servers, **ALICE, **more}


async def produce(rights: Rights) -> None:
    async with Producer(**settings(rights)) as producer:
        await producer.send("t", b"x")


async def produce_numbered(rights: Rights) -> None:
    async with Producer(**settings(rights), enable_idempotence=True) as producer:
        await producer.send("t", b"x")


async def produce_new(rights: Rights) -> None:
    async with Producer(**settings(rights)) as producer:
        await producer.send("new", b"x")


async def transact(rights: Rights) -> None:
    async with Producer(**settings(rights), transactional_id="tx") as producer, producer.transaction():
        await producer.send("t", b"x")


async def consume(rights: Rights) -> None:
    async with Consumer("t", **settings(rights)) as consumer:
        await consumer.getone()


async def consume_in_group(rights: Rights) -> None:
    async with Consumer("t", **settings(rights), group_id="g", group_protocol="classic") as consumer:
        await consumer.getone()


async def consume_in_new_group(rights: Rights) -> None:
    async with Consumer("t", **settings(rights), group_id="g", group_protocol="consumer") as consumer:
        await consumer.getone()


async def describe_hidden(client: Admin) -> None:
    """A list of all topics, which the client keeps from then on, leaves it out."""
    assert await client.list_topics() == []
    await client.describe_topics(["t"])


async def commit(rights: Rights) -> None:
    async with Consumer(**settings(rights), group_id="g") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        refused = await consumer.commit({TopicPartition("t", 0): 1})
        for error in (refused or {}).values():
            raise error


async def look_up(rights: Rights) -> None:
    async with Consumer(**settings(rights)) as consumer:
        await consumer.end_offsets([TopicPartition("t", 0)])


def admin(call: Callable[[Admin], Awaitable[Any]]) -> Action:
    async def act(rights: Rights) -> None:
        async with Admin(**settings(rights)) as client:
            refused = await call(client)
            if isinstance(refused, dict):
                for error in refused.values():
                    if isinstance(error, KafkaError):
                        raise error

    return act


READ = ("READ topic t", "READ group g")
CASES: dict[str, tuple[tuple[str, ...], Action, tuple[str, str, str], str]] = {
    "produce, hidden": ((), produce, ("topic", "t", "DESCRIBE"), "Produce"),
    "produce": (("DESCRIBE topic t",), produce, ("topic", "t", "WRITE"), "Produce"),
    "produce with numbers": (("DESCRIBE topic t",), produce_numbered, ("cluster", "kafka-cluster", "IDEMPOTENT_WRITE"),
                             "InitProducerId"),
    "produce to a new topic": (("DESCRIBE topic new", "WRITE topic new"), produce_new, ("topic", "new", "DESCRIBE"),
                               "Produce"),
    "transaction, hidden": ((), transact, ("transactional id", "tx", "DESCRIBE"), "FindCoordinator"),
    "transaction": (("DESCRIBE transactional-id tx",), transact, ("transactional id", "tx", "WRITE"),
                    "InitProducerId"),
    "transaction's topic": (("WRITE transactional-id tx", "DESCRIBE topic t"), transact, ("topic", "t", "WRITE"),
                            "Produce"),
    "consume, hidden": ((), consume, ("topic", "t", "DESCRIBE"), "Fetch"),
    "consume": (("DESCRIBE topic t",), consume, ("topic", "t", "READ"), "Fetch"),
    "group, hidden": (("READ topic t",), consume_in_group, ("group", "g", "DESCRIBE"), "FindCoordinator"),
    "group": (("READ topic t", "DESCRIBE group g"), consume_in_group, ("group", "g", "READ"), "JoinGroup"),
    "new group": (("READ topic t", "DESCRIBE group g"), consume_in_new_group, ("group", "g", "READ"),
                  "ConsumerGroupHeartbeat"),
    "group's topic": (("DESCRIBE topic t", "READ group g"), consume_in_group, ("topic", "t", "READ"), "Fetch"),
    "commit": (("DESCRIBE topic t", "READ group g"), commit, ("topic", "t", "READ"), "OffsetCommit"),
    "commit of a group": (("READ topic t", "DESCRIBE group g"), commit, ("group", "g", "READ"), "OffsetCommit"),
    "offsets": ((), look_up, ("topic", "t", "DESCRIBE"), "ListOffsets"),
    "create topic": ((), admin(lambda each: each.create_topics([NewTopic("new", 1, 1)])), ("topic", "new", "CREATE"),
                     "CreateTopics"),
    "describe topic": ((), admin(describe_hidden), ("topic", "t", "DESCRIBE"), "DescribeConfigs"),
    "delete topic": (("DESCRIBE topic t",), admin(lambda each: each.delete_topics(["t"])), ("topic", "t", "DELETE"),
                     "DeleteTopics"),
    "add partitions": (("DESCRIBE topic t",), admin(lambda each: each.create_partitions({"t": 5})),
                       ("topic", "t", "ALTER"), "CreatePartitions"),
    "delete group": (("DESCRIBE group g",), admin(lambda each: each.delete_groups(["g"])), ("group", "g", "DELETE"),
                     "DeleteGroups"),
    "describe group": ((), admin(lambda each: each.describe_groups(["g"])), ("group", "g", "DESCRIBE"),
                       "FindCoordinator"),
    "describe configs": (("DESCRIBE topic t",), admin(lambda each: each.describe_topic_configs(["t"])),
                         ("topic", "t", "DESCRIBE_CONFIGS"), "DescribeConfigs"),
    "broker's configs": ((), admin(lambda each: each.describe_broker_configs(0)),
                         ("cluster", "kafka-cluster", "DESCRIBE_CONFIGS"), "DescribeConfigs"),
    "alter configs": (("DESCRIBE topic t",), admin(lambda each: each.alter_topic_configs("t", {"retention.ms": "1"})),
                      ("topic", "t", "ALTER_CONFIGS"), "IncrementalAlterConfigs"),
}  # fmt: skip
"""The rights of the user, what she does, the resource and operation that is refused, and the last API asked."""


FOR_READ = "for READ, which includes DESCRIBE"
FOR_WRITE = "for WRITE, which includes DESCRIBE"
NEEDED = {
    "consume, hidden": FOR_READ,
    "group, hidden": FOR_READ,
    "offsets": FOR_READ,
    "produce to a new topic": f"{FOR_WRITE}, and for CREATE if the topic does not exist",
    "produce, hidden": f"{FOR_WRITE}, and for CREATE if the topic does not exist",
    "transaction, hidden": FOR_WRITE,
}
"""The ACL that is enough for the client, where the refused operation is not; administration needs no more than that."""


@pytest.mark.parametrize("name", CASES)
async def test_a_missing_right_is_one_clear_error_at_once(name: str) -> None:
    given, act, refused, api = CASES[name]
    async with guarded(topics={"t": 2}) as rights:
        rights.give(*given)
        with anyio.fail_after(CONNECT_S), pytest.raises(AuthorizationError) as caught:
            await act(rights)
        error = caught.value
        assert (error.resource_type, error.resource_name, error.operation) == refused
        resource = "on the cluster" if refused[0] == "cluster" else f"{refused[0]} {refused[1]!r}"
        assert f"the user may not {refused[2]} {resource}: " in error.message
        assert error.message.endswith(f"; add an ACL {NEEDED.get(name, 'that allows it')}")
        assert rights.asked(api) <= 2, "it was asked again and again"


# -- one topic of several


async def records(consumer: Consumer, count: int) -> tuple[list[str], list[str]]:
    """The topics of the next records, and those of the errors between them."""
    topics: list[str] = []
    refused: list[str] = []
    with anyio.fail_after(20):
        while len(topics) < count:
            try:
                topics += [record.topic for record in await consumer.getmany(max_records=count - len(topics))]
            except AuthorizationError as error:
                refused.append(str(error.resource_name))
    return topics, refused


GROUPS: dict[str, dict[str, Any]] = {
    "no group": {},
    "classic": {"group_id": "g", "group_protocol": "classic", "heartbeat_interval_ms": 50},
    "consumer": {"group_id": "g", "group_protocol": "consumer"},
}


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("given", [(), ("DESCRIBE topic t",)], ids=["hidden", "visible"])
async def test_a_topic_without_the_right_is_raised_once_and_the_others_are_read(
    group: str, given: tuple[str, ...]
) -> None:
    async with (
        guarded(topics={"t": 2, "open": 1}, group_consumer_heartbeat_interval_ms=50) as rights,
        Producer(bootstrap_servers=rights.cluster.bootstrap_servers) as producer,
    ):
        rights.give("READ topic open", "READ group g", *given)
        for partition in (0, 1):
            await producer.send("t", b"x", partition=partition)
        await producer.send("open", b"x")
        async with Consumer("t", "open", **settings(rights, auto_offset_reset="earliest", **GROUPS[group])) as consumer:
            topics, refused = await records(consumer, 1)
            if not refused:
                with pytest.raises(AuthorizationError, match="topic 't'"):
                    await consumer.getone(timeout=10)
            assert (topics, refused[1:]) == (["open"], [])
            assert await consumer.getmany(timeout=0.3) == []  # refused on, and told once
            rights.give("READ topic t")
            topics, refused = await records(consumer, 2)
            assert (topics, refused) == (["t", "t"], [])


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("taken", [("READ topic t",), ("READ topic t", "DESCRIBE topic t")], ids=["visible", "hidden"])
async def test_a_right_that_goes_and_returns_is_raised_once_for_each_loss(group: str, taken: tuple[str, ...]) -> None:
    async with (
        guarded(topics={"t": 2, "open": 1}, group_consumer_heartbeat_interval_ms=50) as rights,
        Producer(bootstrap_servers=rights.cluster.bootstrap_servers) as producer,
    ):
        rights.give("READ topic open", "READ group g", "READ topic t", "DESCRIBE topic t")
        async with Consumer(
            "t",
            "open",
            **settings(rights, auto_offset_reset="earliest", fetch_max_wait_ms=20, metadata_max_age_ms=200),
            **GROUPS[group],
        ) as consumer:
            for _ in range(2):
                for partition in (0, 1):
                    await producer.send("t", b"x", partition=partition)
                assert await records(consumer, 2) == (["t", "t"], [])
                if "group_id" in GROUPS[group]:
                    assert await consumer.commit() == {}  # later it is refused
                rights.take(*taken)
                with pytest.raises(AuthorizationError, match="topic 't'"), anyio.fail_after(10):
                    await consumer.getone()
                await producer.send("open", b"x")
                assert await records(consumer, 1) == (["open"], [])
                assert await consumer.getmany(timeout=0.5) == []
                rights.give(*taken)


@pytest.mark.parametrize("version", ["0.10.2", "0.11"])
async def test_a_topic_that_brokers_hide_may_lack_a_right(version: str) -> None:
    """From 0.10.1 to 0.11 they answer as if there were no such topic."""
    async with guarded(version=version, topics={"t": 1}) as rights:
        limits = {"default_api_timeout_ms": 1000}
        with pytest.raises(UnknownTopicError, match="no such topic, or the user may not DESCRIBE it"):
            async with Consumer("t", **settings(rights, **limits)) as consumer:
                await consumer.getone()
        limits = {"delivery_timeout_ms": 1000, "request_timeout_ms": 900, "linger_ms": 0}
        async with Producer(**settings(rights, **limits)) as producer:
            with pytest.raises(UnknownTopicError, match="no such topic for 1 s, or the user may not DESCRIBE it"):
                await producer.send("t", b"x")


async def test_idempotence_by_default_goes_without_numbers_where_the_cluster_does_not_allow_it() -> None:
    async with guarded(version="2.4", topics={"t": 1}) as rights:
        rights.give("WRITE topic t")
        async with Producer(**settings(rights)) as producer:
            await producer.send("t", b"x")
        assert len(rights.cluster.records("t", 0)) == 1
        with pytest.raises(AuthorizationError, match="IDEMPOTENT_WRITE on the cluster"):
            await produce_numbered(rights)


@pytest.mark.parametrize("version", ["2.8", "4.3"])
async def test_a_refused_topic_ends_its_transaction_and_not_the_producer(version: str) -> None:
    async with guarded(version=version, topics={"t": 1, "u": 1}) as rights:
        rights.give("WRITE transactional-id tx", "DESCRIBE topic t", "WRITE topic u")
        async with Producer(**settings(rights), transactional_id="tx") as producer:
            with pytest.raises(AuthorizationError, match="WRITE topic 't'"):
                async with producer.transaction():
                    await producer.send("t", b"x")
            async with producer.transaction():
                await producer.send("u", b"x")
        assert len(rights.cluster.records("u", 0, committed=True)) == 1
        assert rights.cluster.records("t", 0) == []


async def test_offsets_of_one_topic_are_refused_and_those_of_the_others_committed() -> None:
    async with guarded(topics={"t": 1, "open": 1}) as rights:
        rights.give("READ topic open", "DESCRIBE topic t", "READ group g")
        t, other = TopicPartition("t", 0), TopicPartition("open", 0)
        async with Consumer(**settings(rights), group_id="g") as consumer:
            consumer.assign([t, other])
            refused = await consumer.commit({t: 0, other: 0})
            assert list(refused) == [t]
            assert isinstance(refused[t], AuthorizationError)
            assert await consumer.committed([other])


async def test_a_right_that_is_given_later_counts_at_the_next_call() -> None:
    async with guarded(topics={"t": 1}) as rights:
        async with Producer(**settings(rights)) as producer, Consumer(**settings(rights)) as consumer:
            with pytest.raises(AuthorizationError):
                await producer.send("t", b"x")
            with pytest.raises(AuthorizationError):
                await consumer.end_offsets([TopicPartition("t", 0)])
            rights.give("WRITE topic t")
            with anyio.fail_after(5):
                await producer.send("t", b"x")
                assert await consumer.end_offsets([TopicPartition("t", 0)]) == {TopicPartition("t", 0): 1}
