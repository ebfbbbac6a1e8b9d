"""The machine of the new protocol in virtual time: each state, each reaction, each order of events that matters."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

import pytest

from pykafka08.backoff import Backoff
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TransportError,
    UnsupportedVersionError,
    broker_error,
)
from pykafka08.group.actions import (
    Action,
    Assign,
    Beat,
    FallBack,
    FindCoordinator,
    ListenerCall,
    LookUpTopics,
    Lost,
    Membership,
    Note,
    Revoke,
)
from pykafka08.group.modern.machine import RELEASE_PATIENCE, ModernMachine
from pykafka08.group.modern.reactions import REACTIONS, reaction_to_beat
from pykafka08.group.reactions import Api, Reaction
from pykafka08.group.settings import GroupConfig
from pykafka08.group.states import State
from pykafka08.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka08.records.record import TopicPartition

A = TypeVar("A", bound=Action)

T, U = UUID(int=1), UUID(int=2)
ME = "me"
INTERVAL = 5.0
SESSION = 45.0


def parts(*numbers: int, topic: str = "t") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


def ids(*numbers: int, topic_id: UUID = T) -> frozenset[tuple[UUID, int]]:
    return frozenset((topic_id, number) for number in numbers)


class World:
    """A machine, its clock, and the broker's answers, given by hand."""

    def __init__(self, **settings: object) -> None:
        config = GroupConfig(group_id="g", **{"group_protocol": "consumer", **settings})
        self.machine = ModernMachine(config, Backoff(0.1, 1.0, lambda: 0.5), ME)
        self.machine.topics_named({T: "t"})
        self.now = 0.0
        self.heard: list[ListenerCall] = []

    def poll(self) -> list[Action]:
        """What is to be done; twice in a row gives nothing the second time, or the loop would spin."""
        actions = self.machine.poll(self.now)
        assert self.machine.poll(self.now) == []
        wakeup = self.machine.next_wakeup()
        assert wakeup is None or wakeup > self.now, "the machine would spin"
        return [action for action in actions if not isinstance(action, Note)]

    def one(self, kind: type[A]) -> A:
        """The next action, which is of that kind and alone."""
        actions = self.poll()
        assert [type(action) for action in actions] == [kind], actions
        (action,) = actions
        assert isinstance(action, kind)
        return action

    def sleep(self) -> None:
        """Until the machine wants to be polled."""
        wakeup = self.machine.next_wakeup()
        assert wakeup is not None
        self.now = wakeup

    def tell(self, kind: type[A]) -> A:
        """The application hears of one thing, and is done with it."""
        call = self.one(kind)
        self.machine.listener_ended()
        assert isinstance(call, (Revoke, Assign, Lost))
        self.heard.append(call)
        return call

    def found(self) -> None:
        self.machine.coordinator_found(self.one(FindCoordinator).attempt, 1)

    def beaten(self, beat: Beat, epoch: int | None = None, assigned: frozenset[tuple[UUID, int]] | None = None) -> None:
        """Answered well."""
        topics = {topic_id for topic_id, _ in assigned or ()}
        response = ConsumerGroupHeartbeatResponse(
            member_id=ME,
            member_epoch=beat.membership.generation if epoch is None else epoch,
            heartbeat_interval_ms=int(INTERVAL * 1000),
            assignment=None
            if assigned is None
            else Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=sorted(n for each, n in assigned if each == topic_id))
                    for topic_id in topics
                ]
            ),
        )
        self.machine.beaten(beat.attempt, response, self.now)

    def refused(self, beat: Beat, code: ErrorCode) -> None:
        self.machine.beaten(beat.attempt, ConsumerGroupHeartbeatResponse(error_code=code), self.now)

    def broken(self, beat: Beat, error: KafkaError | None = None) -> None:
        failure = error or TransportError("the connection is gone")
        self.machine.request_failed(beat.attempt, Api.CONSUMER_GROUP_HEARTBEAT, failure, self.now)

    def join(self) -> Beat:
        self.machine.subscribe({"t"})
        self.found()
        return self.one(Beat)

    def again(self) -> Beat:
        """The next try, after the pause; where the coordinator was lost, another is found first."""
        assert self.poll() == []
        self.sleep()
        (action,) = self.poll()
        if isinstance(action, FindCoordinator):
            self.machine.coordinator_found(action.attempt, 2)
            (action,) = self.poll()
        assert isinstance(action, Beat)
        return action

    @classmethod
    def stable(cls, *numbers: int, **settings: object) -> World:
        world = cls(**settings)
        world.beaten(world.join(), 1, ids(*numbers))
        world.settle()
        return world

    def settle(self) -> None:
        """Tell the application and the broker, until there is nothing to tell."""
        while actions := self.poll():
            for action in actions:
                if isinstance(action, Beat):
                    self.beaten(action)
                else:
                    assert isinstance(action, (Revoke, Assign, Lost))
                    self.heard.append(action)
                    self.machine.listener_ended()
        assert self.machine.is_settled

    def assign(self) -> tuple[Assign, Beat]:
        """The application begins to hear of new partitions, and the broker is told that they are taken."""
        told, beat = self.poll()
        assert isinstance(told, Assign)
        assert isinstance(beat, Beat)
        return told, beat


def test_a_member_joins_and_lives() -> None:
    world = World()
    beat = world.join()
    assert (beat.membership, beat.is_full, beat.topics) == (Membership(ME, 0), True, ("t",))
    assert (beat.owned, beat.pattern) == (frozenset(), None)
    assert world.machine.state is State.JOINING
    world.beaten(beat, 3, ids(0, 1))
    assert world.machine.membership == Membership(ME, 3)
    told, beat = world.assign()
    assert (told.added, told.assigned) == (parts(0, 1), parts(0, 1))
    assert world.machine.state is State.ASSIGNING
    world.machine.listener_ended()
    assert (beat.membership, beat.is_full, beat.topics, beat.owned) == (Membership(ME, 3), False, None, ids(0, 1))
    world.beaten(beat)
    assert world.poll() == []
    assert world.machine.state is State.STABLE
    assert world.machine.is_settled
    for _ in range(3):
        world.sleep()
        beat = world.one(Beat)
        assert (beat.topics, beat.owned) == (None, None)
        world.beaten(beat)
    assert world.now == pytest.approx(3 * INTERVAL)


def test_what_a_member_has_is_given_up_before_the_broker_hears_of_it() -> None:
    world = World.stable(0, 1, 2)
    world.sleep()
    world.beaten(world.one(Beat), 1, ids(0))
    revoked = world.one(Revoke)
    assert revoked.partitions == parts(1, 2)
    assert world.machine.assigned == parts(0, 1, 2), "until the application has given them up"
    world.now += INTERVAL
    beat = world.one(Beat)
    assert beat.owned is None, "it lives on, and still owns them"
    world.machine.listener_ended()
    assert world.machine.assigned == parts(0)
    world.beaten(beat)
    told, beat = world.assign()
    assert told.added == frozenset()
    assert beat.owned == ids(0), "at once, not after the interval"
    world.machine.listener_ended()
    world.beaten(beat, 2)
    assert world.poll() == []
    assert world.machine.is_settled
    assert world.machine.membership.generation == 2


def test_a_target_that_changes_while_the_application_hears_of_the_last() -> None:
    world = World.stable(0, 1)
    world.sleep()
    world.beaten(world.one(Beat), 1, ids(0))
    assert world.one(Revoke).partitions == parts(1)
    world.now += INTERVAL
    world.beaten(world.one(Beat), 1, ids(0, 2))
    assert world.poll() == []
    world.machine.listener_ended()
    told, beat = world.assign()
    assert (told.added, beat.owned) == (frozenset(), ids(0))
    world.machine.listener_ended()
    assert world.one(Assign) == Assign(parts(2), parts(0, 2))
    world.machine.listener_ended()
    assert world.poll() == []
    world.beaten(beat)
    assert world.one(Beat).owned == ids(0, 2)


def test_topics_without_a_name_are_looked_up_and_the_others_read() -> None:
    world = World()
    world.beaten(world.join(), 1, ids(0) | ids(5, topic_id=U))
    told, look_up, beat = world.poll()
    assert isinstance(told, Assign)
    assert isinstance(look_up, LookUpTopics)
    assert isinstance(beat, Beat)
    assert look_up.ids == {U}
    world.machine.listener_ended()
    world.beaten(beat)
    assert world.poll() == []
    assert world.machine.state is State.ASSIGNING
    world.machine.look_up_ended(look_up.attempt, world.now)
    assert world.poll() == []
    world.sleep()
    again = world.one(LookUpTopics)
    world.machine.topics_named({U: "u"})
    world.machine.look_up_ended(again.attempt, world.now)
    told, beat = world.assign()
    assert (told.added, beat.owned) == (parts(5, topic="u"), ids(0) | ids(5, topic_id=U))
    world.machine.listener_ended()
    world.beaten(beat)
    assert world.poll() == []
    assert world.machine.is_settled


def test_the_application_hears_of_no_assignment_before_there_are_names() -> None:
    world = World()
    world.beaten(world.join(), 1, ids(5, topic_id=U))
    look_up = world.one(LookUpTopics)
    world.machine.topics_named({U: "u"})
    world.machine.look_up_ended(look_up.attempt, world.now)
    assert world.assign()[0] == Assign(parts(5, topic="u"), parts(5, topic="u"))
    world = World()
    world.beaten(world.join(), 1, ids())
    assert world.one(Assign).assigned == parts(), "but of one that is empty"


def test_a_topic_made_anew_is_told_by_its_new_id() -> None:
    world = World.stable(0)
    world.machine.topics_named({U: "t"})
    world.sleep()
    world.beaten(world.one(Beat), 2, ids(0, topic_id=U))
    assert world.one(Beat).owned == ids(0, topic_id=U)
    assert world.machine.assigned == parts(0)


def test_a_new_subscription_is_told_at_once() -> None:
    world = World.stable(0)
    world.machine.subscribe({"t", "u"})
    assert not world.machine.is_settled
    beat = world.one(Beat)
    assert (beat.topics, beat.owned, beat.is_full) == (("t", "u"), None, False)
    world.beaten(beat)
    assert world.machine.is_settled


def test_a_pattern_is_told_and_taken_back() -> None:
    world = World()
    world.machine.subscribe_pattern("t.*")
    world.found()
    beat = world.one(Beat)
    assert (beat.topics, beat.pattern) == ((), "t.*")
    world.beaten(beat, 1, ids(0))
    world.settle()
    world.machine.subscribe({"t"})
    world.machine.subscribe_pattern("")
    beat = world.one(Beat)
    assert (beat.topics, beat.pattern) == (("t",), "")
    world.broken(beat)
    assert world.again().pattern == "", "nobody knows whether it was heard"


def test_an_answer_that_is_lost_makes_the_member_tell_all_again() -> None:
    world = World.stable(0)
    world.sleep()
    world.broken(world.one(Beat))
    beat = world.again()
    assert (beat.is_full, beat.topics, beat.owned) == (True, ("t",), ids(0))
    assert beat.membership == Membership(ME, 1)
    world.beaten(beat, 2, ids(0))
    assert world.poll() == []
    assert world.machine.assigned == parts(0)
    assert world.machine.is_settled


def test_late_answers_count_for_nothing() -> None:
    world = World.stable(0)
    world.sleep()
    beat = world.one(Beat)
    world.machine.coordinator_lost(1)
    world.broken(beat)
    world.beaten(beat, 9, ids(3))
    assert world.machine.membership.generation == 1
    world.beaten(world.again(), 1, ids(0))
    assert world.machine.is_settled


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_is_out_loses_all_and_joins_again(code: ErrorCode) -> None:
    world = World.stable(0, 1)
    world.sleep()
    world.refused(world.one(Beat), code)
    assert world.machine.assigned == frozenset()
    assert world.machine.membership.generation == -1
    assert world.tell(Lost).partitions == parts(0, 1)
    beat = world.again()
    assert (beat.membership, beat.is_full, beat.owned) == (Membership(ME, 0), True, frozenset())
    world.beaten(beat, 7, ids(1))
    assert world.assign()[0].added == parts(1)


@pytest.mark.parametrize(
    ("topics", "named"),
    [
        (["t"], "topic 't'"),
        (["t", "u"], "subscribes to t, u"),
        ([f"t{each:02}" for each in range(12)], "t09 and 2 more"),
    ],
)
def test_a_refused_heartbeat_names_the_topics(topics: list[str], named: str) -> None:
    """The coordinator's answer does not."""
    world = World()
    world.machine.subscribe(topics)
    world.found()
    world.refused(world.one(Beat), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    error = world.machine.error
    assert isinstance(error, AuthorizationError)
    assert named in str(error)


def test_who_is_not_answered_for_a_session_takes_itself_for_lost() -> None:
    world = World.stable(0)
    heard_at = world.machine.heartbeats.heard_at
    while world.machine.assigned:
        world.sleep()
        for action in world.poll():
            if isinstance(action, FindCoordinator):
                world.machine.coordinator_found(action.attempt, 1)
            elif isinstance(action, Beat):
                world.broken(action)
    assert world.now == pytest.approx(heard_at + SESSION)
    assert "session is over" in next(call.reason for call in [world.machine._owned._running] if isinstance(call, Lost))


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
)
def test_a_coordinator_that_moves_loses_nothing(code: ErrorCode) -> None:
    world = World.stable(0)
    world.sleep()
    world.refused(world.one(Beat), code)
    for _ in range(3):
        for action in world.poll():
            if isinstance(action, FindCoordinator):
                world.machine.coordinator_found(action.attempt, 2)
            elif isinstance(action, Beat):
                world.beaten(action, 1, ids(0))
        if not world.machine.is_settled:
            world.sleep()
    assert world.machine.is_settled
    assert not any(isinstance(call, Lost) for call in world.heard)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ],
)
def test_what_nobody_can_mend_ends_the_membership(code: ErrorCode) -> None:
    world = World.stable(0)
    world.sleep()
    world.refused(world.one(Beat), code)
    assert world.machine.state is State.ENDED
    assert isinstance(world.machine.error, BrokerError)
    assert world.machine.error.code is code
    assert world.tell(Lost).partitions == parts(0)
    assert world.machine.is_idle


def test_a_commit_that_is_refused_is_news_only_of_this_membership() -> None:
    world = World.stable(0)
    error = broker_error(ErrorCode.UNKNOWN_MEMBER_ID)
    world.machine.commit_refused(Membership(ME, 0), error, world.now)
    assert world.machine.assigned == parts(0)
    world.machine.commit_refused(Membership(ME, 1), error, world.now)
    assert world.tell(Lost).partitions == parts(0)


# --- who may not join -------------------------------------------------------------------------------------------------


def test_a_former_self_that_the_broker_still_has_is_let_go() -> None:
    """Kafka 4.0 does not let a member join with epoch 0 whom it takes for one."""
    world = World()
    world.refused(world.join(), ErrorCode.FENCED_MEMBER_EPOCH)
    leaving = world.again()
    assert leaving.membership == Membership(ME, -1)
    world.beaten(leaving)
    assert world.one(Beat).membership == Membership(ME, 0)


def test_a_static_member_lets_its_own_former_self_go_but_nobody_elses() -> None:
    world = World.stable(0, group_instance_id="i")
    world.sleep()
    world.refused(world.one(Beat), ErrorCode.FENCED_MEMBER_EPOCH)
    world.tell(Lost)
    world.refused(world.again(), ErrorCode.UNRELEASED_INSTANCE_ID)
    leaving = world.again()
    assert leaving.membership == Membership(ME, -2)
    world.beaten(leaving)
    assert world.one(Beat).membership == Membership(ME, 0)

    world = World(group_instance_id="i")
    beat = world.join()
    while world.machine.error is None:
        world.refused(beat, ErrorCode.UNRELEASED_INSTANCE_ID)
        if world.machine.error is None:
            beat = world.again()
            assert beat.membership == Membership(ME, 0)
    assert RELEASE_PATIENCE <= world.now < RELEASE_PATIENCE + 2
    assert "UNRELEASED_INSTANCE_ID" in str(world.machine.error)


@pytest.mark.parametrize(
    "code", [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
)
def test_auto_goes_on_with_the_classic_protocol(code: ErrorCode) -> None:
    world = World(group_protocol="auto")
    world.refused(world.join(), code)
    action = world.one(FallBack)
    assert isinstance(action.cause, BrokerError)
    assert action.cause.code is code
    assert world.machine.is_idle
    assert world.machine.error is None


def test_auto_tells_of_losses_before_it_falls_back() -> None:
    """The group's new coordinator is a broker that was not upgraded yet."""
    world = World.stable(0, group_protocol="auto")
    world.sleep()
    world.broken(world.one(Beat), UnsupportedVersionError("the broker has no ConsumerGroupHeartbeat API"))
    assert world.one(Lost).partitions == parts(0)
    world.machine.listener_ended()
    world.one(FallBack)


def test_a_protocol_that_is_not_to_be_had_is_named() -> None:
    world = World()
    world.broken(world.join(), UnsupportedVersionError("the broker (Kafka 2.8) has no such API", broker="a:1"))
    error = world.machine.error
    assert isinstance(error, UnsupportedVersionError)
    assert error.broker == "a:1"
    for words in ("group_protocol='consumer'", "Kafka 4.0", "'auto'", "Kafka 2.8"):
        assert words in str(error)
    world = World()
    world.refused(world.join(), ErrorCode.UNSUPPORTED_VERSION)
    assert isinstance(world.machine.error, UnsupportedVersionError)
    world = World(group_protocol="auto")
    world.machine.subscribe_pattern("t.*")
    world.refused(world.join(), ErrorCode.UNSUPPORTED_VERSION)
    assert isinstance(world.machine.error, UnsupportedVersionError)
    assert "a pattern of the broker's" in str(world.machine.error)
    world = World()
    world.refused(world.join(), ErrorCode.GROUP_ID_NOT_FOUND)
    assert isinstance(world.machine.error, BrokerError)


def test_every_row_of_the_table_is_reached() -> None:
    for (is_joining, code), reaction in REACTIONS.items():
        assert reaction_to_beat(broker_error(code), is_joining=is_joining) is reaction
    assert reaction_to_beat(TransportError("gone"), is_joining=True) is Reaction.FIND_COORDINATOR
    assert reaction_to_beat(broker_error(999), is_joining=True) is Reaction.FAIL
    assert reaction_to_beat(broker_error(ErrorCode.THROTTLING_QUOTA_EXCEEDED), is_joining=False) is Reaction.BACK_OFF


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_leaving(instance_id: str | None, epoch: int) -> None:
    world = World.stable(0, 1, group_instance_id=instance_id)
    world.machine.leave()
    assert world.one(Revoke).partitions == parts(0, 1)
    world.now += INTERVAL
    beat = world.one(Beat)
    assert beat.owned is None, "it lives while the application gives up"
    world.machine.listener_ended()
    leaving = world.one(Beat)
    assert leaving.membership == Membership(ME, epoch)
    world.beaten(beat, 2)
    world.beaten(leaving)
    assert world.machine.is_idle
    assert world.machine.error is None
    assert world.poll() == []


def test_leaving_before_anything_was_said() -> None:
    world = World()
    world.machine.subscribe({"t"})
    world.machine.leave()
    assert world.poll() == []
    assert world.machine.is_idle


def test_leaving_while_the_join_is_under_way() -> None:
    world = World()
    beat = world.join()
    world.machine.leave()
    leaving = world.one(Beat)
    assert leaving.membership == Membership(ME, -1)
    world.beaten(beat, 1, ids(0))
    assert world.poll() == []
    world.beaten(leaving, -1)
    assert world.machine.is_idle
    assert world.machine.error is None


def test_leaving_while_the_coordinator_is_sought() -> None:
    world = World.stable(0)
    world.machine.coordinator_lost(1)
    world.machine.leave()
    actions = world.poll()
    assert [type(each) for each in actions] == [Revoke, FindCoordinator]
    world.machine.listener_ended()
    assert isinstance(actions[1], FindCoordinator)
    world.machine.coordinator_found(actions[1].attempt, 2)
    leaving = world.one(Beat)
    assert leaving.node_id == 2
    world.beaten(leaving, -1)
    assert world.machine.is_idle


def test_leave_group_is_sent_to_the_new_coordinator() -> None:
    """Without it the other members wait until the member's session ends."""
    world = World.stable(0)
    world.machine.leave()
    world.tell(Revoke)
    for error in (TransportError("cut off"), RequestTimeoutError("late"), RemoteProtocolError("garbled")):
        world.broken(world.one(Beat), error)
        world.sleep()
        world.machine.coordinator_found(world.one(FindCoordinator).attempt, 2)
    leaving = world.one(Beat)
    assert (leaving.node_id, leaving.membership) == (2, Membership(ME, -1))
    world.beaten(leaving, -1)
    assert world.machine.is_idle


def test_leaving_where_the_protocol_is_not_to_be_had() -> None:
    world = World(group_protocol="auto")
    beat = world.join()
    world.machine.leave()
    world.refused(beat, ErrorCode.UNSUPPORTED_VERSION)
    assert world.machine.is_idle
    assert world.machine.error is None
    assert world.poll() == []
