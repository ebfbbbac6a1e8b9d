"""Members on embedded clusters of many releases: joining, sharing, leaving, losing, committing."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from pykafka08 import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import (
    AuthorizationError,
    BrokerError,
    ClientFailedError,
    ClosedError,
    PartitionRevokedError,
    RequestTimeoutError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from pykafka08.group import coordinator
from pykafka08.group.coordinator import OffsetAndMetadata
from pykafka08.group.states import State
from pykafka08.records.record import TopicPartition
from tests.group.members import Member, all_of, member, wait_shared

RELEASES = ("0.9.0", "0.10.1", "0.10.2", "0.11.0", "1.1", "2.0", "2.2", "2.3", "2.4", "2.8", "3.2", "3.9", "4.0", "4.3")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", RELEASES)
async def test_members_come_share_commit_and_go_on_every_release(version: str) -> None:
    parts = all_of("t", 6)
    async with EmbeddedCluster(brokers=2, version=version, topics={"t": 6}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as first:
            await wait_shared([first], parts)
            async with member(cluster.bootstrap_servers, "t") as second:
                await wait_shared([first, second], parts)
                assert len(first.partitions) == len(second.partitions) == 3
                mine = first.partitions[0]
                committed = OffsetAndMetadata(5, -1, "note")
                assert await first.group.commit({mine: committed}) == {}
                assert await second.group.committed(parts) == dict.fromkeys(parts) | {mine: committed}
            await wait_shared([first], parts)
        assert not any(request.trailing_bytes for request in cluster.requests)
        api = {request.api for request in cluster.requests}
        assert {"JoinGroup", "SyncGroup", "LeaveGroup"} <= api


@pytest.mark.parametrize("name", ASSIGNORS)
async def test_four_members_with_each_assignor(name: str) -> None:
    parts = all_of("t", 12)
    async with EmbeddedCluster(topics={"t": 12}) as cluster, AsyncExitStack() as stack:
        members: list[Member] = []
        for count in range(1, 5):
            joins = member(cluster.bootstrap_servers, "t", partition_assignment_strategy=(name,))
            members.append(await stack.enter_async_context(joins))
            await wait_shared(members, parts)
            assert sorted(len(each.partitions) for each in members) == [12 // count] * count


async def test_cooperative_members_keep_what_they_keep() -> None:
    parts = all_of("t", 4)
    strategy = ("cooperative-sticky",)
    async with EmbeddedCluster(topics={"t": 4}) as cluster:
        async with member(cluster.bootstrap_servers, "t", partition_assignment_strategy=strategy) as first:
            await wait_shared([first], parts)
            async with member(cluster.bootstrap_servers, "t", partition_assignment_strategy=strategy) as second:
                await wait_shared([first, second], parts)
                gone = [partitions for what, partitions in first.heard.calls if what == "revoked"]
                assert gone == [second.partitions]
                assert not [call for call in second.heard.calls if call[0] == "revoked"]


async def test_eager_members_give_all_up_before_they_join() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as first:
            await wait_shared([first], parts)
            async with member(cluster.bootstrap_servers, "t") as second:
                await wait_shared([first, second], parts)
                assert [what for what, _ in first.heard.calls] == ["assigned", "revoked", "assigned"]
                assert first.heard.calls[1][1] == parts


async def test_members_with_different_topics() -> None:
    """The leader looks up the partitions of a topic that only the other wants."""
    async with EmbeddedCluster(topics={"a": 2, "b": 3}) as cluster:
        async with member(cluster.bootstrap_servers, "a") as first:
            await wait_shared([first], all_of("a", 2))
            async with member(cluster.bootstrap_servers, "b") as second:
                await wait_shared([first, second], all_of("a", 2) + all_of("b", 3))
                assert first.partitions == all_of("a", 2)


async def test_a_changed_subscription_and_new_partitions_rebalance() -> None:
    async with EmbeddedCluster(topics={"a": 2, "b": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "a", metadata_max_age_ms=50) as only:
            await wait_shared([only], all_of("a", 2))
            only.group.subscribe(["b", "later"])
            await wait_shared([only], all_of("b", 1))
            cluster.create_topic("later", 2)
            await wait_shared([only], all_of("b", 1) + all_of("later", 2))


@pytest.mark.parametrize("api", ["FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat"])
@pytest.mark.parametrize(
    "code",
    [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
)
async def test_trouble_with_the_coordinator_loses_nothing(api: str, code: ErrorCode) -> None:
    parts = all_of("t", 3)
    async with EmbeddedCluster(topics={"t": 3}) as cluster:
        cluster.faults.answer(api, code, times=2)
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], parts)
            await beats(only, cluster, 3)
            assert only.heard.calls == [("assigned", parts)]
            assert only.group.state is State.STABLE


async def beats(only: Member, cluster: EmbeddedCluster, more: int) -> None:
    """Until so many more heartbeats have come."""
    cluster.requests.clear()
    with anyio.fail_after(30):
        while sum(request.api == "Heartbeat" for request in cluster.requests) < more:
            await only.group.news


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
async def test_a_lost_generation_is_told_and_joined_again(code: ErrorCode, strategy: str) -> None:
    parts = all_of("t", 3)
    async with EmbeddedCluster(topics={"t": 3}) as cluster:
        async with member(cluster.bootstrap_servers, "t", partition_assignment_strategy=(strategy,)) as only:
            await wait_shared([only], parts)
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                cluster._state.groups.leave("g", only.group.member_id, None)
            else:
                cluster.faults.answer("Heartbeat", code)
            with anyio.fail_after(30):
                while len(only.heard.calls) < 3:
                    await only.group.news
            await wait_shared([only], parts)
            assert only.heard.calls == [("assigned", parts), ("lost", parts), ("assigned", parts)]


@pytest.mark.parametrize(
    "api", ["JoinGroup", "SyncGroup", "Heartbeat", "FindCoordinator", "OffsetCommit", "OffsetFetch"]
)
@pytest.mark.parametrize("fault", ["close_before", "close_after"])
async def test_broken_connections_are_mended(api: str, fault: str) -> None:
    parts = all_of("t", 3)
    async with EmbeddedCluster(topics={"t": 3}, group_min_session_timeout_ms=100) as cluster:
        getattr(cluster.faults, fault)(api)
        async with member(cluster.bootstrap_servers, "t", session_timeout_ms=3000, max_poll_interval_ms=3000) as only:
            await wait_shared([only], parts)
            assert await only.group.commit({parts[0]: OffsetAndMetadata(7)}) == {}
            assert await only.group.committed(parts[:1]) == {parts[0]: OffsetAndMetadata(7)}


async def test_the_coordinator_moves() -> None:
    parts = all_of("t", 3)
    async with EmbeddedCluster(brokers=3, topics={"t": 3}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], parts)
            before = only.group.node_id
            member_id, generation = only.group.member_id, only.group.generation
            assert before is not None
            await cluster.stop_broker(before)
            assert await only.group.commit({parts[0]: OffsetAndMetadata(7)}) == {}
            await beats(only, cluster, 2)
            assert only.group.node_id != before
            assert (only.group.member_id, only.group.generation) == (member_id, generation)
            assert only.heard.calls == [("assigned", parts)]


async def test_static_members_keep_their_partitions_over_a_restart() -> None:
    parts = all_of("t", 4)
    async with EmbeddedCluster(topics={"t": 4}) as cluster:
        async with member(cluster.bootstrap_servers, "t", group_instance_id="one") as first:
            async with member(cluster.bootstrap_servers, "t", group_instance_id="two") as second:
                await wait_shared([first, second], parts)
                before = second.partitions, second.group.generation
            async with member(cluster.bootstrap_servers, "t", group_instance_id="two") as second:
                await wait_shared([first, second], parts)
                assert (second.partitions, second.group.generation) == before
        assert "LeaveGroup" not in {request.api for request in cluster.requests}


async def test_a_fenced_static_member_ends_and_says_so() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t", group_instance_id="one") as first:
            await wait_shared([first], parts)
            async with member(cluster.bootstrap_servers, "t", group_instance_id="one") as second:
                await wait_shared([second], parts)
                with anyio.fail_after(30):
                    while first.heard.owned:
                        await first.group.news
                with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
                    first.group.check()
                assert first.heard.calls[-1] == ("lost", parts)


async def test_commits_in_the_midst_of_a_revocation_count() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as first:
            outcomes = []

            async def on_revoked(partitions: frozenset) -> None:
                outcomes.append(await first.group.commit({tp: OffsetAndMetadata(3) for tp in partitions}))

            first.heard.on_revoked = on_revoked
            await wait_shared([first], parts)
            async with member(cluster.bootstrap_servers, "t") as second:
                await wait_shared([first, second], parts)
                assert outcomes == [{}]
                assert await second.group.committed(parts) == dict.fromkeys(parts, OffsetAndMetadata(3))


async def test_a_commit_of_what_is_not_ours_is_refused_by_partition() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as first:
            async with member(cluster.bootstrap_servers, "t") as second:
                await wait_shared([first, second], parts)
                (mine,), (theirs,) = first.partitions, second.partitions
                refused = await first.group.commit({mine: OffsetAndMetadata(1), theirs: OffsetAndMetadata(1)})
                assert list(refused) == [theirs]
                assert isinstance(refused[theirs], PartitionRevokedError)
                assert (refused[theirs].topic, refused[theirs].partition) == theirs
                assert await first.group.committed(parts) == {mine: OffsetAndMetadata(1), theirs: None}


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
async def test_a_commit_of_an_old_generation_is_refused_once_and_the_member_joins_again(code: ErrorCode) -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        # The broker keeps the member that it was for as long as a rebalance waits.
        async with member(cluster.bootstrap_servers, "t", max_poll_interval_ms=500) as only:
            await wait_shared([only], parts)
            cluster.requests.clear()
            cluster.faults.answer("OffsetCommit", code)
            refused = await only.group.commit({parts[0]: OffsetAndMetadata(1)})
            assert isinstance(refused[parts[0]], PartitionRevokedError)
            assert sum(request.api == "OffsetCommit" for request in cluster.requests) == 1
            with anyio.fail_after(30):
                while len(only.heard.calls) < 3:
                    await only.group.news
            await wait_shared([only], parts)
            assert [what for what, _ in only.heard.calls] == ["assigned", "lost", "assigned"]


async def test_a_commit_waits_for_a_rebalance() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], parts)
            cluster.faults.answer("OffsetCommit", ErrorCode.REBALANCE_IN_PROGRESS, times=2)
            assert await only.group.commit({parts[0]: OffsetAndMetadata(1)}) == {}


async def test_the_commit_that_began_last_counts() -> None:
    """The first is told to try again later, and would bring the lower offset after the higher one."""
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], parts)
            cluster.requests.clear()
            cluster.faults.answer("OffsetCommit", ErrorCode.REBALANCE_IN_PROGRESS)
            refused = []

            async def commit(offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
                refused.append(await only.group.commit(offsets))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit, dict.fromkeys(parts, OffsetAndMetadata(1)))
                await anyio.lowlevel.checkpoint()
                tasks.start_soon(commit, {parts[0]: OffsetAndMetadata(2)})
            assert refused == [{}, {}]
            found = await only.group.committed(parts)
            assert found == {parts[0]: OffsetAndMetadata(2), parts[1]: OffsetAndMetadata(1)}
            assert sum(request.api == "OffsetCommit" for request in cluster.requests) == 3


async def asked_to_commit(cluster: EmbeddedCluster, times: int) -> None:
    with anyio.fail_after(30):
        while sum(request.api == "OffsetCommit" for request in cluster.requests) < times:
            await anyio.lowlevel.checkpoint()


async def test_a_commit_goes_on_if_the_one_after_it_is_refused() -> None:
    part = all_of("t", 1)[0]
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t", retry_backoff_ms=50) as only:
            await wait_shared([only], [part])
            cluster.requests.clear()
            outcomes = []

            async def commit() -> None:
                outcomes.append(await only.group.commit({part: OffsetAndMetadata(1)}))

            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            cluster.faults.answer("OffsetCommit", ErrorCode.OFFSET_METADATA_TOO_LARGE)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await asked_to_commit(cluster, 1)
                assert list(await only.group.commit({part: OffsetAndMetadata(2)})) == [part]
            assert outcomes == [{}]
            assert await only.group.committed([part]) == {part: OffsetAndMetadata(1)}


@pytest.mark.parametrize("is_written", [True, False])
async def test_a_commit_that_goes_on_is_never_written_after_one_that_may_be_written(is_written: bool) -> None:
    """The newer one is cancelled before its answer: the older one commits for it, or the offset would go back."""
    part = all_of("t", 1)[0]
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t", retry_backoff_ms=50) as only:
            await wait_shared([only], [part])
            cluster.requests.clear()
            outcomes = []

            async def commit() -> None:
                outcomes.append(await only.group.commit({part: OffsetAndMetadata(1)}))

            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            if not is_written:
                cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            cluster.faults.drop_answer("OffsetCommit", skip=1)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await asked_to_commit(cluster, 1)
                async with anyio.create_task_group() as others:
                    others.start_soon(only.group.commit, {part: OffsetAndMetadata(2)})
                    await asked_to_commit(cluster, 2)
                    assert not outcomes
                    others.cancel_scope.cancel()
            assert outcomes == [{}]
            assert await only.group.committed([part]) == {part: OffsetAndMetadata(2)}


async def test_a_commit_that_is_written_is_not_taken_back_by_an_older_one_when_its_retry_is_refused() -> None:
    """The answer to the newer one is cut; its later attempts hear that the coordinator loads, until it gives up."""
    part = all_of("t", 1)[0]
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only, member(cluster.bootstrap_servers) as outsider:
            await wait_shared([only], [part])
            cluster.requests.clear()
            outcomes = []

            async def commit() -> None:
                outcomes.append(await only.group.commit({part: OffsetAndMetadata(100)}, timeout=60))

            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            cluster.faults.close_after("OffsetCommit", skip=1)
            cluster.faults.answer("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, skip=2, times=None)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(commit)
                await asked_to_commit(cluster, 1)
                with pytest.raises(RequestTimeoutError):
                    await only.group.commit({part: OffsetAndMetadata(120)}, timeout=1)
                cluster.faults.clear()
            assert outcomes == [{}]
            assert await outsider.group.committed([part]) == {part: OffsetAndMetadata(120)}


async def test_refusals_of_single_partitions() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], parts)
            long = OffsetAndMetadata(1, -1, "x" * 5000)
            refused = await only.group.commit({parts[0]: long, parts[1]: OffsetAndMetadata(2)})
            assert list(refused) == parts[:1]
            assert "OFFSET_METADATA_TOO_LARGE" in str(refused[parts[0]])
            cluster.faults.answer("OffsetCommit", ErrorCode.GROUP_AUTHORIZATION_FAILED)
            with pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"):
                await only.group.commit({parts[1]: OffsetAndMetadata(3)})


@pytest.mark.parametrize("version", ["0.8.1", "0.8.2", "0.9.0", "0.10.2", "2.0", "2.8", "3.0", "4.0", "4.3"])
async def test_offsets_without_membership_on_every_release(version: str) -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(brokers=2, version=version, topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers) as outsider:
            await outsider.client.wait_for_topics(["t"])
            assert await outsider.group.committed(parts) == dict.fromkeys(parts)
            assert await outsider.group.commit({parts[1]: OffsetAndMetadata(4)}) == {}
            assert await outsider.group.committed(parts) == {parts[0]: None, parts[1]: OffsetAndMetadata(4)}
        used = {request.version for request in cluster.requests if request.api == "OffsetCommit"}
        assert used == {cluster._state.personality.versions[8].max}


async def test_0_8_0_keeps_no_offsets() -> None:
    async with EmbeddedCluster(version="0.8.0", topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers) as outsider:
            with pytest.raises(UnsupportedVersionError, match=r"0\.8\.0"):
                await outsider.group.committed(all_of("t", 1))


async def test_a_lost_connection_does_not_make_an_0_8_2_an_0_8_1() -> None:
    parts = all_of("t", 1)
    async with EmbeddedCluster(version="0.8.2", topics={"t": 1}) as cluster:
        cluster.faults.close_before("FindCoordinator")
        async with member(cluster.bootstrap_servers) as outsider:
            assert await outsider.group.commit({parts[0]: OffsetAndMetadata(4)}) == {}
        assert {request.version for request in cluster.requests if request.api == "OffsetCommit"} == {1}


async def test_a_commit_for_a_topic_that_is_not_there() -> None:
    async with EmbeddedCluster(topics={"t": 1}, auto_create_topics=False) as cluster:
        async with member(cluster.bootstrap_servers) as outsider:
            (tp,) = all_of("nowhere", 1)
            refused = await outsider.group.commit({tp: OffsetAndMetadata(4)})
            assert isinstance(refused[tp], UnknownTopicError)


@pytest.mark.parametrize("version", ["0.8.0", "0.8.1", "0.8.2"])
async def test_a_broker_without_groups_says_so(version: str) -> None:
    async with EmbeddedCluster(version=version, topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            with pytest.raises(UnsupportedVersionError, match="LegacyConsumer, or --zookeeper"):
                await only.group.wait_stable(timeout=30)


async def test_joining_has_a_deadline() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.answer("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE, times=None)
        async with member(cluster.bootstrap_servers, "t") as only:
            with pytest.raises(RequestTimeoutError, match="not joined"):
                await only.group.wait_stable(timeout=0.2)
            # the last question may be asked a moment before the deadline, and have no answer by then
            with pytest.raises(RequestTimeoutError, match=r"COORDINATOR_NOT_AVAILABLE|no answer to FindCoordinator"):
                await only.group.committed(all_of("t", 1), timeout=4)


async def test_closing_is_bounded_when_all_brokers_are_gone() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t", close_timeout=0.5) as only:
            await wait_shared([only], all_of("t", 1))
            await cluster.stop_broker(0)
            with anyio.fail_after(20):
                await only.group.aclose(timeout=0.5)
            assert only.heard.calls[-1][0] == "revoked"


async def test_closing_does_not_wait_for_a_listener_for_ever() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], all_of("t", 1))
            only.heard.gate = anyio.Event()
            with anyio.fail_after(20):
                await only.group.aclose(timeout=0.2)
            only.heard.gate.set()


async def test_a_listener_that_takes_too_long_is_cancelled_and_the_group_goes_on() -> None:
    parts = all_of("t", 2)
    async with EmbeddedCluster(topics={"t": 2}) as cluster:
        async with member(cluster.bootstrap_servers, "t", max_poll_interval_ms=300) as only:
            only.heard.gate = anyio.Event()
            await wait_shared([only], parts)
            assert only.group.state is State.STABLE
            only.heard.gate.set()


async def test_calls_after_closing_and_during_it() -> None:
    parts = all_of("t", 1)
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers) as outsider:
            cluster.faults.answer("OffsetFetch", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=None)
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:

                    async def ask() -> None:
                        with pytest.raises(ClosedError):
                            await outsider.group.committed(parts, timeout=60)

                    tasks.start_soon(ask)
                    while not any(request.api == "OffsetFetch" for request in cluster.requests):
                        await anyio.lowlevel.checkpoint()
                    await outsider.group.aclose()
            with pytest.raises(ClosedError):
                await outsider.group.commit({parts[0]: OffsetAndMetadata(1)})


async def test_a_listener_that_raises_ends_the_client() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        async with member(cluster.bootstrap_servers, "t") as only:
            await wait_shared([only], all_of("t", 1))

            async def on_revoked(_: frozenset) -> None:
                raise ValueError("the application's own")

            only.heard.on_revoked = on_revoked
            only.group.subscribe(["t", "u"])
            with anyio.fail_after(30):
                while only.client.tasks.failure is None:
                    await only.group.news
            with pytest.raises(ClientFailedError, match="the application's own"):
                only.group.check()


@pytest.mark.parametrize("api", ["OffsetCommit", "JoinGroup"])
async def test_leave_group_does_not_wait_for_a_pending_request(api: str) -> None:
    """A commit with slow replicas, or a join that waits for others; the others would wait until the session ends."""
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        member(cluster.bootstrap_servers, "t") as first,
        anyio.create_task_group() as tasks,
    ):
        await wait_shared([first], all_of("t", 1))
        is_held = anyio.Event()
        cluster.faults.run(api, is_held.set)
        cluster.faults.delay(api, 3600)
        if api == "OffsetCommit":
            tasks.start_soon(first.group.commit, {TopicPartition("t", 0): OffsetAndMetadata(0)})
        else:
            first.group.subscribe(["t", "u"])
        await is_held.wait()
        await first.group.aclose(timeout=60)
        tasks.cancel_scope.cancel()
        assert "LeaveGroup" in {request.api for request in cluster.requests}


async def test_a_close_waits_for_leave_group_at_a_new_coordinator() -> None:
    """A cluster replaces a dead coordinator later than a close lasts by default."""
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        member(cluster.bootstrap_servers, "t") as first,
        anyio.create_task_group() as tasks,
    ):
        await wait_shared([first], all_of("t", 1))
        refused = [anyio.Event() for _ in range(10)]
        cluster.faults.answer("LeaveGroup", ErrorCode.NOT_COORDINATOR, times=len(refused))
        for number, each in enumerate(refused):
            cluster.faults.run("LeaveGroup", each.set, skip=number)
        tasks.start_soon(partial(first.group.aclose, timeout=0.05, leave_patience=3600))
        await refused[-1].wait()
    assert first.group._machine.is_idle
    assert [request.api for request in cluster.requests].count("LeaveGroup") > len(refused)


async def test_a_close_that_is_cancelled_does_not_wait_for_a_new_coordinator() -> None:
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        member(cluster.bootstrap_servers, "t") as first,
    ):
        await wait_shared([first], all_of("t", 1))
        cluster.faults.answer("LeaveGroup", ErrorCode.NOT_COORDINATOR, times=None)
        with anyio.fail_after(60), anyio.CancelScope() as scope:
            scope.cancel()
            await first.group.aclose(timeout=0.05, leave_patience=3600)


async def test_a_close_does_not_wait_for_a_coordinator_when_no_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "ANSWERED_FOR", 0.1)
    async with (
        EmbeddedCluster(topics={"t": 1}) as cluster,
        member(cluster.bootstrap_servers, "t") as first,
    ):
        await wait_shared([first], all_of("t", 1))
        await cluster.stop_broker(0)
        with anyio.fail_after(60):
            await first.group.aclose(timeout=0.05, leave_patience=3600)
