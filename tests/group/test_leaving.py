"""Leaving amid a rebalance: the last commits are made in a generation that the coordinator takes; then it goes."""

from __future__ import annotations

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import KafkaError, RemoteProtocolError, RequestTimeoutError, TransportError, broker_error
from pykafka08.group.actions import FindCoordinator, Join, Leave, Membership, Revoke, Sync
from pykafka08.group.reactions import Api
from pykafka08.group.requests import left_code
from pykafka08.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from tests.group.world import ME, World, parts


def joining() -> tuple[World, Join]:
    world = World.stable("cooperative-sticky")
    world.machine.metadata_changed({"t": 4, "u": 1})
    world.machine.subscribe(["t", "u"])
    return world, world.one(Join)


def leaves(world: World) -> Leave:
    """Once the application has given all up."""
    world.machine.listener_ended()
    return world.one(Leave)


def test_a_member_that_leaves_while_it_joins_goes_on_to_the_new_generation() -> None:
    world, join = joining()
    world.machine.leave()
    assert world.one(Revoke) == Revoke(parts(0, 1))
    assert world.machine.is_rejoining, "a commit that is refused now is tried again"
    world.joined(join, generation=2, leader=ME, members=(ME,))
    sync = world.one(Sync)
    assert [who for who, _ in sync.assignments] == [ME], "others wait for the leader"
    assert world.machine.membership == Membership(ME, 2)
    world.synced(sync, parts(0, 1, 2))
    assert not world.machine.is_rejoining
    assert world.machine.assigned == parts(0, 1), "nothing new, and what is given up until it is"
    assert world.poll() == []
    assert leaves(world).membership == Membership(ME, 2)


@pytest.mark.parametrize("when", ["joining", "syncing"])
def test_it_does_not_wait_for_the_rebalance_once_all_is_given_up(when: str) -> None:
    """The commit was taken: the group waits for others, in the old generation."""
    world, join = joining()
    if when == "syncing":
        world.joined(join, generation=2)
        sync = world.one(Sync)
    world.machine.leave()
    world.one(Revoke)
    leave = leaves(world)
    if when == "syncing":
        world.synced(sync, parts(0, 1))
    else:
        world.joined(join, generation=2)
    assert world.poll() == []
    world.machine.left(leave.attempt, 0, world.now)
    assert world.machine.is_idle


def test_a_join_that_fails_is_tried_again() -> None:
    """Whether the group has gone on without telling is not known."""
    world, join = joining()
    world.machine.leave()
    world.one(Revoke)
    world.machine.request_failed(join.attempt, Api.JOIN_GROUP, TransportError("cut off"), world.now)
    world.sleep()
    world.machine.coordinator_found(world.one(FindCoordinator).attempt, 1)
    again = world.one(Join)
    world.joined(again, generation=3)
    world.synced(world.one(Sync), parts(0))
    assert leaves(world).membership == Membership(ME, 3)


def test_what_is_lost_amid_it_is_not_committed() -> None:
    world, join = joining()
    world.machine.leave()
    world.one(Revoke)
    world.join_refused(join, ErrorCode.UNKNOWN_MEMBER_ID)
    assert world.machine.assigned == frozenset()
    world.machine.listener_ended()
    assert world.poll() == []
    assert world.machine.is_idle, "there is nobody to leave"


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_who_owns_nothing_does_not_stay_for_a_rebalance(strategy: str) -> None:
    world = World.stable(strategy)
    world.machine.subscribe(["v"])
    world.tell(Revoke)
    join = world.one(Join)
    world.machine.leave()
    leave = world.one(Leave)
    world.joined(join, generation=2)
    world.machine.left(leave.attempt, 0, world.now)
    assert world.machine.is_idle


def test_a_coordinator_that_has_moved_is_told_of_the_end_too() -> None:
    """Or the others would wait until the session ends."""
    world = World.stable()
    world.machine.leave()
    world.tell(Revoke)
    leave = world.one(Leave)
    error = broker_error(ErrorCode.NOT_COORDINATOR, api="LeaveGroup")
    world.machine.request_failed(leave.attempt, Api.LEAVE_GROUP, error, world.now)
    world.sleep()
    world.machine.coordinator_found(world.one(FindCoordinator).attempt, 2)
    again = world.one(Leave)
    assert again.node_id == 2
    loading = broker_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, api="LeaveGroup")
    world.machine.request_failed(again.attempt, Api.LEAVE_GROUP, loading, world.now)
    world.sleep()
    world.machine.left(world.one(Leave).attempt, 0, world.now)
    assert world.machine.is_idle


@pytest.mark.parametrize(
    "error", [TransportError("cut off"), RequestTimeoutError("late"), RemoteProtocolError("garbled")]
)
def test_leave_group_is_sent_to_the_new_coordinator(error: KafkaError) -> None:
    """Without it the other members wait until the member's session ends."""
    world = World.stable()
    world.machine.leave()
    world.tell(Revoke)
    world.machine.request_failed(world.one(Leave).attempt, Api.LEAVE_GROUP, error, world.now)
    assert not world.machine.is_idle
    world.sleep()
    world.machine.coordinator_found(world.one(FindCoordinator).attempt, 2)
    again = world.one(Leave)
    assert again.node_id == 2
    world.machine.left(again.attempt, 0, world.now)
    assert world.machine.is_idle


@pytest.mark.parametrize(
    ("code", "is_left"),
    [
        (ErrorCode.NOT_COORDINATOR, False),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False),
        (ErrorCode.UNKNOWN_MEMBER_ID, True),
    ],
)
def test_an_error_code_in_the_answer_to_leave_group_is_no_success(code: ErrorCode, is_left: bool) -> None:
    world = World.stable()
    world.machine.leave()
    world.tell(Revoke)
    world.machine.left(world.one(Leave).attempt, code, world.now)
    assert world.machine.is_idle is is_left


def test_the_code_of_a_member_in_the_answer_to_leave_group_counts() -> None:
    """From version 3 on, each member has its own error code."""
    member = MemberResponse(member_id=ME, group_instance_id=None, error_code=ErrorCode.NOT_COORDINATOR)
    assert left_code(LeaveGroupResponse(members=[member])) == ErrorCode.NOT_COORDINATOR
    assert left_code(LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)) == 14
    assert left_code(LeaveGroupResponse()) == 0
