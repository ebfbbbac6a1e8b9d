"""Stories of groups of the new protocol, told in single requests, and what a broker answered to each.

``test_consumer_groups_as_kafka_has_them`` tells them to embedded and to real brokers and compares the answers.
"""

from __future__ import annotations

from typing import Any

import anyio

from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka08.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from pykafka08.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_with_version,
    encode_with_version,
)
from pykafka08.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka08.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.heartbeat import HeartbeatRequest
from pykafka08.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pykafka08.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka08.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from pykafka08.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.raw import Raw

TRIES = 300
PAUSE = 0.05
FULL = {"rebalance_timeout_ms": 30_000, "topic_partitions": []}


class Teller:
    """Asks one broker about one group; ``lines`` has a line for each answer."""

    def __init__(self, raw: Raw, group: str, topic: str) -> None:
        self.raw = raw
        self.group = group
        self.topic = topic
        self.lines: list[str] = []
        self.epochs: dict[str, int] = {}
        self.shares: dict[str, list[TopicPartitions]] = {}

    def tell(self, what: str, code: int, *more: object) -> None:
        known = ErrorCode.of(code)
        name = known.name if isinstance(known, ErrorCode) else str(known)
        self.lines.append(" ".join([f"{what}: {name}", *map(str, more)]))

    async def find(self) -> None:
        """Until the group has a coordinator that is ready."""
        request = FindCoordinatorRequest(coordinator_keys=[self.group])
        for _ in range(TRIES):
            if not (await self.raw.ask(request, 4)).coordinators[0].error_code:
                code = (await self.beat("nobody", -1)).error_code
                if code == ErrorCode.GROUP_ID_NOT_FOUND:
                    return
            await anyio.sleep(PAUSE)

    async def beat(self, member: str, epoch: int | None = None, **more: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat; at the epoch that the member has been told unless another is given."""
        at = self.epochs.get(member, 0) if epoch is None else epoch
        asked = ConsumerGroupHeartbeatRequest(
            **({"group_id": self.group, "member_id": member, "member_epoch": at} | more)
        )
        response = await self.raw.ask(asked, 1)
        if not response.error_code:
            self.epochs[member] = response.member_epoch
            if response.assignment is not None:
                self.shares[member] = response.assignment.topic_partitions
        return response

    async def try_beat(self, what: str, member: str, epoch: int | None = None, **more: Any) -> None:
        """A heartbeat of which the error counts."""
        self.tell(what, (await self.beat(member, epoch, **more)).error_code)

    async def join(self, what: str, member: str, **more: Any) -> None:
        told = FULL | {"subscribed_topic_names": [self.topic]} | more
        response = await self.beat(member, 0, **told)
        self.tell(what, response.error_code, "assigned" if response.assignment is not None else "not assigned")

    def count(self, member: str) -> int:
        return sum(len(each.partitions) for each in self.shares.get(member, []))

    async def live(self, what: str, shares: dict[str, int]) -> None:
        """Members beat, and acknowledge all that they are told, until each has so many partitions."""
        code = 0
        for _ in range(TRIES):
            for member in shares:
                response = await self.beat(member, topic_partitions=self.shares.get(member, []))
                code = code or response.error_code
            if all(self.count(member) == share for member, share in shares.items()):
                break
            await anyio.sleep(PAUSE)
        self.tell(what, code, {member: self.count(member) for member in shares})

    async def describe(self, what: str) -> None:
        group = (await self.raw.ask(ConsumerGroupDescribeRequest(group_ids=[self.group]), 1)).groups[0]
        types = sorted(member.member_type for member in group.members)
        self.tell(what, group.error_code, group.group_state, group.assignor_name, types)

    async def commit(self, what: str, member: str, epoch: int, version: int = 9) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
        asked = OffsetCommitRequest(
            group_id=self.group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        response = await self.raw.ask(asked, version)
        self.tell(what, response.topics[0].partitions[0].error_code)

    async def fetch(self, what: str, member: str | None, epoch: int) -> None:
        group = OffsetFetchRequestGroup(group_id=self.group, member_id=member, member_epoch=epoch, topics=None)
        response = await self.raw.ask(OffsetFetchRequest(groups=[group]), 9)
        found = response.groups[0]
        self.tell(what, found.error_code, [each.committed_offset for one in found.topics for each in one.partitions])

    # -- members of the classic protocol

    async def join_classic(
        self, what: str, member: str, protocol_type: str = "consumer", owned: tuple[int, ...] = ()
    ) -> JoinGroupResponse:
        told = ConsumerProtocolSubscription(
            topics=[self.topic],
            owned_partitions=[SubscriptionTopicPartition(topic=self.topic, partitions=list(owned))] if owned else [],
        )
        metadata = encode_with_version(told, 1)
        asked = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        response = await self.raw.ask(asked, 3)
        self.tell(what, response.error_code, response.protocol_name)
        return response

    async def sync_classic(self, what: str, member: str, generation: int) -> list[int]:
        asked = SyncGroupRequest(group_id=self.group, member_id=member, generation_id=generation)
        response = await self.raw.ask(asked, 3)
        numbers: list[int] = []
        if response.assignment:
            told, _ = decode_with_version(ConsumerProtocolAssignment, response.assignment)
            numbers = [number for each in told.assigned_partitions for number in each.partitions]
        self.tell(what, response.error_code, len(numbers))
        return numbers

    async def beat_classic(self, what: str, member: str, generation: int, until: int | None = None) -> int:
        asked = HeartbeatRequest(group_id=self.group, member_id=member, generation_id=generation)
        for _ in range(TRIES):
            code = (await self.raw.ask(asked, 3)).error_code
            if until is None or code == until:
                break
            await anyio.sleep(PAUSE)
        self.tell(what, code)
        return code


async def tell_of_members(raw: Raw, group: str, topic: str) -> list[str]:
    """Members of the new protocol; the topic has four partitions, and six at the end."""
    story = Teller(raw, group, topic)
    await story.find()
    await _refusals(story)
    await story.join("a joins", "a")
    await story.live("a lives", {"a": 4})
    await story.try_beat("a is ahead", "a", 99)
    await story.try_beat("b never joined", "b", 1)
    await story.join("b joins", "b")
    await story.live("a and b share", {"a": 2, "b": 2})
    await story.describe("they are")
    await story.commit("a commits", "a", story.epochs["a"])
    await story.commit("a commits, ahead", "a", 99)
    await story.commit("c commits", "c", 1)
    await story.commit("nobody commits", "", -1)
    await story.commit("a commits as of old", "a", story.epochs["a"], 8)
    await story.fetch("a looks up", "a", story.epochs["a"])
    await story.fetch("a looks up, ahead", "a", 99)
    await story.fetch("c looks up", "c", 1)
    await story.fetch("anybody looks up", None, -1)
    await story.try_beat("a again as new", "a", 0, **FULL, subscribed_topic_names=[topic])
    await story.live("a and b share again", {"a": 2, "b": 2})
    await story.try_beat("b leaves", "b", -1)
    await story.try_beat("b is gone", "b", 1)
    await story.live("a has all", {"a": 4})
    await _statics(story)
    growing = CreatePartitionsTopic(name=topic, count=6, assignments=None)
    await raw.ask(CreatePartitionsRequest(topics=[growing], timeout_ms=10_000), 1)
    await story.live("there are more", {"a": 6})
    await story.try_beat("a reads none", "a", subscribed_topic_names=[], topic_partitions=story.shares["a"])
    await story.live("a has none", {"a": 0})
    await story.try_beat("a reads by pattern", "a", subscribed_topic_regex=topic.replace("-", ".") + "|x")
    await story.live("a has all by pattern", {"a": 6})
    await story.try_beat("a pattern that is none", "a", subscribed_topic_regex="(")
    await _ends(story)
    return story.lines


async def _refusals(story: Teller) -> None:
    await story.try_beat("no such group", "a", 5)
    await story.try_beat("leaves no group", "a", -1)
    await story.describe("there is nothing")
    names = {"subscribed_topic_names": [story.topic]}
    wrong: list[tuple[str, str, int, dict[str, Any]]] = [
        ("no member id", "", 0, FULL | names),
        ("no time-out", "a", 0, names | {"topic_partitions": []}),
        ("owns before it joins", "a", 0, names | {"rebalance_timeout_ms": 100}),
        ("no topics", "a", 0, FULL),
        ("no such epoch", "a", -3, FULL | names),
        ("static without instance", "a", -2, {}),
        ("empty instance", "a", 0, FULL | names | {"instance_id": ""}),
        ("empty rack", "a", 0, FULL | names | {"rack_id": ""}),
        ("no group", "a", 0, FULL | names | {"group_id": ""}),
        ("no such assignor", "a", 0, FULL | names | {"server_assignor": "sticky"}),
        ("no pattern", "a", 0, FULL | {"subscribed_topic_regex": "("}),
    ]
    for what, member, epoch, more in wrong:
        await story.try_beat(what, member, epoch, **more)


async def _statics(story: Teller) -> None:
    here = {"instance_id": "i"}
    await story.join("s joins", "s", **here)
    story.epochs["s"] = story.epochs.get("s", 0)
    for _ in range(TRIES):
        for member, more in (("a", {}), ("s", here)):
            await story.beat(member, topic_partitions=story.shares.get(member, []), **more)
        if story.count("a") == story.count("s") == 2:
            break
        await anyio.sleep(PAUSE)
    await story.join("s2 is too early", "s2", **here)
    await story.try_beat("s2 is not s", "s2", 1, **here)
    before = story.shares["s"]
    await story.try_beat("s leaves for a while", "s", -2, **here)
    await story.join("s2 is s", "s2", **here)
    story.tell("with its share", 0, story.shares.get("s2") == before)
    await story.try_beat("s is not s2", "s", 1, **here)
    await story.try_beat("s2 leaves", "s2", -1, **here)
    await story.live("a has all again", {"a": 4})


async def _ends(story: Teller) -> None:
    await story.join_classic("a worker joins", "", "connect")
    listed = await story.raw.ask(ListGroupsRequest(types_filter=["consumer"]), 5)
    mine = [each for each in listed.groups if each.group_id == story.group]
    story.tell("listed", 0, [(each.protocol_type, each.group_type, each.group_state) for each in mine])
    deleted = await story.raw.ask(DeleteGroupsRequest(groups_names=[story.group]), 2)
    story.tell("deleted too early", deleted.results[0].error_code)
    await story.try_beat("a leaves", "a", -1)
    await story.describe("nobody is there")
    await story.commit("anybody commits", "", -1)
    deleted = await story.raw.ask(DeleteGroupsRequest(groups_names=[story.group]), 2)
    story.tell("deleted", deleted.results[0].error_code)


async def tell_of_migration(raw: Raw, group: str, topic: str) -> list[str]:
    """A classic member is joined by one of the new protocol, which leaves before it."""
    story = Teller(raw, group, topic)
    await story.find()
    me = (await story.join_classic("old joins", "")).member_id
    asked = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=me)])
    story.tell("old leaves", (await raw.ask(asked, 4)).error_code)
    worker = (await story.join_classic("a worker joins", "", "connect")).member_id
    await story.join("new cannot join workers", "new")
    asked = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=worker)])
    story.tell("the worker leaves", (await raw.ask(asked, 4)).error_code)

    joined = await story.join_classic("old joins again", "")
    me, generation = joined.member_id, joined.generation_id
    numbers = await story.sync_classic("old syncs", me, generation)
    await story.join("new joins", "new")
    await story.describe("both are there")
    await story.beat_classic("old is to join", me, generation, ErrorCode.REBALANCE_IN_PROGRESS)
    generation = (await story.join_classic("old joins the new group", me, owned=tuple(numbers))).generation_id
    numbers = await story.sync_classic("old syncs again", me, generation)
    await story.commit("old commits", me, generation, 8)
    await story.commit("old commits, ahead", me, 99, 8)
    if await story.beat_classic("old lives", me, generation):
        generation = (await story.join_classic("old joins once more", me, owned=tuple(numbers))).generation_id
        numbers = await story.sync_classic("old syncs once more", me, generation)
    await story.live("new has its half", {"new": 2})
    await story.try_beat("new leaves", "new", -1)
    await story.describe("the group is")
    await story.beat_classic("old is in a classic group", me, generation)
    left = await raw.ask(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=me)]), 4)
    story.tell("old leaves", left.members[0].error_code)
    return story.lines
