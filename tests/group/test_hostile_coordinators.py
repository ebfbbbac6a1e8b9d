"""A coordinator whose every answer requires another request, or whose answers have impossible values.

Pauses between requests grow; an impossible value raises a RemoteProtocolError, which names the broker and the group.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RemoteProtocolError
from pykafka08.group.actions import Action, Assign, FindCoordinator, Heartbeat, Join, Lost, Revoke, Sync
from pykafka08.group.reactions import Api
from pykafka08.group.states import State
from pykafka08.group.subscription import encode_assignment, encode_subscription
from pykafka08.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka08.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from pykafka08.protocol.messages.sync_group import SyncGroupResponse
from pykafka08.protocol.schema import ZERO_UUID
from tests.group.modern.test_machine import World as ModernWorld
from tests.group.modern.test_machine import ids
from tests.group.world import ME, SESSION, World, parts

BROKER = "kafka-7:9092 (id 7)"
SECONDS = 14.0
MOST = 60
"""Maximum number of requests in that time; without pauses there are tens of thousands."""

Answer = Callable[[World, Action], None]


def entering(*strategy: str) -> tuple[World, Join]:
    world = World(*strategy)
    world.machine.subscribe(["t"])
    world.machine.coordinator_found(world.one(FindCoordinator).attempt, 7, BROKER)
    return world, world.one(Join)


def foreign_topic(world: World, action: Action) -> None:
    if isinstance(action, Join):
        world.joined(action)
    elif isinstance(action, Sync):
        world.synced(action, parts(0) | parts(0, topic="foreign"))


def endless_rebalance(world: World, action: Action) -> None:
    if isinstance(action, Join):
        world.joined(action)
    elif isinstance(action, Sync):
        code = ErrorCode.REBALANCE_IN_PROGRESS
        world.machine.synced(action.attempt, SyncGroupResponse(error_code=code), world.now)


def endless_member_ids(world: World, action: Action) -> None:
    if isinstance(action, Join):
        world.join_refused(action, ErrorCode.MEMBER_ID_REQUIRED, ME)


def other_partitions_each_time(world: World, action: Action) -> None:
    """A cooperative member joins again after it has given partitions up."""
    if isinstance(action, Join):
        world.joined(action)
    elif isinstance(action, Sync):
        world.synced(action, parts(1) if world.machine.assigned == parts(0) else parts(0))


@pytest.mark.parametrize("answer", [foreign_topic, endless_rebalance, endless_member_ids, other_partitions_each_time])
def test_a_group_that_never_settles_is_joined_with_growing_pauses(answer: Answer) -> None:
    world, join = entering("cooperative-sticky")
    answer(world, join)
    requests = 1
    while world.now < SECONDS and requests <= MOST:
        for action in world.machine.poll(world.now):
            if isinstance(action, (Assign, Revoke, Lost)):
                world.machine.listener_ended()
            elif isinstance(action, FindCoordinator):
                world.machine.coordinator_found(action.attempt, 7, BROKER)
            elif isinstance(action, (Join, Sync)):
                requests += 1
                answer(world, action)
            elif isinstance(action, Heartbeat):
                world.beaten(action, ErrorCode.REBALANCE_IN_PROGRESS)
        wakeup = world.machine.next_wakeup()
        assert wakeup is not None
        world.now = max(world.now, wakeup)
    assert requests <= MOST
    assert world.machine.error is None


def test_foreign_topics_are_trouble_and_other_topics_are_read() -> None:
    world, join = entering()
    foreign_topic(world, join)
    foreign_topic(world, world.one(Sync))
    assert world.one(Assign).assigned == parts(0)
    assert "'g'" in str(world.machine.trouble)
    assert "foreign" in str(world.machine.trouble)


def test_assignments_that_change_in_each_heartbeat_are_confirmed_with_growing_pauses() -> None:
    world = ModernWorld.stable(0)
    requests = 0
    while world.now < SECONDS and requests <= MOST:
        for action in world.machine.poll(world.now):
            if isinstance(action, (Assign, Revoke, Lost)):
                world.machine.listener_ended()
            elif hasattr(action, "membership"):
                requests += 1
                world.beaten(action, 1, ids(requests % 2))
        wakeup = world.machine.next_wakeup()
        assert wakeup is not None
        world.now = max(world.now, wakeup)
    assert requests <= MOST


def joined_with(world: World, join: Join, **fields: object) -> None:
    protocol, _ = join.protocols[0]
    whole = {"generation_id": 1, "protocol_name": protocol, "leader": "you", "member_id": ME, **fields}
    world.machine.joined(join.attempt, JoinGroupResponse(**whole), world.now, session_timeout=SESSION)


def ends_in_protocol_error(world: World | ModernWorld, match: str) -> None:
    error = world.machine.error
    assert world.machine.state is State.ENDED
    assert isinstance(error, RemoteProtocolError)
    assert match in str(error)
    assert error.broker == BROKER
    assert error.group == "g"


def members(*listed: tuple[str, bytes]) -> list[JoinGroupResponseMember]:
    return [JoinGroupResponseMember(member_id=member_id, metadata=data) for member_id, data in listed]


OURS = encode_subscription(["t"], (), -1, None)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"generation_id": -1}, "generation -1"),
        ({"generation_id": -(2**31)}, "generation"),
        ({"member_id": ""}, "member id is empty"),
        ({"protocol_type": "connect"}, "'connect'"),
        ({"protocol_name": "other"}, "'other'"),
        ({"protocol_name": None}, "not offered"),
        ({"leader": ME, "members": members(("you", OURS))}, "not among the members"),
        ({"leader": ME, "members": members((ME, OURS), (ME, OURS))}, "listed twice"),
        ({"leader": ME, "members": members((ME, b"\xff"))}, "own subscription"),
        ({"leader": ME, "members": members((ME, b""))}, "own subscription"),
        ({"leader": ME, "members": members((ME, encode_subscription(["s"], (), -1, None)))}, "own subscription"),
        ({"error_code": ErrorCode.MEMBER_ID_REQUIRED, "member_id": ""}, "without a member id"),
    ],
)
def test_an_impossible_answer_to_join_group_ends_the_membership(fields: dict[str, object], match: str) -> None:
    world, join = entering()
    joined_with(world, join, **fields)
    ends_in_protocol_error(world, match)


def test_an_answer_for_another_member_id_ends_the_membership() -> None:
    world, join = entering()
    world.join_refused(join, ErrorCode.MEMBER_ID_REQUIRED, ME)
    joined_with(world, world.one(Join), member_id="you")
    ends_in_protocol_error(world, "'you'")


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"assignment": encode_assignment(parts(-1))}, "partition -1"),
        ({"assignment": b"\0"}, "version"),
        ({"protocol_name": "other"}, "'other'"),
        ({"protocol_type": "connect"}, "'connect'"),
    ],
)
def test_an_impossible_answer_to_sync_group_ends_the_membership(fields: dict[str, object], match: str) -> None:
    world, join = entering()
    world.joined(join)
    response = SyncGroupResponse(**{"assignment": encode_assignment(parts(0)), **fields})
    world.machine.synced(world.one(Sync).attempt, response, world.now)
    ends_in_protocol_error(world, match)


def assigned(topic_id: UUID, *numbers: int) -> Assignment:
    return Assignment(topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=list(numbers))])


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"member_epoch": -1}, "epoch -1"),
        ({"member_epoch": 0}, "epoch 0"),
        ({"heartbeat_interval_ms": 0}, "interval of 0"),
        ({"heartbeat_interval_ms": -5}, "interval of -5"),
        ({"assignment": assigned(UUID(int=1), 0, -3)}, "partition -3"),
        ({"assignment": assigned(ZERO_UUID, 0)}, "no id"),
    ],
)
@pytest.mark.parametrize("is_member", [False, True])
def test_an_impossible_answer_to_a_heartbeat_of_the_new_protocol_ends_the_membership(
    fields: dict[str, object], match: str, is_member: bool
) -> None:
    world = ModernWorld.stable(0) if is_member else ModernWorld()
    if is_member:
        world.machine.coordinator_lost(1)
        world.sleep()
    else:
        world.machine.subscribe({"t"})
    world.machine.coordinator_found(world.one(FindCoordinator).attempt, 7, BROKER)
    if is_member:
        world.now += 5
    (beat,) = world.poll()
    response = ConsumerGroupHeartbeatResponse(
        **{"member_id": ME, "member_epoch": 1, "heartbeat_interval_ms": 5000, **fields}
    )
    world.machine.beaten(beat.attempt, response, world.now)
    ends_in_protocol_error(world, match)


@pytest.mark.parametrize("api", [Api.JOIN_GROUP, Api.SYNC_GROUP, Api.HEARTBEAT])
def test_undecodable_answers_end_the_membership_after_the_time_out(api: Api) -> None:
    """The time-out is ``default_api_timeout_ms``, as for Fetch; until then another coordinator may answer correctly."""
    kinds = {Api.JOIN_GROUP: Join, Api.SYNC_GROUP: Sync, Api.HEARTBEAT: Heartbeat}
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    began: float | None = None
    for _ in range(2000):
        if world.machine.state is State.ENDED:
            break
        for action in world.machine.poll(world.now):
            if isinstance(action, FindCoordinator):
                world.machine.coordinator_found(action.attempt, 1)
            elif isinstance(action, (Assign, Revoke, Lost)):
                world.machine.listener_ended()
            elif isinstance(action, kinds[api]):
                began = world.now if began is None else began
                world.machine.request_failed(action.attempt, api, RemoteProtocolError("garbled"), world.now)
            elif isinstance(action, Join):
                world.joined(action)
            elif isinstance(action, Sync):
                world.synced(action, parts(0))
        wakeup = world.machine.next_wakeup()
        world.now = max(world.now, wakeup) if wakeup is not None else world.now
    assert isinstance(world.machine.error, RemoteProtocolError)
    assert began is not None
    assert 60 <= world.now - began < 63 + SESSION
