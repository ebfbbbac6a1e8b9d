"""APIs that Java's tools ask for: log dirs, offsets, elections, reassignments, quorum, transactions, producers."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages import ApiKey
from pykafka08.protocol.messages import alter_partition_reassignments as reassign
from pykafka08.protocol.messages import describe_log_dirs as log_dirs
from pykafka08.protocol.messages import describe_producers as producers
from pykafka08.protocol.messages import describe_quorum as quorum
from pykafka08.protocol.messages import elect_leaders as elections
from pykafka08.protocol.messages import offset_commit as commits
from pykafka08.protocol.messages import offset_delete as deletions
from pykafka08.protocol.messages import write_txn_markers as markers
from pykafka08.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka08.protocol.messages.consumer_protocol import ConsumerProtocolSubscription, encode_with_version
from pykafka08.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from pykafka08.protocol.messages.list_config_resources import ListConfigResourcesRequest
from pykafka08.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from pykafka08.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.raw import Raw, batch, connect, produce, produce_request

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("release", "has", "lacks"),
    [
        ("0.10.2", (), (ApiKey.DESCRIBE_ACLS, ApiKey.ALTER_CONFIGS)),
        ("0.11.0", (ApiKey.CREATE_ACLS, ApiKey.ALTER_CONFIGS), (ApiKey.DESCRIBE_LOG_DIRS,)),
        ("2.4", (ApiKey.OFFSET_DELETE, ApiKey.ELECT_LEADERS), (ApiKey.DESCRIBE_CLIENT_QUOTAS,)),
        ("3.9", (ApiKey.LIST_TRANSACTIONS,), (ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_CONFIG_RESOURCES)),
        ("4.0", (ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_CONFIG_RESOURCES, ApiKey.ALTER_USER_SCRAM_CREDENTIALS), ()),
    ],
)
def test_each_release_offers_the_admin_apis_that_it_has(
    release: str, has: tuple[ApiKey, ...], lacks: tuple[ApiKey, ...]
) -> None:
    served = EmbeddedCluster(version=release).served_versions
    assert [key in served for key in (*has, *lacks)] == [True] * len(has) + [False] * len(lacks)


async def test_log_dirs_have_the_size_of_each_replica() -> None:
    async def sizes(raw: Raw, topics: Any) -> list[tuple[str, int, int]]:
        response = await raw.ask(log_dirs.DescribeLogDirsRequest(topics=topics), 4)
        assert [each.error_code for each in response.results] == [0]
        found = [(topic.name, each) for topic in response.results[0].topics for each in topic.partitions]
        return [(name, each.partition_index, each.partition_size) for name, each in found]

    records = batch(b"x" * 100)
    async with EmbeddedCluster(2, topics={"t": 2}, replication_factor=1) as cluster:
        led = cluster.leader("t", 0)
        async with connect(cluster, led) as raw:
            await produce(raw, records, 9)
            assert await sizes(raw, None) == [("t", 0, len(records))]
            asked = [log_dirs.DescribableLogDirTopic(topic=name, partitions=[0, 7]) for name in ("t", "gone")]
            assert await sizes(raw, asked) == [("t", 0, len(records))]
            assert await sizes(raw, []) == []


async def delete_offsets(raw: Raw, group: str, *topics: str) -> tuple[int, list[tuple[str, int, int]]]:
    asked = [
        deletions.OffsetDeleteRequestTopic(
            name=name, partitions=[deletions.OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in topics
    ]
    response = await raw.ask(deletions.OffsetDeleteRequest(group_id=group, topics=asked), 0)
    found = [(topic.name, each) for topic in response.topics for each in topic.partitions]
    return response.error_code, [(name, each.partition_index, each.error_code) for name, each in found]


async def commit(raw: Raw, group: str, *topics: str) -> None:
    asked = [
        commits.OffsetCommitRequestTopic(
            name=name, partitions=[commits.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        )
        for name in topics
    ]
    await raw.ask(commits.OffsetCommitRequest(group_id=group, topics=asked), 7)


async def test_committed_offsets_are_deleted_unless_members_read_the_topic() -> None:
    async with EmbeddedCluster(topics={"t": 1, "u": 1}) as cluster, connect(cluster) as raw, connect(cluster) as other:
        assert await delete_offsets(raw, "gone", "t") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
        assert await delete_offsets(raw, "", "t") == (ErrorCode.INVALID_GROUP_ID, [])
        await commit(raw, "g", "t", "u")
        assert await delete_offsets(raw, "g", "t", "gone") == (
            0,
            [("t", 0, 0), ("gone", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
        )
        assert set(cluster._state.groups.offsets("g")) == {("u", 0)}
        metadata = encode_with_version(ConsumerProtocolSubscription(topics=["u"]), 0)
        joined = await other.ask(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
            ),
            3,
        )
        assert joined.error_code == 0
        subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert await delete_offsets(raw, "g", "t", "u") == (0, [("t", 0, 0), ("u", 0, subscribed)])
        await raw.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="new",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            ),
            1,
        )
        assert await delete_offsets(raw, "new", "t", "u") == (0, [("t", 0, subscribed), ("u", 0, 0)])


async def test_leaders_are_elected() -> None:
    async def elect(raw: Raw, kind: int, *partitions: int, topic: str = "t") -> tuple[int, list[tuple[int, int]]]:
        asked = [elections.TopicPartitions(topic=topic, partitions=list(partitions))] if partitions else None
        response = await raw.ask(elections.ElectLeadersRequest(election_type=kind, topic_partitions=asked), 2)
        found = [each for topic in response.replica_election_results for each in topic.partition_result]
        return response.error_code, [(each.partition_id, each.error_code) for each in found]

    async with EmbeddedCluster(2, topics={"t": 2}) as cluster, connect(cluster) as raw:
        preferred = cluster.leader("t", 0)
        assert await elect(raw, 0, 0, 9) == (
            0,
            [(0, ErrorCode.ELECTION_NOT_NEEDED), (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
        )
        cluster.move_leader("t", 0, 1 - preferred)
        assert await elect(raw, 1, 0) == (0, [(0, ErrorCode.ELECTION_NOT_NEEDED)])
        assert await elect(raw, 0) == (0, [(0, 0)])
        assert cluster.leader("t", 0) == preferred
        assert await elect(raw, 0) == (0, [])
        assert (await elect(raw, 5, 0))[1] == [(0, ErrorCode.INVALID_REQUEST)]
        await cluster.stop_broker(1)
        cluster._state.topics.find_partition("t", 0).lead(-1)  # type: ignore[union-attr]
        assert await elect(raw, 1, 0) == (0, [(0, 0)])
        assert cluster.leader("t", 0) == 0


async def test_replicas_are_reassigned_at_once() -> None:
    async def move(raw: Raw, topic: str, index: int, replicas: list[int] | None, **more: Any) -> int:
        partition = reassign.ReassignablePartition(partition_index=index, replicas=replicas)
        asked = [reassign.ReassignableTopic(name=topic, partitions=[partition])]
        response = await raw.ask(reassign.AlterPartitionReassignmentsRequest(topics=asked, **more), 1)
        assert response.error_code == 0
        return response.responses[0].partitions[0].error_code

    async with EmbeddedCluster(3, topics={"t": 1}, replication_factor=2) as cluster, connect(cluster) as raw:
        assert cluster.leader("t", 0) == 0
        await produce(raw, batch(b"kept"), 9)
        assert await move(raw, "t", 0, [2, 1]) == 0
        assert cluster.leader("t", 0) == 2
        assert [record.value for record in cluster.records("t", 0)] == [b"kept"]
        listed = await raw.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        assert (listed.error_code, listed.topics) == (0, [])
        for replicas in ([7], [1, 1], []):
            assert await move(raw, "t", 0, replicas) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await move(raw, "t", 0, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert await move(raw, "t", 9, [1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refused = await move(raw, "t", 0, [0], allow_replication_factor_change=False)
        assert refused == ErrorCode.INVALID_REPLICATION_FACTOR


async def test_the_quorum_is_described() -> None:
    async def ask(raw: Raw, topic: str, version: int = 2) -> quorum.DescribeQuorumResponse:
        asked = quorum.RequestTopicData(topic_name=topic, partitions=[quorum.RequestPartitionData(partition_index=0)])
        return await raw.ask(quorum.DescribeQuorumRequest(topics=[asked]), version)

    async with EmbeddedCluster(2) as cluster, connect(cluster) as raw:
        for version in range(3):
            partition = (await ask(raw, "__cluster_metadata", version)).topics[0].partitions[0]
            assert (partition.error_code, partition.leader_id) == (0, 0)
            assert [each.replica_id for each in partition.current_voters] == [0, 1]
        assert [each.node_id for each in (await ask(raw, "__cluster_metadata")).nodes] == [0, 1]
        other = (await ask(raw, "x")).topics[0].partitions[0]
        assert other.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_resources_with_configs_are_listed() -> None:
    async def listed(raw: Raw, version: int, *kinds: int) -> list[tuple[int, str]]:
        response = await raw.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
        assert response.error_code == 0
        return [(each.resource_type, each.resource_name) for each in response.config_resources]

    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        cluster._state.configs.groups["g"] = {"consumer.heartbeat.interval.ms": "6000"}
        cluster._state.configs.client_metrics["m"] = {"metrics": ""}
        assert await listed(raw, 0) == [(16, "m")]
        assert sorted(await listed(raw, 1)) == [(2, "t"), (4, "0"), (8, "0"), (16, "m"), (32, "g")]
        assert await listed(raw, 1, 32, 2) == [(32, "g"), (2, "t")]
        refused = await raw.ask(ListConfigResourcesRequest(resource_types=[77]), 1)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_hanging_transaction_is_ended_by_a_tool() -> None:
    hanging = batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    async with EmbeddedCluster(version="2.8", topics={"t": 1}) as cluster, connect(cluster) as raw:
        await raw.ask(produce_request(hanging, transactional_id="tx"), 9)
        assert cluster.last_stable_offset("t", 0) == 0
        marker = markers.WritableTxnMarker(
            producer_id=7,
            producer_epoch=0,
            transaction_result=False,
            topics=[markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0, 5])],
        )
        response = await raw.ask(markers.WriteTxnMarkersRequest(markers=[marker]), 1)
        codes = [each.error_code for each in response.markers[0].topics[0].partitions]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert cluster.last_stable_offset("t", 0) == 2
        assert cluster.records("t", 0, committed=True) == []


async def test_transactions_and_their_producers_are_listed_and_described() -> None:
    async def listed(raw: Raw, **conditions: Any) -> list[str]:
        response = await raw.ask(ListTransactionsRequest(**conditions), 2)
        assert response.error_code == 0
        return [each.transactional_id for each in response.transaction_states]

    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        initial = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000)
        producer_id = (await raw.ask(initial, 4)).producer_id
        topics = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
        adding = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
        await raw.ask(adding, 3)
        await raw.ask(InitProducerIdRequest(transactional_id="idle", transaction_timeout_ms=1000), 4)
        assert await listed(raw) == ["tx", "idle"]
        assert await listed(raw, state_filters=["Ongoing"]) == ["tx"]
        assert await listed(raw, producer_id_filters=[producer_id]) == ["tx"]
        assert await listed(raw, duration_filter=3_600_000) == ["idle"]
        assert await listed(raw, transactional_id_pattern="t.*") == ["tx"]
        assert await listed(raw, transactional_id_pattern="t") == []
        unknown = await raw.ask(ListTransactionsRequest(state_filters=["Lost"]), 2)
        assert (unknown.unknown_state_filters, unknown.transaction_states) == (["Lost"], [])
        bad = await raw.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

        asked = DescribeTransactionsRequest(transactional_ids=["tx", "gone", ""])
        open_one, gone, nameless = (await raw.ask(asked, 0)).transaction_states
        assert (open_one.transaction_state, open_one.producer_id) == ("Ongoing", producer_id)
        assert [(each.topic, each.partitions) for each in open_one.topics] == [("t", [0])]
        assert gone.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert nameless.error_code == ErrorCode.INVALID_REQUEST

        await produce(raw, batch(b"x", producer_id=7, producer_epoch=2, base_sequence=0), 9)
        request = producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=name, partition_indexes=[0]) for name in ("t", "gone")]
        )
        known, missing = (await raw.ask(request, 0)).topics
        found = known.partitions[0].active_producers
        assert [(each.producer_id, each.producer_epoch, each.last_sequence) for each in found] == [(7, 2, 0)]
        assert missing.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
