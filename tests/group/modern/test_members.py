"""Members of the new protocol on embedded clusters: sharing, leaving, losing, committing, falling back."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import BrokerError, ConfigError, PartitionRevokedError, UnsupportedVersionError
from pykafka08.group.coordinator import OffsetAndMetadata
from pykafka08.group.pattern import SubscriptionPattern
from tests.group.members import Member, all_of, member, wait_shared

PARTITIONS = 6
BEATS = {"group_consumer_heartbeat_interval_ms": 50}

pytestmark = pytest.mark.anyio

modern = partial(member, group_protocol="consumer")


def cluster_of(version: str = "4.3", **settings: Any) -> EmbeddedCluster:
    return EmbeddedCluster(version=version, **{"topics": {"t": PARTITIONS}, **BEATS, **settings})


async def until(condition: Any, *members: Member) -> None:
    with anyio.fail_after(30):
        while not condition():
            for each in members:
                each.group.check()
            with anyio.move_on_after(0.5):
                await members[0].group.news


def apis(cluster: EmbeddedCluster) -> set[str]:
    return {request.api for request in cluster.requests}


@pytest.mark.parametrize(("version", "more"), [("3.7", {"group_version": 1}), ("4.0", {}), ("4.3", {})])
async def test_members_come_share_commit_and_go(version: str, more: dict[str, int]) -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of(version, brokers=2, **more) as cluster, AsyncExitStack() as stack:
        members: list[Member] = []
        for count in range(1, 4):
            members.append(await stack.enter_async_context(modern(cluster.bootstrap_servers, "t")))
            members[-1].heard.rivals = members
            await wait_shared(members, parts)
            assert {len(each.partitions) for each in members} == {PARTITIONS // count}
        mine = members[0].partitions[0]
        committed = OffsetAndMetadata(5, -1, "note")
        assert await members[0].group.commit({mine: committed}) == {}
        assert await members[1].group.committed(parts) == dict.fromkeys(parts) | {mine: committed}
        await members.pop().group.aclose()
        await wait_shared(members, parts)
        assert not apis(cluster) & {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"}
        assert not any(request.trailing_bytes for request in cluster.requests)


async def test_members_keep_what_they_keep() -> None:
    async with cluster_of() as cluster, modern(cluster.bootstrap_servers, "t") as first:
        await wait_shared([first], all_of("t", PARTITIONS))
        async with modern(cluster.bootstrap_servers, "t") as second:
            await wait_shared([first, second], all_of("t", PARTITIONS))
            assert [gone for what, gone in first.heard.calls if what == "revoked"] == [second.partitions]
            assert not any(what == "revoked" for what, _ in second.heard.calls)


async def test_a_partition_is_nobodys_until_its_owner_has_let_go() -> None:
    async with cluster_of() as cluster, modern(cluster.bootstrap_servers, "t") as first:
        await wait_shared([first], all_of("t", PARTITIONS))
        first.heard.gate = anyio.Event()
        async with modern(cluster.bootstrap_servers, "t") as second:
            second.heard.rivals = [first, second]
            await until(lambda: first.heard.calls[-1][0] == "revoked" and second.group.generation > 0, first, second)
            given_up = first.heard.calls[-1][1]
            before = len(cluster.requests)
            await until(lambda: len(cluster.requests) > before + 6, first, second)
            assert second.partitions == []
            committed = dict.fromkeys(given_up, OffsetAndMetadata(9))
            assert await first.group.commit(committed) == {}, "they are its own until it returns"
            first.heard.gate.set()
            await wait_shared([first, second], all_of("t", PARTITIONS))
            assert second.partitions == given_up


async def test_new_topics_new_partitions_and_a_new_subscription() -> None:
    async with cluster_of(topics={"a": 2, "b": 1}) as cluster:
        async with modern(cluster.bootstrap_servers, "a") as only:
            await wait_shared([only], all_of("a", 2))
            only.group.subscribe(["b", "later"])
            await wait_shared([only], all_of("b", 1))
            cluster.create_topic("later", 2)
            await wait_shared([only], all_of("b", 1) + all_of("later", 2))
            topic = cluster._state.topics.find("later")
            assert topic is not None
            cluster._state.topics.grow(topic, 4, 1)
            await wait_shared([only], all_of("b", 1) + all_of("later", 4))
            cluster.delete_topic("later")
            cluster.create_topic("later", 3)
            await wait_shared([only], all_of("b", 1) + all_of("later", 3))


async def test_topics_by_a_pattern_of_the_brokers() -> None:
    async with cluster_of(topics={"a-1": 2, "b-1": 1}) as cluster:
        async with modern(cluster.bootstrap_servers) as only:
            only.group.subscribe([SubscriptionPattern("a-.*")])
            await wait_shared([only], all_of("a-1", 2))
            cluster.create_topic("a-2", 1)
            await wait_shared([only], all_of("a-1", 2) + all_of("a-2", 1))
            only.group.subscribe(["b-1"])
            await wait_shared([only], all_of("b-1", 1))
        async with modern(cluster.bootstrap_servers) as other:
            other.group.subscribe([SubscriptionPattern("(")])
            with pytest.raises(BrokerError, match="INVALID_REGULAR_EXPRESSION"):
                await other.group.wait_stable(timeout=30)
        async with member(cluster.bootstrap_servers) as classic:
            with pytest.raises(ConfigError, match="group_protocol='consumer'"):
                classic.group.subscribe([SubscriptionPattern("a-.*")])


async def test_the_assignor_that_is_asked_for() -> None:
    async with cluster_of() as cluster, AsyncExitStack() as stack:
        members = [
            await stack.enter_async_context(modern(cluster.bootstrap_servers, "t", group_remote_assignor="range"))
            for _ in range(2)
        ]
        await wait_shared(members, all_of("t", PARTITIONS))
        shares = sorted(each.partitions for each in members)
        assert shares == [all_of("t", PARTITIONS)[:3], all_of("t", PARTITIONS)[3:]]
        async with modern(cluster.bootstrap_servers, "t", group_id="other", group_remote_assignor="best") as wrong:
            with pytest.raises(BrokerError, match="UNSUPPORTED_ASSIGNOR"):
                await wrong.group.wait_stable(timeout=30)


async def test_a_member_that_is_killed_is_replaced_when_its_session_ends() -> None:
    async with cluster_of(group_consumer_session_timeout_ms=1000) as cluster, AsyncExitStack() as stack:
        first = await stack.enter_async_context(modern(cluster.bootstrap_servers, "t"))
        second = await stack.enter_async_context(modern(cluster.bootstrap_servers, "t"))
        await wait_shared([first, second], all_of("t", PARTITIONS))
        await second.client.aclose()  # not a word to the coordinator
        await wait_shared([first], all_of("t", PARTITIONS))


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
async def test_a_member_that_is_out_is_told_and_joins_again(code: ErrorCode) -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of() as cluster, modern(cluster.bootstrap_servers, "t") as only:
        await wait_shared([only], parts)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            cluster._state.groups.expire("g", None)
        else:
            cluster.faults.answer("ConsumerGroupHeartbeat", code)
        await until(lambda: len(only.heard.calls) >= 3, only)
        await wait_shared([only], parts)
        assert only.heard.calls == [("assigned", parts), ("lost", parts), ("assigned", parts)]


async def test_a_member_that_the_broker_still_has_may_join_again_on_4_0() -> None:
    """There FENCED_MEMBER_EPOCH is the answer to a known member that joins, until its session ends."""
    async with cluster_of("4.0") as cluster, modern(cluster.bootstrap_servers, "t") as only:
        await wait_shared([only], all_of("t", PARTITIONS))
        cluster.faults.answer("ConsumerGroupHeartbeat", ErrorCode.FENCED_MEMBER_EPOCH, times=2)
        await until(lambda: len(only.heard.calls) >= 3, only)
        await wait_shared([only], all_of("t", PARTITIONS))


@pytest.mark.parametrize("api", ["FindCoordinator", "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch"])
@pytest.mark.parametrize("fault", ["close_before", "close_after", ErrorCode.NOT_COORDINATOR])
async def test_trouble_with_the_coordinator_loses_nothing(api: str, fault: str | ErrorCode) -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of() as cluster:
        if isinstance(fault, ErrorCode):
            cluster.faults.answer(api, fault, times=2)
        else:
            getattr(cluster.faults, fault)(api)
        async with modern(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], parts)
            assert await only.group.commit({parts[0]: OffsetAndMetadata(7)}) == {}
            assert await only.group.committed(parts[:1]) == {parts[0]: OffsetAndMetadata(7)}
            assert only.heard.calls == [("assigned", parts)]


async def test_the_coordinator_moves() -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of(brokers=3) as cluster, modern(cluster.bootstrap_servers, "t") as only:
        await wait_shared([only], parts)
        before, member_id = only.group.node_id, only.group.member_id
        assert before is not None
        await cluster.stop_broker(before)
        assert await only.group.commit({parts[0]: OffsetAndMetadata(7)}) == {}
        await until(lambda: only.group.node_id not in (before, None), only)
        await wait_shared([only], parts)
        assert only.group.member_id == member_id
        assert only.heard.calls == [("assigned", parts)]


async def test_static_members_keep_their_partitions_over_a_restart() -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of() as cluster, modern(cluster.bootstrap_servers, "t", group_instance_id="one") as first:
        async with modern(cluster.bootstrap_servers, "t", group_instance_id="two") as second:
            await wait_shared([first, second], parts)
            before, member_id = second.partitions, second.group.member_id
            heard = list(first.heard.calls)
        async with modern(cluster.bootstrap_servers, "t", group_instance_id="two") as second:
            await wait_shared([first, second], parts)
            assert second.partitions == before
            assert second.group.member_id != member_id
            assert first.heard.calls == heard


async def test_a_static_member_waits_for_its_former_self_to_expire() -> None:
    async with cluster_of(group_consumer_session_timeout_ms=500) as cluster:
        async with modern(cluster.bootstrap_servers, "t", group_instance_id="one") as first:
            await wait_shared([first], all_of("t", PARTITIONS))
            async with modern(cluster.bootstrap_servers, "t", group_instance_id="one") as second:
                await until(lambda: any(each.api == "ConsumerGroupHeartbeat" for each in cluster.requests), second)
                await first.client.aclose()
                await wait_shared([second], all_of("t", PARTITIONS))


async def test_a_stale_epoch_makes_a_commit_wait_for_the_next_heartbeat() -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of() as cluster, modern(cluster.bootstrap_servers, "t") as only:
        await wait_shared([only], parts)
        cluster.faults.answer("OffsetCommit", ErrorCode.STALE_MEMBER_EPOCH, times=2)
        assert await only.group.commit({parts[0]: OffsetAndMetadata(1)}) == {}
        assert await only.group.committed(parts[:1]) == {parts[0]: OffsetAndMetadata(1)}


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND])
async def test_a_commit_of_a_member_that_is_out_is_refused_by_partition(code: ErrorCode) -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of() as cluster, modern(cluster.bootstrap_servers, "t") as only:
        await wait_shared([only], parts)
        cluster.faults.answer("OffsetCommit", code)
        refused = await only.group.commit({parts[0]: OffsetAndMetadata(1)})
        assert isinstance(refused[parts[0]], PartitionRevokedError)
        await until(lambda: len(only.heard.calls) >= 3, only)
        await wait_shared([only], parts)
        assert [what for what, _ in only.heard.calls] == ["assigned", "lost", "assigned"]


async def test_closing_is_bounded_when_all_brokers_are_gone() -> None:
    async with cluster_of() as cluster:
        async with modern(cluster.bootstrap_servers, "t", close_timeout=0.5) as only:
            await wait_shared([only], all_of("t", PARTITIONS))
            await cluster.stop_broker(0)
            with anyio.fail_after(20):
                await only.group.aclose(timeout=0.5)
            assert only.heard.calls[-1][0] == "revoked"


# --- which protocol ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "settings", "is_new"),
    [
        ("4.3", {}, True),
        ("4.0", {}, True),
        ("4.3", {"group_version": 0}, False),
        ("3.9", {}, False),
        ("3.9", {"group_version": 1}, False),  # a preview
        ("2.8", {}, False),
        ("0.9.0", {}, False),
    ],
)
async def test_auto(version: str, settings: dict[str, int], is_new: bool) -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of(version, **settings) as cluster, AsyncExitStack() as stack:
        members = [
            await stack.enter_async_context(member(cluster.bootstrap_servers, "t", group_protocol="auto"))
            for _ in range(2)
        ]
        await wait_shared(members, parts)
        assert await members[0].group.commit({members[0].partitions[0]: OffsetAndMetadata(1)}) == {}
        assert ("JoinGroup" in apis(cluster)) is not is_new


async def test_auto_is_classic_for_who_chooses_assignors() -> None:
    async with cluster_of() as cluster:
        settings = {"group_protocol": "auto", "partition_assignment_strategy": ("roundrobin",)}
        async with member(cluster.bootstrap_servers, "t", **settings) as only:
            await wait_shared([only], all_of("t", PARTITIONS))
        assert "ConsumerGroupHeartbeat" not in apis(cluster)


@pytest.mark.parametrize(
    ("version", "settings"), [("2.8", {}), ("3.9", {}), ("4.3", {"group_version": 0}), ("0.9.0", {})]
)
async def test_the_new_protocol_where_there_is_none(version: str, settings: dict[str, int]) -> None:
    async with cluster_of(version, **settings) as cluster, modern(cluster.bootstrap_servers, "t") as only:
        with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.0 has it"):
            await only.group.wait_stable(timeout=30)


async def test_a_coordinator_that_was_not_upgraded_yet_takes_an_auto_member_back_to_classic() -> None:
    parts = all_of("t", PARTITIONS)
    async with cluster_of() as cluster, member(cluster.bootstrap_servers, "t", group_protocol="auto") as only:
        await wait_shared([only], parts)
        cluster._state.groups.expire("g", None)
        cluster._state.features["group.version"] = 0
        await until(lambda: "SyncGroup" in apis(cluster), only)
        await wait_shared([only], parts)
        assert only.heard.calls == [("assigned", parts), ("lost", parts), ("assigned", parts)]


async def test_a_group_moves_to_the_new_protocol_member_by_member_and_back() -> None:
    """Members of both share; nobody ever owns what another owns."""
    parts = all_of("t", PARTITIONS)
    eager = {"partition_assignment_strategy": ("range",)}
    cooperative = {"partition_assignment_strategy": ("cooperative-sticky",)}
    async with cluster_of() as cluster:
        for settings in (eager, cooperative):
            async with AsyncExitStack() as stack:
                old = await stack.enter_async_context(member(cluster.bootstrap_servers, "t", **settings))
                await wait_shared([old], parts)
                new = await stack.enter_async_context(modern(cluster.bootstrap_servers, "t"))
                old.heard.rivals = new.heard.rivals = [old, new]
                await wait_shared([old, new], parts)
                assert len(old.partitions) == len(new.partitions) == PARTITIONS // 2
                for each in (old, new):
                    assert await each.group.commit({each.partitions[0]: OffsetAndMetadata(3)}) == {}
                later = await stack.enter_async_context(member(cluster.bootstrap_servers, "t", **settings))
                later.heard.rivals = old.heard.rivals = new.heard.rivals = [old, new, later]
                await wait_shared([old, new, later], parts)
                await new.group.aclose()
                old.heard.rivals = later.heard.rivals = [old, later]
                await wait_shared([old, later], parts)
                assert {each.group_id for each in cluster._state.groups} == {"g"}


async def test_auto_joins_workers_of_another_kind_as_a_classic_member_would() -> None:
    """Their group cannot be moved: the classic protocol says what is wrong."""
    async with cluster_of() as cluster, member(cluster.bootstrap_servers, "t") as only:
        await wait_shared([only], all_of("t", PARTITIONS))
        group = cluster._state.groups.find("g")
        assert group is not None
        group.protocol_type = "connect"
        async with member(cluster.bootstrap_servers, "t", group_protocol="auto") as stranger:
            with pytest.raises(BrokerError, match="INCONSISTENT_GROUP_PROTOCOL"):
                await stranger.group.wait_stable(timeout=30)
        async with modern(cluster.bootstrap_servers, "t") as stranger:
            with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
                await stranger.group.wait_stable(timeout=30)
        group.protocol_type = "consumer"


# --- chaos ------------------------------------------------------------------------------------------------------------

APIS = ("FindCoordinator", "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch", "Metadata")
CODES = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def break_something(cluster: EmbeddedCluster, rng: random.Random) -> None:
    api = rng.choice(APIS)
    kind = rng.choice(("close_before", "close_after", "answer", "delay"))
    if kind == "answer" and api != "Metadata":
        cluster.faults.answer(api, rng.choice(CODES), times=rng.randint(1, 2))
    elif kind == "delay":
        cluster.faults.delay(api, 0.05)
    else:
        getattr(cluster.faults, kind if kind != "answer" else "close_before")(api)


@pytest.mark.parametrize("seed", range(3))
async def test_faults(seed: int) -> None:
    rng = random.Random(seed)
    parts = all_of("t", PARTITIONS)
    async with cluster_of(brokers=3, group_consumer_session_timeout_ms=2000) as cluster, AsyncExitStack() as stack:
        members: list[Member] = []
        for offset in range(1, 7):
            break_something(cluster, rng)
            if members and rng.random() < 0.4:
                await members.pop(rng.randrange(len(members))).group.aclose()
            if not members or rng.random() < 0.7:
                joins = modern(cluster.bootstrap_servers, "t", session_timeout_ms=2000)
                members.append(await stack.enter_async_context(joins))
                members[-1].heard.rivals = members
            await wait_shared(members, parts)
            break_something(cluster, rng)
            for each in members:
                mine = each.partitions
                refused = await each.group.commit(dict.fromkeys(mine, OffsetAndMetadata(offset)))
                assert all(isinstance(error, PartitionRevokedError) for error in refused.values())
                found = await each.group.committed(mine)
                assert all(found[tp] == OffsetAndMetadata(offset) for tp in mine if tp not in refused)
        cluster.faults.clear()
        await wait_shared(members, parts)
