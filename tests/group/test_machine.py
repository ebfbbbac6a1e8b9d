"""The machine in virtual time: each state, each reaction, each order of events that once went wrong."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    BrokerError,
    ConfigError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.group.actions import (
    Assign,
    FindCoordinator,
    Heartbeat,
    Join,
    Leave,
    Lost,
    Membership,
    Revoke,
    Sync,
    UseTopics,
)
from pykafka08.group.commit import Commit
from pykafka08.group.reactions import Api, Reaction, reaction_to
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import State
from pykafka08.group.subscription import decode_assignment, decode_member, encode_subscription
from pykafka08.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from pykafka08.protocol.messages.sync_group import SyncGroupResponse
from tests.group.world import INTERVAL, ME, SESSION, World, parts


def test_from_nothing_to_stable() -> None:
    world = World("range", "cooperative-sticky")
    assert world.poll() == []
    assert world.machine.next_wakeup() is None
    world.machine.subscribe(["t"])
    world.found()
    join = world.one(Join)
    assert (join.node_id, join.member_id) == (1, "")
    assert [name for name, _ in join.protocols] == ["range", "cooperative-sticky"]
    assert world.machine.next_wakeup() == 5.0, "then it looks whether the group waits for others"
    world.joined(join, generation=5)
    sync = world.one(Sync)
    assert (sync.membership, sync.protocol, sync.assignments) == (Membership(ME, 5), "range", ())
    world.synced(sync, parts(1))
    assert world.tell(Assign) == Assign(parts(1), parts(1))
    assert world.poll() == []
    assert world.machine.is_settled
    assert world.machine.assigned == parts(1)


def test_the_leader_assigns() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join), leader=ME, members=(ME, "you"))
    sync = world.one(Sync)
    assert {member: decode_assignment(data) for member, data in sync.assignments} == {
        ME: parts(0, 1), "you": parts(2, 3),
    }  # fmt: skip
    assert world.machine.is_leader


def test_the_leader_asks_for_topics_that_others_want_and_does_not_wait_for_ever() -> None:
    for is_told in (True, False):
        world = World()
        world.machine.subscribe(["t"])
        world.found()
        join = world.one(Join)
        other = JoinGroupResponseMember(member_id="you", metadata=encode_subscription(["u"], [], -1, None))
        mine = JoinGroupResponseMember(member_id=ME, metadata=join.protocols[0][1])
        response = JoinGroupResponse(
            generation_id=1, protocol_name="range", leader=ME, member_id=ME, members=[mine, other]
        )
        world.machine.joined(join.attempt, response, world.now, session_timeout=SESSION)
        assert world.one(UseTopics).names == ("u",)
        if is_told:
            world.machine.metadata_changed({"t": 4, "u": 1})
        else:
            world.sleep()
        assigned = {member: decode_assignment(data) for member, data in world.one(Sync).assignments}
        assert assigned == {ME: parts(0, 1, 2, 3), "you": parts(0, topic="u") if is_told else parts()}


def test_a_member_that_cannot_be_read_gets_nothing() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    join = world.one(Join)
    members = [
        JoinGroupResponseMember(member_id=ME, metadata=join.protocols[0][1]),
        JoinGroupResponseMember(member_id="mad", metadata=b"\0"),
    ]
    response = JoinGroupResponse(generation_id=1, protocol_name="range", leader=ME, member_id=ME, members=members)
    world.machine.joined(join.attempt, response, world.now, session_timeout=SESSION)
    assigned = {member: decode_assignment(data) for member, data in world.one(Sync).assignments}
    assert assigned == {ME: parts(0, 1, 2, 3), "mad": parts()}


def test_a_leader_that_is_told_to_keep_the_assignment_watches_its_topics() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join), leader=ME, members=(ME,), skip_assignment=True)
    sync = world.one(Sync)
    assert sync.assignments == ()
    world.synced(sync, parts(0))
    world.tell(Assign)
    world.machine.metadata_changed({"t": 5})
    world.tell(Revoke)
    assert "number of partitions of t" in world.one(Join).reason


def test_more_partitions_make_the_leader_join_again_and_nobody_else() -> None:
    world = World.stable()
    world.machine.metadata_changed({"t": 5})
    assert world.poll() == []
    leader = World()
    leader.machine.subscribe(["t"])
    leader.found()
    leader.joined(leader.one(Join), leader=ME, members=(ME,))
    leader.synced(leader.one(Sync), parts(0))
    leader.tell(Assign)
    leader.machine.metadata_changed({})  # metadata without the topic is no news of it
    assert leader.poll() == []
    leader.machine.metadata_changed({"t": 5})
    leader.tell(Revoke)
    leader.one(Join)


def test_heartbeats_keep_their_interval() -> None:
    world = World.stable()
    for _ in range(3):
        world.sleep()
        sent = world.now
        beat = world.one(Heartbeat)
        assert beat.membership == Membership(ME, 1)
        world.now += 0.5
        world.beaten(beat)
        assert world.machine.heartbeats.heard_at == sent
        assert world.machine.next_wakeup() == sent + INTERVAL


def test_member_id_required() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.join_refused(world.one(Join), ErrorCode.MEMBER_ID_REQUIRED, ME)
    assert world.one(Join).member_id == ME


def beat_while_it_gives_up(*, is_v0: bool) -> World:
    """The application takes three sessions to give up what it has, and each heartbeat hears of the rebalance."""
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.enter(is_v0=is_v0)
    world.sleep()
    world.beaten(world.one(Heartbeat), ErrorCode.REBALANCE_IN_PROGRESS)
    assert world.one(Revoke).partitions == parts(0, 1)
    while world.now < 3 * SESSION and world.machine.assigned and world.machine.membership.generation > 0:
        world.sleep()
        for action in world.poll():
            assert isinstance(action, Heartbeat)
            world.beaten(action, ErrorCode.REBALANCE_IN_PROGRESS)
    return world


def test_a_session_lives_on_while_the_application_gives_up() -> None:
    world = beat_while_it_gives_up(is_v0=False)
    assert world.now >= 3 * SESSION
    assert world.machine.membership == Membership(ME, 1), "commits are taken until the end"
    assert world.machine.assigned == parts(0, 1)
    world.machine.listener_ended()
    assert world.one(Join).member_id == ME


def test_before_0_10_1_a_rebalance_waits_no_longer_than_the_session() -> None:
    """Brokers renew nothing meanwhile: whoever is told to join again has what is left of it."""
    world = beat_while_it_gives_up(is_v0=True)
    assert world.now == SESSION
    assert world.machine.membership.generation == -1
    assert world.machine.rebalance_timeout == SESSION
    assert World.stable().machine.rebalance_timeout == 300


@pytest.mark.parametrize("is_leaving", [False, True])
@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS])
def test_a_commit_after_a_join_whose_answer_is_lost_waits_for_the_next_one(code: ErrorCode, is_leaving: bool) -> None:
    """The coordinator may have begun a generation that this member does not know."""
    world = World.stable("cooperative-sticky")
    (part,) = parts(0)
    world.sleep()
    world.beaten(world.one(Heartbeat), ErrorCode.REBALANCE_IN_PROGRESS)
    join = world.one(Join)
    world.machine.request_failed(join.attempt, Api.JOIN_GROUP, TransportError("cut off"), world.now)
    assert world.machine.state is State.UNJOINED
    if is_leaving:
        world.machine.leave()
        world.one(Revoke)
    offsets = {part: OffsetAndMetadata(5)}
    commit = Commit(world.machine, offsets, is_member=True, topic_id=lambda _: None, now=lambda: world.now)
    membership = commit.membership()
    commit.sent(offsets)
    commit.take(part, code, membership)
    assert commit.refused == {}
    assert world.machine.assigned == parts(0, 1)
    world.sleep()
    world.found()
    world.joined(world.one(Join), generation=3)
    world.synced(world.one(Sync), parts(0, 1))
    commit.refuse_strangers()
    assert (commit.membership(), commit.pending, commit.refused) == (Membership(ME, 3), offsets, {})


def test_eager_members_give_up_all_and_claim_nothing() -> None:
    world = World.stable("range")
    world.machine.subscribe(["t", "u"])
    revoke = world.one(Revoke)
    assert revoke.partitions == parts(0, 1)
    assert world.machine.assigned == parts(0, 1), "they are ours until the application has given them up"
    world.machine.listener_ended()
    join = world.one(Join)
    assert world.machine.assigned == parts()
    told = decode_member(JoinGroupResponseMember(member_id=ME, metadata=join.protocols[0][1]))
    assert (told.topics, told.owned, told.generation) == ({"t", "u"}, parts(), -1)


def test_cooperative_members_keep_all_and_say_so() -> None:
    world = World.stable("cooperative-sticky")
    world.sleep()
    world.beaten(world.one(Heartbeat), ErrorCode.REBALANCE_IN_PROGRESS)
    join = world.one(Join)
    told = decode_member(JoinGroupResponseMember(member_id=ME, metadata=join.protocols[0][1]))
    assert (told.owned, told.generation) == (parts(0, 1), 1)
    assert world.machine.assigned == parts(0, 1)
    world.joined(join, generation=2)
    world.synced(world.one(Sync), parts(1, 2))
    assert world.tell(Revoke) == Revoke(parts(0))
    assert world.tell(Assign) == Assign(parts(2), parts(1, 2))
    assert "given up" in world.one(Join).reason


def test_a_cooperative_member_gives_up_topics_that_it_does_not_want_before_it_joins() -> None:
    world = World.stable("cooperative-sticky")
    world.machine.subscribe(["u"])
    assert world.tell(Revoke) == Revoke(parts(0, 1))
    world.one(Join)


def test_an_assignment_from_before_a_changed_subscription_is_cut_and_joined_over() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    join = world.one(Join)
    world.machine.subscribe(["u"])
    world.joined(join)
    world.synced(world.one(Sync), parts(0))
    assert world.tell(Assign) == Assign(parts(), parts())
    world.one(Join)


@pytest.mark.parametrize(("code", "member_id"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, ME)])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_lost_at_a_heartbeat(code: ErrorCode, member_id: str, strategy: str) -> None:
    world = World.stable(strategy)
    world.sleep()
    world.beaten(world.one(Heartbeat), code)
    assert world.machine.assigned == parts(), "at once: nothing of it may be delivered any more"
    assert world.machine.membership == Membership(member_id)
    assert world.tell(Lost).partitions == parts(0, 1)
    assert world.poll() == []
    world.sleep()
    assert world.one(Join).member_id == member_id


def test_a_session_without_answers_is_lost_before_anything_else() -> None:
    """The event loop stood still for longer than the session, and the heartbeat's answer is still in the socket."""
    world = World.stable()
    world.sleep()
    beat = world.one(Heartbeat)
    world.now += SESSION
    assert world.one(Lost).partitions == parts(0, 1)
    world.beaten(beat)
    assert world.machine.membership.generation == -1


def test_no_answer_to_heartbeats_looks_for_the_coordinator_and_keeps_the_partitions() -> None:
    world = World.stable()
    world.sleep()
    beat = world.one(Heartbeat)
    world.machine.request_failed(beat.attempt, Api.HEARTBEAT, TransportError("cut off"), world.now)
    assert world.poll() == []
    world.sleep()
    world.found()
    world.one(Heartbeat)
    assert world.machine.state is State.STABLE
    assert world.machine.assigned == parts(0, 1)


def test_a_loss_while_the_application_gives_up() -> None:
    """What it gives up anyway is not told as lost; the rest is, after that."""
    world = World.stable("cooperative-sticky")
    world.sleep()
    world.beaten(world.one(Heartbeat), ErrorCode.REBALANCE_IN_PROGRESS)
    world.joined(world.one(Join), generation=2)
    world.synced(world.one(Sync), parts(1))
    assert world.one(Revoke) == Revoke(parts(0))
    world.sleep()
    world.beaten(world.one(Heartbeat), ErrorCode.UNKNOWN_MEMBER_ID)
    assert world.poll() == []
    world.machine.listener_ended()
    assert world.tell(Lost).partitions == parts(1)


def test_a_loss_before_the_application_has_heard_of_the_partitions() -> None:
    world = World("cooperative-sticky")
    world.machine.subscribe(["t"])
    world.found()
    world.enter(parts(0))
    world.machine.subscribe(["t", "u"])
    world.joined(world.one(Join), generation=2)
    world.synced(world.one(Sync), parts(1))
    world.one(Revoke)
    world.now += SESSION
    world.poll()
    world.machine.listener_ended()
    assert world.machine.assigned == parts(), "1 was never told of, 0 was given up: there is nothing to lose"
    assert [call for call in world.poll() if isinstance(call, (Lost, Assign))] == []


def test_a_heartbeat_that_is_answered_after_the_join_began_does_not_start_another() -> None:
    world = World.stable("cooperative-sticky")
    world.sleep()
    beat = world.one(Heartbeat)
    world.machine.subscribe(["t", "u"])
    join = world.one(Join)
    world.beaten(beat, ErrorCode.REBALANCE_IN_PROGRESS)
    world.joined(join, generation=2)
    world.synced(world.one(Sync), parts(0, 1))
    world.tell(Assign)
    assert world.poll() == []
    assert world.machine.is_settled


@pytest.mark.parametrize("code", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_refused_sync_joins_again(code: ErrorCode) -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join))
    sync = world.one(Sync)
    world.machine.synced(sync.attempt, SyncGroupResponse(error_code=code), world.now)
    actions = world.poll()
    if not actions:
        world.sleep()
        actions = world.poll()
    (join,) = actions
    assert isinstance(join, Join)
    assert join.member_id == (ME if code is ErrorCode.REBALANCE_IN_PROGRESS else "")


@pytest.mark.parametrize("error", [TransportError("cut off"), RequestTimeoutError("late"), RemoteProtocolError("mad")])
def test_a_join_without_an_answer_looks_for_the_coordinator(error: KafkaError) -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    join = world.one(Join)
    world.machine.request_failed(join.attempt, Api.JOIN_GROUP, error, world.now)
    world.sleep()
    world.found()
    world.one(Join)
    world.joined(join)  # the answer of before counts no more
    assert world.machine.state is State.JOINING


def test_pauses_grow_while_there_is_no_coordinator_and_nothing_is_said() -> None:
    world = World()
    world.machine.subscribe(["t"])
    times = []
    for _ in range(6):
        find = world.one(FindCoordinator)
        times.append(world.now)
        error = broker_error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        world.machine.request_failed(find.attempt, Api.FIND_COORDINATOR, error, world.now)
        assert world.poll() == []
        world.sleep()
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    world.found()
    world.enter()
    assert world.machine.error is None


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INVALID_GROUP_ID,
    ],
)
def test_what_no_retry_can_mend_ends_the_membership(code: ErrorCode) -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.join_refused(world.one(Join), code)
    assert world.machine.state is State.ENDED
    assert isinstance(world.machine.error, BrokerError)
    assert world.machine.error.code is code
    assert world.poll() == []
    assert world.machine.next_wakeup() is None
    assert world.machine.is_idle


def test_a_fenced_member_hears_that_all_is_lost() -> None:
    world = World.stable()
    world.sleep()
    world.beaten(world.one(Heartbeat), ErrorCode.FENCED_INSTANCE_ID)
    assert not world.machine.is_idle
    assert world.tell(Lost).partitions == parts(0, 1)
    assert world.machine.is_idle


def test_a_broker_without_groups() -> None:
    world = World()
    world.machine.subscribe(["t"])
    find = world.one(FindCoordinator)
    world.machine.request_failed(find.attempt, Api.FIND_COORDINATOR, UnsupportedVersionError("0.8"), world.now)
    assert isinstance(world.machine.error, UnsupportedVersionError)


def test_an_assignor_that_was_not_offered_and_bytes_that_are_no_assignment() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    join = world.one(Join)
    response = JoinGroupResponse(generation_id=1, protocol_name="mine", leader="x", member_id=ME)
    world.machine.joined(join.attempt, response, world.now, session_timeout=SESSION)
    assert "'mine'" in str(world.machine.error)
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join))
    world.machine.synced(world.one(Sync).attempt, SyncGroupResponse(assignment=b"\0"), world.now)
    assert isinstance(world.machine.error, RemoteProtocolError)


def test_leaving() -> None:
    world = World.stable()
    world.machine.leave()
    world.machine.leave()
    assert world.tell(Revoke) == Revoke(parts(0, 1))
    leave = world.one(Leave)
    assert leave.membership == Membership(ME, 1)
    world.machine.left(leave.attempt, 0, world.now)
    assert world.machine.is_idle
    assert world.poll() == []
    assert world.machine.next_wakeup() is None


def test_leaving_ends_with_a_permanent_error() -> None:
    world = World.stable()
    world.machine.leave()
    world.tell(Revoke)
    world.machine.left(world.one(Leave).attempt, ErrorCode.GROUP_AUTHORIZATION_FAILED, world.now)
    assert world.machine.is_idle
    assert world.machine.error is None


def test_static_members_do_not_say_that_they_leave() -> None:
    world = World.stable(group_instance_id="one")
    world.machine.leave()
    world.tell(Revoke)
    assert world.poll() == []
    assert world.machine.is_idle


@pytest.mark.parametrize("when", ["never joined", "joining", "assigning", "lost"])
def test_leaving_at_any_time(when: str) -> None:
    world = World()
    world.machine.subscribe(["t"])
    if when != "never joined":
        world.found()
        join = world.one(Join)
    if when == "assigning":
        world.joined(join)
        world.synced(world.one(Sync), parts(0))
        world.one(Assign)
    if when == "lost":
        world.joined(join)
        world.synced(world.one(Sync), parts(0))
        world.tell(Assign)
        world.now += 2 * SESSION
        world.one(Lost)
    world.machine.leave()
    if when in ("assigning", "lost"):
        assert world.poll() == []
        world.machine.listener_ended()
    if when == "assigning":
        world.tell(Revoke)
    for action in world.poll():
        assert isinstance(action, Leave)
        world.machine.left(action.attempt, 0, world.now)
    assert world.machine.is_idle
    if when == "joining":
        world.joined(join)
        assert world.machine.is_idle


def test_a_refused_commit_of_now_is_news_and_one_of_before_is_not() -> None:
    world = World.stable()
    error = broker_error(ErrorCode.UNKNOWN_MEMBER_ID)
    world.machine.commit_refused(Membership("other", 1), error, world.now)
    assert world.poll() == []
    world.machine.commit_refused(world.machine.membership, error, world.now)
    world.tell(Lost)


def test_a_lost_coordinator_is_looked_for_at_once_and_only_if_it_is_that_one() -> None:
    world = World.stable()
    world.machine.coordinator_lost(7)
    assert world.poll() == []
    world.machine.coordinator_lost(1)
    world.found()


def test_the_table_of_reactions() -> None:
    assert reaction_to(Api.HEARTBEAT, 0) is Reaction.PROCEED
    assert reaction_to(Api.JOIN_GROUP, 79) is Reaction.TAKE_MEMBER_ID
    assert reaction_to(Api.SYNC_GROUP, 79) is Reaction.FAIL
    assert reaction_to(Api.HEARTBEAT, 27) is Reaction.REJOIN
    assert reaction_to(Api.OFFSET_COMMIT, 27) is Reaction.BACK_OFF
    assert reaction_to(Api.HEARTBEAT, ErrorCode.NETWORK_EXCEPTION) is Reaction.BACK_OFF
    assert reaction_to(Api.HEARTBEAT, 4242) is Reaction.FAIL


@pytest.mark.parametrize(
    "settings",
    [
        {"group_id": ""},
        {"session_timeout_ms": 0},
        {"heartbeat_interval_ms": "3"},
        {"max_poll_interval_ms": None},
        {"partition_assignment_strategy": ()},
        {"partition_assignment_strategy": ("range", "range")},
        {"partition_assignment_strategy": ("best",)},
    ],
)
def test_settings_that_mean_nothing(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        GroupConfig(**{"group_id": "g", **settings})


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_an_assignment_that_comes_after_the_session_is_never_taken(strategy: str) -> None:
    world = World(strategy)
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join))
    sync = world.one(Sync)
    world.now += SESSION
    world.synced(sync, parts(0, 1))
    actions = world.poll()
    assert not any(isinstance(action, Assign) for action in actions), actions
    assert world.machine.assigned == frozenset()
    assert world.machine.state is not State.STABLE


def test_an_assignment_that_comes_late_is_proved_by_a_heartbeat_at_once() -> None:
    world = World()
    world.machine.subscribe(["t"])
    world.found()
    world.joined(world.one(Join))
    sync = world.one(Sync)
    sent_at = world.now
    world.now += SESSION / 2
    world.synced(sync, parts(0))
    actions = world.poll()
    assert [type(action) for action in actions] == [Assign, Heartbeat]
    assert world.machine.heartbeats.expires_at == sent_at + SESSION
