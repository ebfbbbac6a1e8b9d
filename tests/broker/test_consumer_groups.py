"""Groups of the new protocol by themselves, on a clock of the test's own.

What real brokers answer: ``consumer_group_story``.
"""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafka08.broker.consumer_group import ConsumerGroup, ConsumerGroupState
from pykafka08.broker.consumer_groups import Beaten, Refusal
from pykafka08.broker.group_member import JoinResult, Member
from pykafka08.broker.groups import GroupLimits, Groups
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.broker.server_assignors import Assignable, TopicPartitionId, range_, uniform
from pykafka08.broker.state import Topics
from pykafka08.broker.timers import Timers
from pykafka08.driver import Waiter
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from pykafka08.protocol.messages.consumer_protocol import ConsumerProtocolSubscription, encode_with_version
from tests.broker.consumer_group_story import FULL, tell_of_members
from tests.broker.raw import connect

SESSION = 45.0
TOPICS = sorted(UUID(int=number) for number in (1, 2, 3))


class World:
    """Groups with one topic of four partitions, and a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers = Timers(lambda: self.now)
        self.topics = Topics(lambda: [0])
        self.topic = self.topics.create("t", 4, 1)
        self.groups = Groups(self.timers, GroupLimits(6_000, 300_000, 0), self.topics)
        self.epochs: dict[str, int] = {}
        self.shares: dict[str, frozenset[TopicPartitionId]] = {}

    @property
    def group(self) -> ConsumerGroup:
        return self.groups.consumer_groups["g"]

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.5)
            self.timers.fire_due()

    def beat(self, member_id: str, **more: object) -> Beaten:
        """It tells and does what a member tells and does."""
        told: dict[str, object] = {"member_epoch": self.epochs.get(member_id, 0)} | more
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, **told)
        beaten = self.groups.beat(request, new_id="new", client=("client", "/host"))
        self.epochs[member_id] = beaten.epoch
        if beaten.assigned is not None:
            self.shares[member_id] = beaten.assigned
        return beaten

    def join(self, member_id: str, **more: object) -> Beaten:
        return self.beat(member_id, **(FULL | {"member_epoch": 0, "subscribed_topic_names": ["t"]} | more))

    def owns(self, member_id: str) -> list[TopicPartitions]:
        numbers = sorted(number for _, number in self.shares[member_id])
        return [TopicPartitions(topic_id=self.topic.topic_id, partitions=numbers)] if numbers else []

    def settle(self, *member_ids: str) -> None:
        while self.group.state is not ConsumerGroupState.STABLE:
            for member_id in member_ids:
                self.beat(member_id, topic_partitions=self.owns(member_id))

    def numbers(self, member_id: str) -> set[int]:
        return {number for _, number in self.shares[member_id]}


def test_partitions_pass_from_hand_to_hand() -> None:
    """Never are they two members' at a time, and each is told at its next heartbeat."""
    world = World()
    assert len(world.join("a").assigned or ()) == 4
    assert world.join("b").assigned == frozenset()
    assert world.group.state is ConsumerGroupState.RECONCILING
    assert world.beat("b").assigned is None
    told = world.beat("a")
    assert told.epoch == 1, "until it has given up"
    assert len(told.assigned or ()) == 2
    assert world.beat("b").assigned is None
    assert world.beat("a").epoch == 1, "it has not said what it owns"
    assert world.beat("a", topic_partitions=world.owns("a")).epoch == 2
    assert world.beat("b").assigned is not None
    assert world.numbers("a") | world.numbers("b") == {0, 1, 2, 3}
    assert world.group.state is ConsumerGroupState.STABLE


def test_a_silent_member_is_out_and_its_share_is_free() -> None:
    world = World()
    for member_id in ("a", "b"):
        world.join(member_id)
    world.settle("a", "b")
    for _ in range(5):
        world.pass_time(SESSION / 5)
        world.beat("a")
    assert list(world.group.members) == ["a"]
    world.settle("a")
    assert world.numbers("a") == {0, 1, 2, 3}
    with pytest.raises(Refusal) as caught:
        world.beat("b")
    assert caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_in_time_is_out() -> None:
    world = World()
    world.join("a")
    world.join("b")
    world.beat("a")
    for _ in range(3):
        world.pass_time(10.5)
        if "a" in world.group.members:
            world.beat("a")
        world.beat("b")
    assert list(world.group.members) == ["b"]
    assert world.numbers("b") == {0, 1, 2, 3}


def test_an_answer_that_was_lost() -> None:
    """A member that is one epoch behind and owns nothing but its own is taken for what it is."""
    world = World()
    world.join("a")
    owned = world.owns("a")
    world.epochs["a"] = 0
    world.join("b")
    world.beat("a", member_epoch=1, topic_partitions=owned)
    world.beat("a", member_epoch=1, topic_partitions=world.owns("a"))
    assert world.epochs["a"] == 2
    assert world.beat("a", member_epoch=1, topic_partitions=world.owns("a")).epoch == 2
    with pytest.raises(Refusal) as caught:
        world.beat("a", member_epoch=1, topic_partitions=owned)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    with pytest.raises(Refusal):
        world.beat("a", member_epoch=1)


def test_a_static_member_has_until_its_session_ends() -> None:
    world = World()
    here = {"instance_id": "i"}
    world.join("a")
    world.join("s", **here)
    for _ in range(4):
        world.beat("a", topic_partitions=world.owns("a"))
        world.beat("s", topic_partitions=world.owns("s"), **here)
    assert len(world.numbers("s")) == 2
    assert world.beat("s", member_epoch=-2, **here).epoch == -2
    world.settle("a")
    assert len(world.numbers("a")) == 2
    for _ in range(5):
        world.pass_time(SESSION / 5)
        world.beat("a")
    world.settle("a")
    assert len(world.numbers("a")) == 4


def test_the_assignor_that_most_ask_for() -> None:
    world = World()
    world.join("b", server_assignor="range")
    world.join("a", server_assignor="range")
    world.join("c")
    world.settle("a", "b", "c")
    assert world.group.assignor == "range"
    assert [sorted(world.numbers(each)) for each in "abc"] == [[0, 1], [2], [3]]


def test_a_topic_made_anew_is_another_topic() -> None:
    world = World()
    world.join("a")
    old = world.shares["a"]
    world.topics.delete(world.topic)
    world.topic = world.topics.create("t", 2, 1)
    world.beat("a", topic_partitions=[])
    assert world.shares["a"] == {(world.topic.topic_id, 0), (world.topic.topic_id, 1)}
    assert not old & world.shares["a"]


def classic(member_id: str = "") -> Member:
    told = encode_with_version(ConsumerProtocolSubscription(topics=["t"]), 1)
    return Member(
        member_id,
        None,
        client_id="client",
        client_host="/host",
        session_timeout=10.0,
        rebalance_timeout=30.0,
        protocols=[("range", told)],
    )


def test_a_member_of_the_old_protocol_expires_by_its_own_session() -> None:
    world = World()
    waiter = world.groups.join("g", classic(), "consumer", requires_member_id=False)
    assert isinstance(waiter, Waiter)
    joined = waiter.result()
    world.join("a")
    assert set(world.group.members) == {joined.member_id, "a"}
    world.pass_time(11)
    assert set(world.group.members) == {"a"}


def test_a_member_of_the_old_protocol_has_to_join_in_time() -> None:
    world = World()
    world.join("a")
    joined = world.groups.join("g", classic(), "consumer", requires_member_id=False)
    assert isinstance(joined, JoinResult)
    world.beat("a")
    world.beat("a", topic_partitions=world.owns("a"))
    codes = set()
    for _ in range(8):
        codes.add(world.groups.heartbeat("g", joined.member_id, None, joined.generation, is_strict=False))
        world.pass_time(5)
        world.beat("a")
    assert codes == {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID}
    world.settle("a")
    assert world.numbers("a") == {0, 1, 2, 3}


def test_members_of_the_old_protocol_go_on_alone() -> None:
    world = World()
    world.join("a")
    joined = world.groups.join("g", classic(), "consumer", requires_member_id=False)
    assert isinstance(joined, JoinResult)
    assert joined.error_code is ErrorCode.NONE
    assert world.groups.find("g") is None
    world.beat("a", member_epoch=-1)
    back = world.groups.find("g")
    assert back is not None
    assert list(back.members) == [joined.member_id]
    assert "g" not in world.groups.consumer_groups


def test_a_stale_member_in_a_transaction_is_of_an_illegal_generation() -> None:
    world = World()
    world.join("a")
    check = world.groups.check_transactional_commit
    assert check("g", "a", None, 1) is ErrorCode.NONE
    assert check("g", "a", None, 9) is ErrorCode.ILLEGAL_GENERATION
    assert check("g", "b", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert check("g", "", None, -1) is ErrorCode.NONE


def test_a_session_ended_by_a_test() -> None:
    world = World()
    world.join("a")
    world.join("b")
    assert world.groups.expire("g", "a") == 1
    assert list(world.group.members) == ["b"]
    assert world.groups.expire("g", None) == 1
    assert world.group.state is ConsumerGroupState.EMPTY


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Assignable], dict[UUID, int]]:
    counts = {topic: draw(st.integers(0, 9)) for topic in TOPICS}
    free = [(topic, number) for topic in TOPICS for number in range(counts[topic])]
    members = []
    for number in range(draw(st.integers(1, 5))):
        topics = frozenset(draw(st.sets(st.sampled_from(TOPICS))))
        current = draw(st.sets(st.sampled_from(free))) if free else set()
        free = [tp for tp in free if tp not in current]
        members.append(Assignable(f"m{number}", None, topics, frozenset(current)))
    return members, counts


@given(groups())
def test_each_partition_has_one_reader_who_wants_it(group: tuple[list[Assignable], dict[UUID, int]]) -> None:
    members, counts = group
    wanted = frozenset().union(*(member.topics for member in members))
    everything = sorted((topic, number) for topic in wanted for number in range(counts[topic]))
    for assignor in (uniform, range_):
        shares = assignor(members, {topic: counts[topic] for topic in wanted})
        assert sorted(tp for share in shares.values() for tp in share) == everything
        assert all({tp[0] for tp in shares[each.member_id]} <= each.topics for each in members)


@given(groups())
def test_uniform_is_even_and_moves_little(group: tuple[list[Assignable], dict[UUID, int]]) -> None:
    members, counts = group
    alike = [each._replace(topics=frozenset(TOPICS)) for each in members]
    shares = uniform(alike, counts)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    settled = [each._replace(current=shares[each.member_id]) for each in alike]
    assert uniform(settled, counts) == shares
    kept = sum(len(shares[each.member_id] & each.current) for each in alike)
    most = sum(min(len(each.current), max(sizes)) for each in alike)
    assert kept >= most - len(alike)


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["4.0", "4.3"])
async def test_the_story_on_both_loops(release: str) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 4}) as cluster, connect(cluster) as raw:
        lines = await tell_of_members(raw, "g", "t")
    assert lines[-1] == "deleted: NONE"


@pytest.mark.anyio
async def test_releases_without_it_say_so() -> None:
    asked = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="", member_epoch=0, subscribed_topic_names=["t"], **FULL
    )
    described = ConsumerGroupDescribeRequest(group_ids=["g"])
    for release, switch in (("3.9", None), ("4.0", 0)):
        async with EmbeddedCluster(version=release, topics={"t": 4}, group_version=switch) as cluster:
            async with connect(cluster) as raw:
                assert (await raw.ask(asked, 0)).error_code == ErrorCode.UNSUPPORTED_VERSION
                assert (await raw.ask(described, 0)).groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    async with EmbeddedCluster(version="3.7", topics={"t": 4}, group_version=1) as cluster:
        async with connect(cluster) as raw:
            response = await raw.ask(asked, 0)
            assert response.error_code == 0
            assert response.member_id
            assert 69 not in cluster.served_versions


@pytest.mark.anyio
async def test_another_broker_coordinates() -> None:
    asked = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=str(uuid4()), member_epoch=0, subscribed_topic_names=["t"], **FULL
    )
    async with EmbeddedCluster(brokers=2, topics={"t": 4}) as cluster:
        codes = set()
        for node in cluster.brokers:
            async with connect(cluster, node.node_id) as raw:
                codes.add((await raw.ask(asked, 1)).error_code)
        assert codes == {0, ErrorCode.NOT_COORDINATOR}
