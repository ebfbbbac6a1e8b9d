"""The group APIs and committed offsets, as each release answers them."""

from __future__ import annotations

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka08.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.heartbeat import HeartbeatRequest
from pykafka08.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pykafka08.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pykafka08.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pykafka08.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from pykafka08.protocol.schema import ZERO_UUID
from tests.broker.raw import Raw, connect

pytestmark = pytest.mark.anyio


def joining(member_id: str = "", **more: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"meta")],
        **more,
    )


async def join(raw: Raw, version: int) -> JoinGroupResponse:
    response = await raw.ask(joining(), version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        assert version >= 4
        response = await raw.ask(joining(response.member_id), version)
    assert (response.error_code, response.generation_id, response.leader) == (0, 1, response.member_id)
    return response


@pytest.mark.parametrize(
    ("release", "join_version", "sync_version", "other_version"),
    [("0.9.0", 0, 0, 0), ("0.11", 2, 1, 1), ("2.2", 4, 2, 2), ("2.4", 6, 4, 4), ("4.3", 9, 5, 4)],
)
async def test_the_life_of_a_member(release: str, join_version: int, sync_version: int, other_version: int) -> None:
    async with EmbeddedCluster(version=release) as cluster, connect(cluster) as raw:
        joined = await join(raw, join_version)
        assert [(member.member_id, bytes(member.metadata)) for member in joined.members] == [
            (joined.member_id, b"meta")
        ]
        who = {"group_id": "g", "member_id": joined.member_id}
        assignment = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        synced = await raw.ask(SyncGroupRequest(**who, generation_id=1, assignments=[assignment]), sync_version)
        assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")
        beat = await raw.ask(HeartbeatRequest(**who, generation_id=1), min(other_version, 4))
        assert beat.error_code == 0
        described = (await raw.ask(DescribeGroupsRequest(groups=["g"]), other_version)).groups[0]
        assert (described.group_state, described.protocol_type, described.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        assert [(member.client_id, member.client_host) for member in described.members] == [("raw", "/127.0.0.1")]
        members = [MemberIdentity(member_id=joined.member_id)] if other_version >= 3 else []
        leaving = LeaveGroupRequest(group_id="g", member_id="" if members else joined.member_id, members=members)
        left = await raw.ask(leaving, other_version)
        assert (left.error_code, [member.error_code for member in left.members]) == (0, [0] * len(members))
        state = (await raw.ask(DescribeGroupsRequest(groups=["g"]), other_version)).groups[0].group_state
        assert state == ("Dead" if release == "0.9.0" else "Empty")


@pytest.mark.parametrize(("release", "name"), [("0.9.0", "AwaitingSync"), ("2.8", "CompletingRebalance")])
async def test_the_state_before_the_sync_has_two_names(release: str, name: str) -> None:
    async with EmbeddedCluster(version=release) as cluster, connect(cluster) as raw:
        await join(raw, 0)
        assert (await raw.ask(DescribeGroupsRequest(groups=["g"]), 0)).groups[0].group_state == name


async def test_a_heartbeat_to_0_9_is_told_of_the_rebalance_before_it_is_told_that_it_is_unknown() -> None:
    for release, code in (("0.9.0", ErrorCode.REBALANCE_IN_PROGRESS), ("0.10.2", ErrorCode.UNKNOWN_MEMBER_ID)):
        async with EmbeddedCluster(version=release) as cluster, connect(cluster) as raw:
            await join(raw, 0)
            response = await raw.ask(HeartbeatRequest(group_id="g", member_id="nobody", generation_id=1), 0)
            assert response.error_code == code


async def test_a_group_that_is_not_there() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        old = (await raw.ask(DescribeGroupsRequest(groups=["x"]), 5)).groups[0]
        new = (await raw.ask(DescribeGroupsRequest(groups=["x"]), 6)).groups[0]
        assert (old.error_code, old.group_state) == (0, "Dead")
        assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


async def test_another_broker_coordinates_when_the_first_stops() -> None:
    async with EmbeddedCluster(brokers=2) as cluster:
        async with connect(cluster, 0) as raw:
            found = await raw.ask(FindCoordinatorRequest(key="g"), 1)
            many = await raw.ask(FindCoordinatorRequest(coordinator_keys=["g", "h", "i"]), 4)
            assert many.coordinators[0].node_id == found.node_id
            assert found.port == cluster.brokers[found.node_id].port
        other = 1 - found.node_id
        async with connect(cluster, other) as raw:
            assert (await raw.ask(joining(), 2)).error_code == ErrorCode.NOT_COORDINATOR
            await cluster.stop_broker(found.node_id)
            assert (await raw.ask(FindCoordinatorRequest(key="g"), 1)).node_id == other
            assert (await raw.ask(joining(), 2)).error_code == 0


async def test_groups_are_listed_by_their_coordinator() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        await join(raw, 5)
        everything = (await raw.ask(ListGroupsRequest(), 5)).groups
        assert [(group.group_id, group.protocol_type, group.group_type) for group in everything] == [
            ("g", "consumer", "classic")
        ]
        for states, types, count in (
            (["Stable"], [], 0),
            (["completingrebalance"], ["Classic"], 1),
            ([], ["share"], 0),
        ):
            listed = await raw.ask(ListGroupsRequest(states_filter=states, types_filter=types), 5)
            assert len(listed.groups) == count
        refused = await raw.ask(DeleteGroupsRequest(groups_names=["g", "x"]), 2)
        assert [result.error_code for result in refused.results] == [
            ErrorCode.NON_EMPTY_GROUP,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ]


# -- offsets


def committing(offset: int, *, topic: str = "t", partition: int = 0, **more: object) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="note")
    topic_id = more.pop("topic_id", ZERO_UUID)
    return OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[part])], **more
    )


async def commit(raw: Raw, version: int, offset: int, **more: object) -> int:
    return (await raw.ask(committing(offset, **more), version)).topics[0].partitions[0].error_code


async def committed(
    raw: Raw, version: int, topic: str = "t", topic_id: object = ZERO_UUID
) -> tuple[int, str | None, int]:
    if version < 8:
        old = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
        part = (await raw.ask(OffsetFetchRequest(group_id="g", topics=old), version)).topics[0].partitions[0]
        return part.committed_offset, part.metadata, part.error_code
    new = [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=new)])
    found = (await raw.ask(request, version)).groups[0].topics[0].partitions[0]
    return found.committed_offset, found.metadata, found.error_code


@pytest.mark.parametrize(
    ("release", "commit_versions", "fetch_versions"),
    [
        ("0.8.2", [1], [1]),
        ("0.10.2", [1, 2], [1, 2]),
        ("3.9", range(1, 10), range(1, 10)),
        ("4.3", range(2, 10), range(1, 10)),
    ],
)
async def test_offsets_come_back(release: str, commit_versions: list[int], fetch_versions: list[int]) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await committed(raw, fetch_versions[0]) == (-1, "", 0)
        for version in commit_versions:
            assert await commit(raw, version, version) == 0
        for version in fetch_versions:
            assert await committed(raw, version) == (commit_versions[-1], "note", 0)


async def test_offsets_of_topics_named_by_id() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        topic_id = (await raw.ask(MetadataRequest(topics=None), 12)).topics[0].topic_id
        assert await commit(raw, 10, 5, topic_id=topic_id) == 0
        assert await committed(raw, 10, topic_id=topic_id) == (5, "note", 0)
        cluster.delete_topic("t")
        assert await commit(raw, 10, 5, topic_id=topic_id) == ErrorCode.UNKNOWN_TOPIC_ID
        assert (await committed(raw, 10, topic_id=topic_id))[2] == ErrorCode.UNKNOWN_TOPIC_ID


async def test_version_0_is_kept_apart_and_served_by_any_broker() -> None:
    async with EmbeddedCluster(2, "0.8.2", {"t": 1}) as cluster, connect(cluster, 0) as one, connect(cluster, 1) as two:
        assert await committed(one, 0) == (-1, "", 3)
        assert await commit(one, 0, 7) == 0
        assert await committed(two, 0) == (7, "note", 0)
        coordinator = one if (await one.ask(FindCoordinatorRequest(key="g"), 0)).node_id == 0 else two
        assert await committed(coordinator, 1) == (-1, "", 0)


async def test_commits_that_are_refused() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await commit(raw, 8, 1, topic="x") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(raw, 8, 1, partition=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(raw, 8, 1, generation_id_or_member_epoch=3) == ErrorCode.ILLEGAL_GENERATION
        long = committing(1)
        long.topics[0].partitions[0].committed_metadata = "x" * 4097
        refused = await raw.ask(long, 8)
        assert refused.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert await committed(raw, 8) == (-1, "", 0)


@pytest.mark.parametrize(("release", "version", "count"), [("0.8.2", 1, 0), ("0.9.0", 1, 1), ("0.10.2", 1, 0)])
async def test_no_topics_in_version_1(release: str, version: int, count: int) -> None:
    async with EmbeddedCluster(version=release, topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await commit(raw, 1, 5) == 0
        response = await raw.ask(OffsetFetchRequest(group_id="g", topics=[]), version)
        assert len(response.topics) == count


async def test_all_offsets_of_a_group() -> None:
    async with EmbeddedCluster(topics={"t": 2, "u": 1}) as cluster, connect(cluster) as raw:
        for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
            await commit(raw, 8, 4, topic=topic, partition=partition)
        old = await raw.ask(OffsetFetchRequest(group_id="g", topics=None), 7)
        assert {topic.name: len(topic.partitions) for topic in old.topics} == {"t": 2, "u": 1}
        new = await raw.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8)
        assert {topic.name: len(topic.partitions) for topic in new.groups[0].topics} == {"t": 2, "u": 1}
