"""A JoinGroup or SyncGroup whose answer is lost while its connection lives: noticed in seconds, not in minutes."""

from __future__ import annotations

from itertools import pairwise

import anyio
import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import TransportError
from pykafka08.group.actions import Assign, FindCoordinator, HangUp, Join, Look, Lost, Sync
from pykafka08.group.held import Sight
from pykafka08.group.reactions import Api
from tests.group.members import all_of, member, wait_shared
from tests.group.world import ME, SESSION, World, parts

PREPARING = Sight("PreparingRebalance", frozenset({ME}))
COMPLETING = Sight("CompletingRebalance", frozenset({ME}))
STABLE = Sight("Stable", frozenset({ME}))
GONE = Sight("PreparingRebalance", frozenset({"others"}))


def joining(**settings: object) -> tuple[World, Join]:
    """A cooperative member with two partitions, that joins again."""
    world = World.stable("cooperative-sticky", session_timeout_ms=int(SESSION * 1000), **settings)
    world.machine.subscribe(["t", "u"])
    return world, world.one(Join)


def look(world: World) -> Look:
    world.sleep()
    return world.one(Look)


def test_a_join_that_is_held_is_looked_at_and_waited_for() -> None:
    world, join = joining()
    began, looks = world.now, []
    for _ in range(50):
        each = look(world)
        assert each.node_id == 1
        looks.append(world.now)
        world.machine.looked(each.attempt, PREPARING, world.now)
    assert world.now > began + 10 * SESSION, "the group keeps it for as long as others may take"
    pauses = [after - before for before, after in pairwise(looks)]
    assert max(pauses) <= SESSION / 3 + 0.001, "but it is looked at often enough to know that the session lives"
    world.joined(join, generation=2)
    sync = world.one(Sync)
    each = look(world)
    world.machine.looked(each.attempt, COMPLETING, world.now)
    world.synced(sync, parts(0, 1))
    assert world.machine.assigned == parts(0, 1)


@pytest.mark.parametrize("sight", [COMPLETING, STABLE, GONE, Sight("Empty", frozenset()), Sight("Dead", frozenset())])
def test_a_join_that_cannot_be_held_is_lost(sight: Sight) -> None:
    world, join = joining()
    began = world.now
    world.machine.looked(look(world).attempt, sight, world.now)
    assert world.poll() == [], "the answer may just be on its way"
    world.machine.looked(look(world).attempt, sight, world.now)
    assert world.one(HangUp) == HangUp(join.attempt, 1, "JoinGroup")
    assert world.now - began < 5
    world.machine.request_failed(join.attempt, Api.JOIN_GROUP, TransportError("lost"), world.now)
    world.sleep()
    world.machine.coordinator_found(world.one(FindCoordinator).attempt, 1)
    again = world.one(Join)
    assert again.member_id == ME
    assert world.machine.assigned == parts(0, 1)


def test_an_answer_between_two_looks_counts() -> None:
    world, join = joining()
    world.machine.looked(look(world).attempt, COMPLETING, world.now)
    world.joined(join, generation=2)
    assert world.one(Sync).membership.generation == 2


def test_a_look_that_is_answered_after_the_join_says_nothing_of_the_sync() -> None:
    world, join = joining()
    late = look(world)
    world.joined(join, generation=2)
    sync = world.one(Sync)
    for _ in range(3):
        world.machine.looked(late.attempt, STABLE, world.now)
    assert world.poll() == []
    world.synced(sync, parts(0, 1))
    assert world.machine.assigned == parts(0, 1)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_sync_that_is_held_beyond_the_session_brings_its_assignment(strategy: str) -> None:
    """The looks have found the member alive."""
    world = World(strategy)
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join))
    sync = world.one(Sync)
    while world.now <= SESSION + 1:
        world.machine.looked(look(world).attempt, COMPLETING, world.now)
        seen_at = world.now
    world.synced(sync, parts(0, 1))
    assert world.tell(Assign).assigned == parts(0, 1)
    assert world.machine.heartbeats.expires_at == seen_at + SESSION


@pytest.mark.parametrize("name", ["CompletingRebalance", "AwaitingSync"])
def test_a_sync_is_held_until_the_leader_has_assigned(name: str) -> None:
    world, join = joining()
    world.joined(join, generation=2)
    sync = world.one(Sync)
    for _ in range(5):
        world.machine.looked(look(world).attempt, Sight(name, frozenset({ME})), world.now)
    world.machine.looked(look(world).attempt, STABLE, world.now)
    world.machine.looked(look(world).attempt, STABLE, world.now)
    assert world.one(HangUp) == HangUp(sync.attempt, 1, "SyncGroup")


def test_without_any_sign_of_life_the_partitions_are_lost() -> None:
    """Nobody answers: others have the partitions by the end of the session."""
    world, _ = joining()
    heard_at = world.machine.heartbeats.heard_at
    look(world)
    world.sleep()
    assert world.now == heard_at + SESSION
    assert world.one(Lost).partitions == parts(0, 1)
    assert world.machine.assigned == frozenset()


def test_looks_without_an_answer_make_it_look_for_the_coordinator() -> None:
    world, join = joining()
    world.machine.looked(look(world).attempt, None, world.now)
    world.machine.looked(look(world).attempt, None, world.now)
    assert world.one(HangUp).attempt == join.attempt


def test_who_may_not_look_waits_for_the_answer() -> None:
    world, join = joining()
    world.machine.look_refused(look(world).attempt)
    assert world.poll() == []
    assert world.machine.next_wakeup() is None
    world.now += 100 * SESSION
    assert world.poll() == []
    world.joined(join, generation=2)
    world.one(Sync)
    assert world.machine.next_wakeup() is None


def test_a_new_member_does_not_know_its_id_yet() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.one(Join)
    for _ in range(5):
        world.machine.looked(look(world).attempt, GONE, world.now)
        assert world.poll() == []
    world.machine.looked(look(world).attempt, STABLE, world.now)
    world.machine.looked(look(world).attempt, STABLE, world.now)
    world.one(HangUp)


def test_patience_grows_with_each_loss_that_leads_nowhere() -> None:
    """A broker that is slow to take the request, not to answer it, gets more time."""
    world = World(session_timeout_ms=90_000)
    world.machine.subscribe(["t"])
    world.found()
    waits = []
    for _ in range(5):
        join, began = world.one(Join), world.now
        world.machine.looked(look(world).attempt, STABLE, world.now)
        world.machine.looked(look(world).attempt, STABLE, world.now)
        waits.append(world.now - began)
        world.one(HangUp)
        world.machine.request_failed(join.attempt, Api.JOIN_GROUP, TransportError("lost"), world.now)
        world.sleep()
        world.machine.coordinator_found(world.one(FindCoordinator).attempt, 1)
    assert waits == sorted(waits)
    assert waits[-1] > 5 * waits[0]


@pytest.mark.anyio
@pytest.mark.parametrize("version", ["0.9.0", "1.0", "2.8", "4.3"])
@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
async def test_a_lost_answer_costs_seconds_not_the_poll_interval(api: str, version: str) -> None:
    """With an interval far beyond the deadline of `wait_shared`."""
    settings = {"session_timeout_ms": 6_000, "max_poll_interval_ms": 3_600_000}
    cluster = EmbeddedCluster(version=version, topics={"t": 2, "u": 1}, group_min_session_timeout_ms=100)
    async with cluster, member(cluster.bootstrap_servers, "t", **settings) as only:
        await wait_shared([only], all_of("t", 2))
        member_id = only.group.member_id
        cluster.faults.drop_answer(api)
        only.group.subscribe(["t", "u"])
        await wait_shared([only], all_of("t", 2) + all_of("u", 1))
        assert only.group.member_id == member_id
        assert "DescribeGroups" in {request.api for request in cluster.requests}
        assert "lost" not in {what for what, _ in only.heard.calls}


@pytest.mark.anyio
async def test_a_group_that_may_not_be_described_is_waited_for() -> None:
    """As a member that is slow holds up another's join."""
    cluster = EmbeddedCluster(topics={"t": 2}, group_min_session_timeout_ms=100)
    settings = {"session_timeout_ms": 1_000}
    async with cluster, member(cluster.bootstrap_servers, "t", **settings) as first:
        await wait_shared([first], all_of("t", 2))
        cluster.faults.answer("DescribeGroups", ErrorCode.GROUP_AUTHORIZATION_FAILED, times=None)
        first.heard.gate = anyio.Event()
        async with member(cluster.bootstrap_servers, "t", **settings) as second:
            with anyio.fail_after(30):
                while not any(request.api == "DescribeGroups" for request in cluster.requests):
                    await second.group.news
            first.heard.gate.set()
            await wait_shared([first, second], all_of("t", 2))
            assert sum(request.api == "JoinGroup" for request in cluster.requests) <= 5
