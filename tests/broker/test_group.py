"""Consumer groups on a clock of the test's own: who joins, who waits, who is thrown out."""

from __future__ import annotations

import pytest

from pykafka08.broker.group import Group, GroupState
from pykafka08.broker.group_member import JoinResult, Member, SyncResult
from pykafka08.broker.groups import CommittedOffset, GroupLimits, Groups
from pykafka08.broker.timers import Timers
from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode

RANGE = (("range", b"meta"),)


class World:
    """Groups with a clock that the test moves."""

    def __init__(self, *, initial_delay_ms: int = 0) -> None:
        self.now = 0.0
        self.timers = Timers(lambda: self.now)
        self.groups = Groups(self.timers, GroupLimits(6_000, 300_000, initial_delay_ms))

    @property
    def group(self) -> Group:
        group = self.groups.find("g")
        assert group is not None
        return group

    def pass_time(self, seconds: float) -> None:
        """In small steps, so that timers that others set are seen in turn."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            self.timers.fire_due()

    def join(
        self,
        member_id: str = "",
        *,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        instance_id: str | None = None,
        requires_member_id: bool = False,
        session_timeout: float = 10.0,
        rebalance_timeout: float = 30.0,
        protocol_type: str = "consumer",
    ) -> Waiter[JoinResult] | JoinResult:
        member = Member(
            member_id,
            instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout=session_timeout,
            rebalance_timeout=rebalance_timeout,
            protocols=protocols,
        )
        return self.groups.join("g", member, protocol_type, requires_member_id=requires_member_id)

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None
    ) -> Waiter[SyncResult] | SyncResult:
        return self.groups.sync("g", member_id, None, generation, (None, None), assignments or {})

    def heartbeat(self, member_id: str, generation: int, *, is_strict: bool = True) -> ErrorCode:
        return self.groups.heartbeat("g", member_id, None, generation, is_strict=is_strict)

    def stable(self, count: int) -> list[str]:
        """Member ids of a stable group, its leader first."""
        joined: list[JoinResult] = []
        for _ in range(count):
            newest = self.join()
            waiters = [self.join(known.member_id) for known in joined]
            joined = [done(waiter) for waiter in (*waiters, newest)]
        ids = [result.member_id for result in joined]
        for member_id in reversed(ids):
            self.sync(member_id, self.group.generation, {each: each.encode() for each in ids})
        assert self.group.state is GroupState.STABLE
        assert self.group.leader == ids[0]
        return ids


def done(outcome: Waiter[JoinResult] | JoinResult) -> JoinResult:
    return outcome.result() if isinstance(outcome, Waiter) else outcome


def synced(outcome: Waiter[SyncResult] | SyncResult) -> SyncResult:
    return outcome.result() if isinstance(outcome, Waiter) else outcome


def waits(outcome: object) -> bool:
    return isinstance(outcome, Waiter) and not outcome.is_done


def test_one_member_joins_syncs_and_leaves() -> None:
    world = World()
    joined = done(world.join())
    assert (joined.error_code, joined.generation, joined.protocol) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert joined.members == ((joined.member_id, None, b"meta"),)
    assert world.group.state is GroupState.COMPLETING
    assert synced(world.sync(joined.member_id, 1, {joined.member_id: b"all"})).assignment == b"all"
    assert world.heartbeat(joined.member_id, 1) == 0
    assert world.groups.leave("g", joined.member_id, None) == 0
    assert (world.group.state, world.group.members) == (GroupState.EMPTY, {})


def test_a_second_member_makes_the_first_join_again() -> None:
    world = World()
    first = world.stable(1)[0]
    second = world.join()
    assert waits(second)
    assert world.heartbeat(first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert synced(world.sync(first, 1)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    again = done(world.join(first))
    assert again.generation == done(second).generation == 2
    assert [member for member, _, _ in again.members] == [first, done(second).member_id]
    assert done(second).members == ()


def test_followers_wait_for_the_leaders_assignments() -> None:
    world = World()
    leader = world.stable(1)[0]
    follower = world.join()
    world.join(leader)
    waiting = world.sync(done(follower).member_id, 2)
    assert waits(waiting)
    world.sync(leader, 2, {done(follower).member_id: b"yours"})
    assert synced(waiting).assignment == b"yours"
    assert synced(world.sync(leader, 2)).assignment == b""


def test_who_does_not_join_again_is_out() -> None:
    world = World()
    first, second = world.stable(2)
    again = world.join(first)
    for _ in range(29):
        world.pass_time(1.0)
        world.heartbeat(second, 2)
    assert waits(again)
    world.pass_time(1.0)
    assert [member for member, _, _ in done(again).members] == [first]
    assert world.heartbeat(second, 3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_expires() -> None:
    world = World()
    first, second = world.stable(2)
    for _ in range(19):
        world.pass_time(0.5)
        assert world.heartbeat(first, 2) == 0
    world.pass_time(0.5)
    assert world.heartbeat(first, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert second not in world.group.members


def test_all_silent_members_expire_and_the_group_is_empty() -> None:
    world = World()
    world.stable(2)
    world.pass_time(11.0)
    assert world.group.state is GroupState.EMPTY
    world.pass_time(60.0)
    assert world.timers.fire_due() is None


def test_a_member_that_waits_for_others_does_not_expire() -> None:
    world = World()
    world.stable(1)
    second = world.join(session_timeout=6.0, rebalance_timeout=30.0)
    world.pass_time(9.0)
    assert waits(second)
    world.pass_time(2.0)
    assert done(second).leader == done(second).member_id


def test_a_follower_that_asks_for_the_same_is_answered_at_once() -> None:
    world = World()
    _, follower = world.stable(2)
    again = world.join(follower)
    assert isinstance(again, JoinResult)
    assert (again.generation, again.members) == (2, ())
    assert world.group.state is GroupState.STABLE


def test_a_leader_or_a_changed_follower_begins_a_rebalance() -> None:
    for who, protocols in ((0, RANGE), (1, (("range", b"changed"),))):
        world = World()
        member = world.stable(2)[who]
        assert waits(world.join(member, protocols=protocols))
        assert world.group.state is GroupState.PREPARING


def test_a_lost_join_answer_in_completing_is_given_again() -> None:
    world = World()
    joined = done(world.join())
    again = world.join(joined.member_id)
    assert isinstance(again, JoinResult)
    assert again == joined


def test_a_sync_is_broken_off_by_a_new_member() -> None:
    world = World()
    leader = world.stable(1)[0]
    follower = world.join()
    world.join(leader)
    waiting = world.sync(done(follower).member_id, 2)
    world.join()
    assert synced(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_that_most_prefer_and_all_have_is_chosen() -> None:
    world = World()
    both = (("sticky", b"s"), ("range", b"r"))
    first = done(world.join(protocols=both))
    second = world.join(protocols=(("range", b"r2"), ("sticky", b"s2")))
    world.join(first.member_id, protocols=both)
    third = world.join(protocols=(("range", b"r3"),))
    world.join(first.member_id, protocols=both)
    world.join(done(second).member_id, protocols=(("range", b"r2"), ("sticky", b"s2")))
    assert done(third).protocol == "range"
    assert {member.metadata("range") for member in world.group.members.values()} == {b"r", b"r2", b"r3"}


def test_protocols_that_do_not_fit_are_refused() -> None:
    world = World()
    world.stable(1)
    wrong = [
        world.join(protocols=(("other", b""),)),
        world.join(protocol_type="connect"),
        World().join(protocols=()),
        World().join(protocol_type=""),
    ]
    assert {done(outcome).error_code for outcome in wrong} == {ErrorCode.INCONSISTENT_GROUP_PROTOCOL}


@pytest.mark.parametrize("seconds", [5.9, 300.1])
def test_session_time_outs_have_bounds(seconds: float) -> None:
    assert done(World().join(session_timeout=seconds)).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_member_is_sent_away_once_with_its_id() -> None:
    world = World()
    sent = done(world.join(requires_member_id=True))
    assert sent.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert sent.member_id.startswith("client-")
    assert done(world.join(sent.member_id, requires_member_id=True)).generation == 1


def test_an_id_that_was_given_out_is_forgotten_after_the_session_time_out() -> None:
    world = World()
    sent = done(world.join(requires_member_id=True))
    world.pass_time(11.0)
    assert done(world.join(sent.member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_unknown_members_and_old_generations_are_told() -> None:
    world = World()
    assert done(world.join("nobody")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    member = world.stable(1)[0]
    assert done(world.join("nobody")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(member, 0) == ErrorCode.ILLEGAL_GENERATION
    assert synced(world.sync(member, 0)).error_code == ErrorCode.ILLEGAL_GENERATION
    assert world.groups.leave("g", "nobody", None) == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.groups.leave("other", member, None) == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_checks_the_protocol() -> None:
    world = World()
    member = world.stable(1)[0]
    outcome = world.groups.sync("g", member, None, 1, ("consumer", "sticky"), {})
    assert synced(outcome).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_first_rebalance_waits_for_more_members() -> None:
    world = World(initial_delay_ms=3000)
    first, second = world.join(), world.join()
    world.pass_time(2.5)
    assert waits(first)
    world.pass_time(0.5)
    assert done(first).generation == done(second).generation == 1
    assert len(done(first).members) == 2


def test_heartbeats_before_the_sync_depend_on_the_release() -> None:
    world = World()
    member = done(world.join()).member_id
    assert world.heartbeat(member, 1, is_strict=True) == ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(member, 1, is_strict=False) == 0


# -- static members


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    world = World()
    before = done(world.join(instance_id="one"))
    world.sync(before.member_id, 1, {before.member_id: b"mine"})
    after = world.join(instance_id="one")
    assert isinstance(after, JoinResult)
    assert after.member_id != before.member_id
    assert (after.generation, after.leader, after.skip_assignment) == (1, after.member_id, True)
    assert synced(world.groups.sync("g", after.member_id, "one", 1, (None, None), {})).assignment == b"mine"
    code = world.groups.heartbeat("g", before.member_id, "one", 1, is_strict=True)
    assert code == ErrorCode.FENCED_INSTANCE_ID
    assert done(world.join(before.member_id, instance_id="one")).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_is_removed_by_its_instance_id() -> None:
    world = World()
    done(world.join(instance_id="one"))
    assert world.groups.leave("g", "", "two") == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.groups.leave("g", "", "one") == 0
    assert world.group.members == {}


# -- offsets


def test_who_may_commit() -> None:
    world = World()
    check = world.groups.check_commit
    assert check("g", "", None, -1) == 0
    assert check("g", "m", None, 3) == ErrorCode.ILLEGAL_GENERATION
    world.groups.commit("g", "t", 0, CommittedOffset(5))
    assert check("g", "", None, -1) == 0
    joined = done(world.join())
    assert check("g", joined.member_id, None, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(joined.member_id, 1, {})
    assert check("g", joined.member_id, None, 1) == 0
    assert check("g", joined.member_id, None, 0) == ErrorCode.ILLEGAL_GENERATION
    assert check("g", "", None, -1) == ErrorCode.UNKNOWN_MEMBER_ID
    world.join()
    assert check("g", joined.member_id, None, 1) == 0


def test_offsets_go_with_their_topic_and_their_group() -> None:
    world = World()
    for topic in ("a", "b"):
        world.groups.commit("g", topic, 0, CommittedOffset(1))
    world.groups.forget_topic("a")
    assert list(world.groups.offsets("g")) == [("b", 0)]
    member = world.stable(1)[0]
    assert world.groups.delete("g") == ErrorCode.NON_EMPTY_GROUP
    world.groups.leave("g", member, None)
    assert world.groups.delete("g") == 0
    assert world.groups.offsets("g") == {}
    assert world.groups.delete("g") == ErrorCode.GROUP_ID_NOT_FOUND
