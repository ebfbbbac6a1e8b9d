"""APIs about topics: making, growing, deleting, configs, deleted records, offsets by time, epochs."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from pykafka08.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from pykafka08.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pykafka08.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka08.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka08.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from pykafka08.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from pykafka08.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka08.protocol.messages.metadata import MetadataRequest
from pykafka08.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.raw import Raw, batch, connect, produce

pytestmark = pytest.mark.anyio


async def create(raw: Raw, version: int = 5, *, validate_only: bool = False, **topic: Any) -> CreatableTopicResult:
    asked = CreatableTopic(**{"name": "new", "num_partitions": 1, "replication_factor": 1, **topic})
    response = await raw.ask(CreateTopicsRequest(topics=[asked], validate_only=validate_only), version)
    return response.topics[0]


async def test_create_in_every_version() -> None:
    async with EmbeddedCluster(2, "3.9") as cluster, connect(cluster) as raw:
        for version in range(8):
            name = f"topic-{version}"
            result = await create(raw, version, name=name, num_partitions=3, replication_factor=2)
            assert result.error_code == 0
            assert cluster.topics[name] == 3
            assert len({cluster.leader(name, partition) for partition in range(3)}) == 2


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"name": "old"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 2, "assignments": [(0, [1])]}, ErrorCode.INVALID_REQUEST),
        ({"assignments": [(0, [1]), (2, [0])]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": [(0, [1]), (1, [7])]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"assignments": [(0, [])]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_create_refused(asked: dict[str, Any], code: ErrorCode) -> None:
    async with EmbeddedCluster(brokers=2, topics={"old": 1}) as cluster, connect(cluster) as raw:
        if "assignments" in asked:
            given = [
                CreatableReplicaAssignment(partition_index=p, broker_ids=nodes) for p, nodes in asked["assignments"]
            ]
            asked = {"num_partitions": -1, "replication_factor": -1, **asked, "assignments": given}
        result = await create(raw, **asked)
        assert (result.error_code, bool(result.error_message)) == (code, True)
        assert cluster.topics == {"old": 1}


async def test_create_with_given_replicas_configs_and_defaults() -> None:
    async with EmbeddedCluster(brokers=3, default_partitions=4) as cluster, connect(cluster) as raw:
        given = [
            CreatableReplicaAssignment(partition_index=p, broker_ids=nodes) for p, nodes in ((0, [2, 1]), (1, [1]))
        ]
        await create(raw, name="given", num_partitions=-1, replication_factor=-1, assignments=given)
        assert [cluster.leader("given", partition) for partition in range(2)] == [2, 1]
        config = [CreatableTopicConfig(name="retention.ms", value="5")]
        result = await create(raw, name="default", num_partitions=-1, replication_factor=-1, configs=config)
        assert (result.num_partitions, result.replication_factor) == (4, 3)
        assert [each.value for each in result.configs or () if each.name == "retention.ms"] == ["5"]
        checked = await create(raw, name="only", validate_only=True)
        assert checked.error_code == 0
        assert set(cluster.topics) == {"given", "default"}


async def test_defaults_came_with_2_4() -> None:
    async with EmbeddedCluster(version="2.3") as cluster, connect(cluster) as raw:
        assert (await create(raw, 3, num_partitions=-1)).error_code == ErrorCode.INVALID_PARTITIONS


async def test_a_topic_named_twice_is_not_made() -> None:
    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        asked = [CreatableTopic(name="a", num_partitions=1, replication_factor=1) for _ in range(2)]
        response = await raw.ask(CreateTopicsRequest(topics=asked), 4)
        assert [result.error_code for result in response.topics] == [ErrorCode.INVALID_REQUEST] * 2
        assert cluster.topics == {}


async def test_only_the_controller_makes_topics_before_4_0() -> None:
    for release, code in (("2.8", ErrorCode.NOT_CONTROLLER), ("4.3", 0)):
        async with EmbeddedCluster(2, release) as cluster, connect(cluster, 1) as raw:
            assert (await raw.ask(MetadataRequest(topics=[]), 1)).controller_id == 0
            assert (await create(raw)).error_code == code


async def test_grow() -> None:
    async def grow(raw: Raw, count: int, assignments: list[list[int]] | None = None, name: str = "t") -> int:
        given = None if assignments is None else [CreatePartitionsAssignment(broker_ids=nodes) for nodes in assignments]
        asked = CreatePartitionsTopic(name=name, count=count, assignments=given)
        response = await raw.ask(CreatePartitionsRequest(topics=[asked]), 2)
        return response.results[0].error_code

    async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster, connect(cluster) as raw:
        assert await grow(raw, 3) == 0
        assert await grow(raw, 3) == ErrorCode.INVALID_PARTITIONS
        assert await grow(raw, 5, [[1]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await grow(raw, 4, [[9]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await grow(raw, 4, [[1, 0]]) == 0
        assert await grow(raw, 2, name="x") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert cluster.topics == {"t": 4}
        assert cluster.leader("t", 3) == 1


async def test_delete_by_name_and_by_id() -> None:
    async with EmbeddedCluster(topics={"a": 1, "b": 1}) as cluster, connect(cluster) as raw:
        old = await raw.ask(DeleteTopicsRequest(topic_names=["a", "x"]), 4)
        assert [(result.name, result.error_code) for result in old.responses] == [("a", 0), ("x", 3)]
        topic_id = (await raw.ask(MetadataRequest(topics=None), 12)).topics[0].topic_id
        for code in (0, ErrorCode.UNKNOWN_TOPIC_ID):
            new = await raw.ask(DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]), 6)
            assert new.responses[0].error_code == code
        assert cluster.topics == {}


async def test_configs_are_told_and_changed() -> None:
    async def told(raw: Raw, version: int) -> dict[str, str | None]:
        resource = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
        result = (await raw.ask(DescribeConfigsRequest(resources=[resource]), version)).results[0]
        assert result.error_code == 0
        return {config.name: config.value for config in result.configs if config.config_source == 1}

    async with EmbeddedCluster() as cluster, connect(cluster) as raw:
        cluster.create_topic("t", config={"cleanup.policy": "delete", "segment.ms": "7"})
        for version in range(1, 5):
            assert await told(raw, version) == {"cleanup.policy": "delete", "segment.ms": "7"}
        changes = [
            ("cleanup.policy", 2, "compact"),
            ("retention.ms", 0, "9"),
            ("segment.ms", 1, None),
        ]
        alter = AlterConfigsResource(
            resource_type=2,
            resource_name="t",
            configs=[AlterableConfig(name=name, config_operation=what, value=value) for name, what, value in changes],
        )
        response = await raw.ask(IncrementalAlterConfigsRequest(resources=[alter]), 1)
        assert response.responses[0].error_code == 0
        assert await told(raw, 4) == {"cleanup.policy": "delete,compact", "retention.ms": "9"}
        broker = DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
        missing = DescribeConfigsResource(resource_type=2, resource_name="x", configuration_keys=None)
        results = (await raw.ask(DescribeConfigsRequest(resources=[broker, missing]), 4)).results
        assert [result.error_code for result in results] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_the_cluster_is_described() -> None:
    async with EmbeddedCluster(brokers=2) as cluster, connect(cluster) as raw:
        for version in range(3):
            response = await raw.ask(DescribeClusterRequest(), version)
            assert (response.error_code, response.controller_id) == (0, 0)
            assert [(node.broker_id, node.port) for node in response.brokers] == [
                (node.node_id, node.port) for node in cluster.brokers
            ]
        controllers = await raw.ask(DescribeClusterRequest(endpoint_type=2), 1)
        assert controllers.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


async def test_records_are_deleted() -> None:
    async def delete(raw: Raw, offset: int) -> tuple[int, int]:
        asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
        result = (await raw.ask(DeleteRecordsRequest(topics=[asked]), 2)).topics[0].partitions[0]
        return result.error_code, result.low_watermark

    async with EmbeddedCluster(topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0", b"1", b"2"), 9)
        assert await delete(raw, 2) == (0, 2)
        assert await delete(raw, 1) == (0, 2)
        assert await delete(raw, 4) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert await delete(raw, -1) == (0, 3)
        assert cluster.records("t", 0) == []


async def offset(raw: Raw, version: int, timestamp: int, most: int = 1) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most if version == 0 else 1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])
    return (await raw.ask(request, version)).topics[0].partitions[0]


async def test_offsets_by_time() -> None:
    async with EmbeddedCluster(version="3.9", topics={"t": 1}) as cluster, connect(cluster) as raw:
        await produce(raw, batch(b"0", b"1", at_ms=1000), 9)
        await produce(raw, batch(b"2", at_ms=500), 9)
        for version in range(1, 10):
            assert [(await offset(raw, version, time)).offset for time in (-1, -2, 0, 1001, 1002)] == [3, 0, 0, 1, -1]
        assert (await offset(raw, 7, -3)).offset == 1
        assert ((await offset(raw, 4, 1001)).timestamp, (await offset(raw, 4, 1001)).leader_epoch) == (1001, 0)
        assert (await offset(raw, 0, -1, 5)).old_style_offsets == [3, 0]
        assert (await offset(raw, 0, -2, 5)).old_style_offsets == [0]


async def test_epochs_and_where_they_ended() -> None:
    async with EmbeddedCluster(2, "3.9", {"t": 1}) as cluster:
        for expected, node_id in enumerate((cluster.leader("t", 0), 1 - cluster.leader("t", 0))):
            cluster.move_leader("t", 0, node_id)
            async with connect(cluster, node_id) as raw:
                await produce(raw, batch(b"v"), 9)
                part = OffsetForLeaderPartition(partition=0, leader_epoch=0)
                asked = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[part])])
                for version in range(5):
                    found = (await raw.ask(asked, version)).topics[0].partitions[0]
                    assert (found.error_code, found.end_offset) == (0, 1)
                part.current_leader_epoch = expected
                assert (await raw.ask(asked, 4)).topics[0].partitions[0].leader_epoch == 0
