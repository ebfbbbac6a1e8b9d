"""Scripted faults and the log of requests."""

from __future__ import annotations

import anyio
import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.errors import ConfigError
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pykafka08.protocol.messages.fetch import FetchResponse
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.heartbeat import HeartbeatRequest
from pykafka08.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka08.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.broker.raw import Raw, batch, connect, decoded, fetch, fetch_request, produce, produce_request, values

pytestmark = pytest.mark.anyio


async def test_an_error_in_place_of_the_work() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.answer("Produce", ErrorCode.REQUEST_TIMED_OUT, times=2)
        codes = [(await produce(raw, batch(b"v"), 9)).error_code for _ in range(3)]
        assert codes == [7, 7, 0]
        assert cluster.log_end_offset("t", 0) == 1


async def test_an_error_though_the_work_is_done() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.answer("Produce", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, performed=True)
        answer = await produce(raw, batch(b"v"), 9)
        assert (answer.error_code, answer.base_offset) == (20, -1)
        assert cluster.log_end_offset("t", 0) == 1


async def test_faults_can_be_narrowed() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 2, "u": 1}) as cluster:
        cluster.faults.answer(ApiKey.PRODUCE, 7, times=None, topic="t", partition=1)
        cluster.faults.answer(MetadataRequest, 5, topic="u", broker=1)
        for partition, code in ((0, 0), (1, 7), (1, 7)):
            async with connect(cluster, cluster.leader("t", partition)) as raw:
                assert (await produce(raw, batch(b"v"), 9, partition=partition)).error_code == code
        asking = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="u")])
        for node_id, codes in ((0, [0, 0]), (1, [0, 5]), (1, [0, 0])):
            async with connect(cluster, node_id) as raw:
                assert [topic.error_code for topic in (await raw.ask(asking, 5)).topics] == codes


async def test_one_request_uses_a_fault_once_for_all_its_partitions() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster, connect(cluster) as raw:
        cluster.faults.answer("produce", 7)
        for code in (7, 0):
            parts = [PartitionProduceData(index=index, records=batch(b"v")) for index in range(2)]
            request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
            response = await raw.ask(request, 9)
            assert [each.error_code for each in response.responses[0].partition_responses] == [code, code]


async def test_a_waiting_fetch_answers_a_scripted_error_at_once() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.answer("Fetch", ErrorCode.KAFKA_STORAGE_ERROR)
        assert (await fetch(raw, 12, max_wait_ms=2**31 - 1)).error_code == 56


async def test_an_error_of_another_partition_does_not_hurry_a_waiting_fetch() -> None:
    async with EmbeddedCluster(topics={"t": 2}) as cluster, connect(cluster) as raw, connect(cluster) as writer:
        cluster.faults.answer("Fetch", ErrorCode.KAFKA_STORAGE_ERROR, partition=1)
        await raw.send(fetch_request(max_wait_ms=2**31 - 1), 12)
        await produce(writer, batch(b"v"), 9)
        _, response = await raw.receive(FetchResponse, 12)
        assert values(decoded(response.responses[0].partitions[0])) == [b"v"]


async def test_only_produce_can_be_performed_and_fail() -> None:
    async with EmbeddedCluster() as cluster:
        with pytest.raises(ConfigError, match="OffsetCommit"):
            cluster.faults.answer("OffsetCommit", 7, performed=True)


async def test_errors_of_a_fetch_session_stand_at_the_top() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.answer("Fetch", ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        response = await raw.ask(fetch_request(), 12)
        assert (response.error_code, response.responses) == (70, [])


async def test_errors_of_groups() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        cluster.faults.answer("Heartbeat", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        codes = [(await raw.ask(HeartbeatRequest(group_id="g", member_id="m"), 3)).error_code for _ in range(2)]
        assert codes == [14, 25]


async def test_close_before_and_after() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.close_before("Produce")
        cluster.faults.close_after("Produce")
        for stored in (0, 1):
            async with connect(cluster) as raw:
                await raw.send(produce_request(batch(b"v")), 9)
                assert await raw.is_closed_by_peer()
                assert cluster.log_end_offset("t", 0) == stored


async def test_a_dropped_answer() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.drop_answer("Produce")
        await raw.send(produce_request(batch(b"lost")), 9)
        asked = await raw.send(produce_request(batch(b"told")), 9)
        answered, _ = await raw.receive(ProduceResponse, 9)
        assert answered == asked
        assert values(cluster.records("t", 0)) == [b"lost", b"told"]


async def test_a_delay_holds_up_what_comes_behind_it() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as held, connect(cluster) as free:
        cluster.faults.delay("ApiVersions", 0.05)
        first = await held.send(ApiVersionsRequest(), 0)
        second = await held.send(ApiVersionsRequest(), 0)
        while not cluster.requests:
            await free.ask(MetadataRequest(topics=[]), 1)
        answered = [(await held.receive(ApiVersionsResponse, 0))[0] for _ in range(2)]
        assert answered == [first, second]
        at = [request.time for request in cluster.requests if request.api == "ApiVersions"]
        assert at[1] - at[0] >= 0.05


async def test_the_script_can_be_cleared() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        cluster.faults.close_before("ApiVersions", times=None)
        cluster.faults.clear()
        assert (await raw.ask(ApiVersionsRequest(), 0)).error_code == 0


@pytest.mark.parametrize("api", ["Products", 999, -1])
async def test_an_api_that_does_not_exist_is_refused(api: str | int) -> None:
    async with EmbeddedCluster() as cluster:
        with pytest.raises(ConfigError, match=str(api)):
            cluster.faults.answer(api, 7)


async def test_requests_are_logged() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, connect(cluster, 1) as raw:
        await raw.send(MetadataRequest(topics=None), 4, client_id="me")
        await raw.receive_frame()
        await raw.send(ApiVersionsRequest(), 0, client_id=None)
        await raw.receive_frame()
        logged = [(each.broker, each.api, each.version, each.client_id) for each in cluster.requests]
        assert logged == [(1, "Metadata", 4, "me"), (1, "ApiVersions", 0, None)]
        assert cluster.requests[0].time <= cluster.requests[1].time
        cluster.requests.clear()
        await raw.send_frame(b"\0\x12\0\0\0\0\0\x01\xff\xffabc")
        await raw.receive_frame()
        assert [each.trailing_bytes for each in cluster.requests] == [3]


async def test_the_nth_request() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.answer("Produce", 7, skip=2)
        cluster.faults.answer("Produce", 6, skip=2)
        codes = [(await produce(raw, batch(b"v"), 9)).error_code for _ in range(5)]
        assert codes == [0, 0, 7, 6, 0]


@pytest.mark.parametrize("size", [0, 3, 4, 7, 30])
async def test_an_answer_is_cut(size: int) -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.cut_answer("Produce", size)
        await raw.send(produce_request(batch(b"v")), 9)
        if size:
            assert len(await raw._receive.receive_exactly(size)) == size
        assert await raw.is_closed_by_peer()
        assert cluster.log_end_offset("t", 0) == 1
        with pytest.raises(ConfigError, match="-1"):
            cluster.faults.cut_answer("Produce", -1)


async def test_an_answer_twice() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.duplicate_answer("ApiVersions")
        asked = [await raw.send(ApiVersionsRequest(), 0) for _ in range(2)]
        answered = [(await raw.receive(ApiVersionsResponse, 0))[0] for _ in range(3)]
        assert answered == [asked[0], asked[0], asked[1]]


async def test_answers_are_swapped() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster.faults.swap_answers("ApiVersions")
        asked = [await raw.send(ApiVersionsRequest(), 0) for _ in range(3)]
        answered = [(await raw.receive(ApiVersionsResponse, 0))[0] for _ in range(3)]
        assert answered == [asked[1], asked[0], asked[2]]


async def test_something_happens_at_the_nth_request() -> None:
    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
        leader = cluster.leader("t", 0)
        async with connect(cluster, leader) as raw:
            cluster.faults.run("Produce", lambda: cluster.move_leader("t", 0, 1 - leader), skip=1)
            codes = [(await produce(raw, batch(b"v"), 9)).error_code for _ in range(3)]
        assert codes == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def lives_of(seed: int, ways: int) -> list[str]:
    """What became of so many connections, each with one request after its life is over."""
    seen = []
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.connection_lives(0.0, 0.0, seed=seed)
        for number in range(ways):
            async with connect(cluster) as raw:
                cluster.requests.clear()
                before = cluster.log_end_offset("t", 0)
                try:
                    await raw.send(produce_request(batch(b"%d" % number)), 9)
                    answer = await raw._receive.receive(4)
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    answer = b""
                is_performed = cluster.log_end_offset("t", 0) > before
                seen.append(f"{'performed' if is_performed else 'not performed'}, {'cut' if answer else 'closed'}")
    return seen


async def test_connections_have_random_lives() -> None:
    seen = await lives_of(seed=5, ways=40)
    assert set(seen) == {"not performed, closed", "performed, closed", "performed, cut"}


async def test_lives_end_with_the_script() -> None:
    async with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.faults.connection_lives(0.0, 0.1, seed=1)
        async with connect(cluster) as raw:
            cluster.faults.clear()
            await fetch(raw, 12, max_wait_ms=500)  # the life would be over before
            assert (await produce(raw, batch(b"v"), 9)).error_code == 0
        with pytest.raises(ConfigError, match="2"):
            cluster.faults.connection_lives(2, 1, seed=1)


async def test_an_idle_connection_dies_too() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.faults.connection_lives(0.0, 0.0, seed=1)
        for _ in range(8):
            async with connect(cluster) as raw:
                assert await raw.is_closed_by_peer()


def joining() -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )


async def joined(raw: Raw) -> JoinGroupResponse:
    """The only member of group g, in its first generation."""
    response = await raw.ask(joining(), 3)
    assert response.error_code == 0
    return response


async def beat(raw: Raw, member: JoinGroupResponse) -> int:
    request = HeartbeatRequest(group_id="g", member_id=member.member_id, generation_id=member.generation_id)
    return (await raw.ask(request, 3)).error_code


async def test_a_coordinator_moves() -> None:
    async with EmbeddedCluster(brokers=2) as cluster:
        old = cluster.coordinator("g")
        async with connect(cluster, old) as at_old, connect(cluster, 1 - old) as at_new:
            member = await joined(at_old)
            other = await at_old.send(joining(), 3)
            assert await beat(at_new, member) == ErrorCode.NOT_COORDINATOR
            cluster.move_coordinator("g", 1 - old)
            answered, response = await at_old.receive(JoinGroupResponse, 3)
            assert (answered, response.error_code) == (other, ErrorCode.NOT_COORDINATOR)
            found = await at_old.ask(FindCoordinatorRequest(key="g"), 2)
            assert found.node_id == cluster.coordinator("g") == 1 - old
            assert await beat(at_old, member) == ErrorCode.NOT_COORDINATOR
            assert await beat(at_new, member) == ErrorCode.REBALANCE_IN_PROGRESS
        await cluster.stop_broker(1 - old)
        assert cluster.coordinator("g") == old
        with pytest.raises(ConfigError, match="stopped"):
            cluster.move_coordinator("g", 1 - old)


async def test_sessions_expire_when_told() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        member = await joined(raw)
        cluster.faults.run("Heartbeat", lambda: cluster.expire_sessions("g"), skip=1)
        codes = [await beat(raw, member) for _ in range(2)]
        assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID]
        with pytest.raises(ConfigError, match="'g'"):
            cluster.expire_sessions("g", member.member_id)
