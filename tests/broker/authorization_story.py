"""Requests of one user under access control lists, and the error codes that a broker answers.

``test_authorization_as_kafka_has_it`` tells it to embedded brokers and compares the codes with those that real brokers
gave; run this module to record them anew::

    python -m tests.broker.authorization_story 4.3.1 HOST:PORT SASL_HOST:SASL_PORT

The real broker needs an authorizer, ``super.users=User:ANONYMOUS``, the SASL user ``alice`` (PLAIN), and no topics.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from pykafka08.acl_operations import AclOperation, AclResourceType
from pykafka08.broker.server import EmbeddedCluster
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages import add_partitions_to_txn as txn_partitions
from pykafka08.protocol.messages import alter_client_quotas as quotas
from pykafka08.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    delete_records,
    describe_configs,
    describe_producers,
    describe_quorum,
    elect_leaders,
    fetch,
    incremental_alter_configs,
    join_group,
    leave_group,
    list_offsets,
    offset_commit,
    offset_delete,
    offset_fetch,
    txn_offset_commit,
    write_txn_markers,
)
from pykafka08.protocol.messages import alter_user_scram_credentials as scram
from pykafka08.protocol.messages import offset_for_leader_epoch as epochs
from pykafka08.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from pykafka08.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka08.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pykafka08.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka08.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pykafka08.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from pykafka08.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka08.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka08.protocol.messages.describe_acls import DescribeAclsRequest
from pykafka08.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from pykafka08.protocol.messages.describe_cluster import DescribeClusterRequest
from pykafka08.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka08.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from pykafka08.protocol.messages.describe_transactions import DescribeTransactionsRequest
from pykafka08.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from pykafka08.protocol.messages.end_txn import EndTxnRequest
from pykafka08.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka08.protocol.messages.heartbeat import HeartbeatRequest
from pykafka08.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka08.protocol.messages.list_config_resources import ListConfigResourcesRequest
from pykafka08.protocol.messages.list_groups import ListGroupsRequest
from pykafka08.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from pykafka08.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka08.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from pykafka08.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka08.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka08.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka08.protocol.messages.sync_group import SyncGroupRequest
from pykafka08.protocol.schema import Request, Struct, VersionRange
from tests.broker.raw import Raw, batch

RECORDED = Path(__file__).parent / "data" / "authorization.json"
USER, CLIENT_ID = "User:alice", "alice"
TOPICS = {"open": 1, "secret": 1}
PASSING = frozenset({14, 15, 16, 51})
"""Codes that a broker gives while it makes a coordinator: asked again until there is another."""

LONGEST_S = 10
BROKER = 4
ANY = 1
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
NAMES = ("name", "topic", "transactional_id", "group_id")
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


class Grant(NamedTuple):
    """One access control entry."""

    kind: AclResourceType
    name: str
    operation: AclOperation
    pattern: int = LITERAL
    permission: int = ALLOW
    principal: str = USER
    host: str = "*"


class Case(NamedTuple):
    """One request of the user; ``most``: the newest version that names what the request has."""

    name: str
    request: Request[Any]
    grants: tuple[Grant, ...] = ()
    most: int = 99


def topic(operation: str, name: str = "secret", **more: Any) -> Grant:
    return Grant(AclResourceType.TOPIC, name, AclOperation[operation], **more)


def group(operation: str, name: str = "g") -> Grant:
    return Grant(AclResourceType.GROUP, name, AclOperation[operation])


def cluster(operation: str) -> Grant:
    return Grant(AclResourceType.CLUSTER, "kafka-cluster", AclOperation[operation])


def transactional_id(operation: str) -> Grant:
    return Grant(AclResourceType.TRANSACTIONAL_ID, "tx", AclOperation[operation])


def cases() -> Iterator[Case]:
    yield from _topics()
    yield from _rules()
    yield from _groups()
    yield from _transactions()
    yield from _administration()


def _produce(name: str = "secret", **arguments: Any) -> ProduceRequest:
    records = batch(b"x", **_producer(arguments.pop("producer_id", -1)), **arguments.pop("batch", {}))
    data = TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data], **arguments)


def _producer(producer_id: int) -> dict[str, Any]:
    return {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}


def _metadata(*names: str, creates: bool = False, **arguments: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    return MetadataRequest(topics=topics, allow_auto_topic_creation=creates, **arguments)


def _topics() -> Iterator[Case]:
    for name in ("secret", "absent"):
        yield Case(f"Metadata {name}", _metadata(name))
        yield Case(f"Metadata {name}, DESCRIBE", _metadata(name), (topic("DESCRIBE", name),))
    yield Case("Metadata all", _metadata())
    yield Case("Metadata all, DESCRIBE open", _metadata(), (topic("DESCRIBE", "open"),))
    yield Case("Metadata new topic", _metadata("new1", creates=True), (topic("DESCRIBE", "new1"),))
    yield Case(
        "Metadata new topic, CREATE topic",
        _metadata("new2", creates=True),
        (topic("DESCRIBE", "new2"), topic("CREATE", "new2")),
    )
    yield Case(
        "Metadata new topic, CREATE cluster",
        _metadata("new3", creates=True),
        (topic("DESCRIBE", "new3"), cluster("CREATE")),
    )
    yield Case(
        "Metadata operations",
        _metadata("secret", include_topic_authorized_operations=True),
        (topic("READ"), topic("ALTER_CONFIGS")),
    )
    for right in (None, "READ", "DESCRIBE", "WRITE"):
        grants = () if right is None else (topic(right),)
        yield Case(f"Produce, {right}", _produce(), grants, most=9)
        yield Case(f"Fetch, {right}", _fetch("secret"), grants, most=12)
        yield Case(f"ListOffsets, {right}", _list_offsets("secret"), grants)
        yield Case(f"OffsetForLeaderEpoch, {right}", _epochs("secret"), grants)
        yield Case(f"DescribeProducers, {right}", _producers("secret"), grants)
    yield Case("Produce absent", _produce("absent"), (), most=9)
    yield Case("Fetch two topics", _fetch("secret", "open"), (topic("READ", "open"),), most=12)
    yield Case("ListOffsets absent", _list_offsets("absent"))
    yield Case("InitProducerId", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    yield Case(
        "InitProducerId, IDEMPOTENT_WRITE",
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (cluster("IDEMPOTENT_WRITE"),),
    )
    yield Case(
        "InitProducerId, WRITE on a topic",
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (topic("WRITE", "other"),),
    )
    yield Case(
        "InitProducerId, WRITE denied on all topics",
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (topic("WRITE", "other"), topic("WRITE", "*", permission=DENY)),
    )
    yield Case(
        "InitProducerId, WRITE denied on a prefix",
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
        (topic("WRITE", "other"), topic("WRITE", "oth", pattern=PREFIXED, permission=DENY)),
    )
    yield Case("Produce with producer id, WRITE", _produce(producer_id=500), (topic("WRITE"),), most=9)
    yield Case(
        "Produce with producer id, WRITE, IDEMPOTENT_WRITE",
        _produce(producer_id=501),
        (topic("WRITE"), cluster("IDEMPOTENT_WRITE")),
        most=9,
    )


def _rules() -> Iterator[Case]:
    request = _list_offsets("secret")
    rules: dict[str, tuple[Grant, ...]] = {
        "READ implies DESCRIBE": (topic("READ"),),
        "WRITE implies DESCRIBE": (topic("WRITE"),),
        "DELETE implies DESCRIBE": (topic("DELETE"),),
        "ALTER implies DESCRIBE": (topic("ALTER"),),
        "CREATE does not imply DESCRIBE": (topic("CREATE"),),
        "ALTER_CONFIGS does not imply DESCRIBE": (topic("ALTER_CONFIGS"),),
        "ALL": (topic("ALL"),),
        "wildcard topic": (topic("DESCRIBE", "*"),),
        "prefix": (topic("DESCRIBE", "sec", pattern=PREFIXED),),
        "prefix of another": (topic("DESCRIBE", "sex", pattern=PREFIXED),),
        "a literal is no prefix": (topic("DESCRIBE", "sec"),),
        "everyone": (topic("DESCRIBE", principal="User:*"),),
        "somebody else": (topic("DESCRIBE", principal="User:bob"),),
        "this host": (topic("DESCRIBE", host="127.0.0.1"),),
        "another host": (topic("DESCRIBE", host="10.1.2.3"),),
        "deny before allow": (topic("DESCRIBE"), topic("DESCRIBE", permission=DENY)),
        "denied on all topics": (topic("DESCRIBE"), topic("DESCRIBE", "*", permission=DENY)),
        "denied on a prefix": (topic("DESCRIBE"), topic("DESCRIBE", "s", pattern=PREFIXED, permission=DENY)),
        "denied ALL": (topic("DESCRIBE"), topic("ALL", permission=DENY)),
        "denied to everyone": (topic("DESCRIBE"), topic("DESCRIBE", permission=DENY, principal="User:*")),
        "denied to another host": (topic("DESCRIBE"), topic("DESCRIBE", permission=DENY, host="10.1.2.3")),
        "READ denied does not deny DESCRIBE": (topic("DESCRIBE"), topic("READ", permission=DENY)),
    }
    for name, grants in rules.items():
        yield Case(f"rule: {name}", request, grants)


def _groups() -> Iterator[Case]:
    join = join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
    )
    requests: dict[str, Request[Any]] = {
        "JoinGroup": join,
        "SyncGroup": SyncGroupRequest(group_id="g", member_id="m", protocol_type="consumer", protocol_name="range"),
        "Heartbeat": HeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
        "LeaveGroup": leave_group.LeaveGroupRequest(
            group_id="g", member_id="m", members=[leave_group.MemberIdentity(member_id="m")]
        ),
        "OffsetCommit": _commit("secret", "open"),
        "OffsetFetch": _offset_fetch("secret", "open"),
        "OffsetFetch all": _offset_fetch(),
        "DescribeGroups": DescribeGroupsRequest(groups=["g"], include_authorized_operations=True),
        "ListGroups": ListGroupsRequest(),
        "OffsetDelete": offset_delete.OffsetDeleteRequest(
            group_id="g",
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name="secret", partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
        "ConsumerGroupDescribe": ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True),
        "ConsumerGroupHeartbeat": ConsumerGroupHeartbeatRequest(
            group_id="new-g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["secret"],
            topic_partitions=[],
        ),
    }
    most = {"OffsetCommit": 9, "OffsetFetch": 9, "OffsetFetch all": 9}
    yield Case("FindCoordinator group", _find("g", 0))
    yield Case("FindCoordinator group, DESCRIBE", _find("g", 0), (group("DESCRIBE"),))
    # Offsets for the requests below.
    full = (group("READ"), topic("READ"), topic("READ", "open"))
    yield Case("OffsetCommit, all", requests["OffsetCommit"], full, most=9)
    for name, request in requests.items():
        for right in (None, "DESCRIBE", "READ", "DELETE"):
            grants = () if right is None else (group(right), group(right, "new-g"))
            yield Case(f"{name}, {right}", request, grants, most.get(name, 99))
    for name in ("OffsetCommit", "OffsetFetch", "OffsetFetch all"):
        yield Case(f"{name}, READ topic", requests[name], (group("READ"), topic("READ")), 9)
    yield Case("ListGroups, DESCRIBE cluster", ListGroupsRequest(), (cluster("DESCRIBE"),))
    yield Case(
        "ConsumerGroupHeartbeat, READ topic",
        requests["ConsumerGroupHeartbeat"],
        (group("READ", "new-g"), topic("READ")),
    )
    described = ConsumerGroupDescribeRequest(group_ids=["new-g"], include_authorized_operations=True)
    yield Case("ConsumerGroupDescribe with hidden topic", described, (group("DESCRIBE", "new-g"),))
    yield Case("ConsumerGroupDescribe, READ topic", described, (group("DESCRIBE", "new-g"), topic("READ")))
    yield Case("OffsetDelete, READ topic", requests["OffsetDelete"], (group("DELETE"), topic("READ")))
    for right in (None, "READ", "DELETE"):
        rights = () if right is None else (group(right),)
        yield Case(f"DeleteGroups, {right}", DeleteGroupsRequest(groups_names=["g"]), rights)


def _transactions() -> Iterator[Case]:
    start = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=10_000)
    add = txn_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[
            txn_partitions.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in ("secret", "open")
        ],
    )
    offsets = AddOffsetsToTxnRequest(transactional_id="tx", producer_id=1, producer_epoch=0, group_id="g")
    commit = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
            )
            for name in ("secret", "open")
        ],
    )
    end = EndTxnRequest(transactional_id="tx", producer_id=1, producer_epoch=0, committed=True)
    write = _produce(producer_id=1, transactional_id="tx", batch={"is_transactional": True})
    everything: tuple[tuple[str, Request[Any], int], ...] = (
        ("FindCoordinator transaction", _find("tx", 1), 99),
        ("InitProducerId transaction", start, 99),
        ("AddPartitionsToTxn", add, 3),
        ("AddOffsetsToTxn", offsets, 3),
        ("TxnOffsetCommit", commit, 3),
        ("EndTxn", end, 3),
        ("DescribeTransactions", DescribeTransactionsRequest(transactional_ids=["tx"]), 99),
        ("ListTransactions", ListTransactionsRequest(), 99),
    )
    for name, request, most in everything:
        for right in (None, "DESCRIBE", "WRITE"):
            grants = () if right is None else (transactional_id(right),)
            yield Case(f"{name}, {right}", request, grants, most)
    yield Case("Produce in transaction, WRITE topic", write, (topic("WRITE"),), 9)
    yield Case("Produce in transaction, WRITE transactional id", write, (transactional_id("WRITE"),), 9)
    both = (transactional_id("WRITE"), topic("WRITE"))
    yield Case("AddPartitionsToTxn, WRITE one topic", add, both, 3)
    yield Case("AddPartitionsToTxn, WRITE both topics", add, (*both, topic("WRITE", "open")), 3)
    yield Case("AddOffsetsToTxn, READ group", offsets, (transactional_id("WRITE"), group("READ")), 3)
    yield Case("AddOffsetsToTxn, only READ group", offsets, (group("READ"),), 3)
    yield Case("TxnOffsetCommit, READ group", commit, (transactional_id("WRITE"), group("READ")), 3)
    yield Case(
        "TxnOffsetCommit, READ group and topic", commit, (transactional_id("WRITE"), group("READ"), topic("READ")), 3
    )
    for grants in ((), (cluster("CLUSTER_ACTION"),)):
        markers = write_txn_markers.WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    producer_id=900,
                    topics=[write_txn_markers.WritableTxnMarkerTopic(name="secret", partition_indexes=[0])],
                )
            ]
        )
        yield Case(f"WriteTxnMarkers, {len(grants)} rights", markers, grants)
        verify = txn_partitions.AddPartitionsToTxnRequest(
            transactions=[
                txn_partitions.AddPartitionsToTxnTransaction(
                    transactional_id="nobody",
                    producer_id=7,
                    verify_only=True,
                    topics=[txn_partitions.AddPartitionsToTxnTopic(name="secret", partitions=[0])],
                )
            ]
        )
        yield Case(f"AddPartitionsToTxn of brokers, {len(grants)} rights", verify, grants, 4)


def _administration() -> Iterator[Case]:
    def created(name: str) -> CreateTopicsRequest:
        return CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=5000
        )

    yield Case("CreateTopics", created("c1"))
    yield Case("CreateTopics, CREATE topic", created("c2"), (topic("CREATE", "c2"),))
    yield Case("CreateTopics, CREATE cluster", created("c3"), (cluster("CREATE"),))
    yield Case(
        "CreateTopics, CREATE and DESCRIBE_CONFIGS",
        created("c4"),
        (topic("CREATE", "c4"), topic("ALTER_CONFIGS", "c4")),
    )
    yield Case("CreateTopics existing", created("secret"))
    for right in (None, "DESCRIBE", "ALTER", "DELETE"):
        grants = () if right is None else (topic(right, "c2"),)
        grow = create_partitions.CreatePartitionsRequest(
            topics=[create_partitions.CreatePartitionsTopic(name="c2", count=2)], timeout_ms=5000
        )
        yield Case(f"CreatePartitions, {right}", grow, grants)
        trim = delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name="c2", partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
                )
            ],
            timeout_ms=5000,
        )
        yield Case(f"DeleteRecords, {right}", trim, grants)
    for right in (None, "DESCRIBE", "DELETE"):
        grants = () if right is None else (topic(right, "c3"),)
        delete = DeleteTopicsRequest(topic_names=["c3"], topics=[DeleteTopicState(name="c3")], timeout_ms=5000)
        yield Case(f"DeleteTopics, {right}", delete, grants)
    yield Case(
        "DeleteTopics absent",
        DeleteTopicsRequest(topic_names=["absent"], topics=[DeleteTopicState(name="absent")], timeout_ms=5000),
    )
    resources: tuple[tuple[int, str, Callable[[str], Grant]], ...] = (
        (2, "secret", topic),
        (4, "", cluster),
        (32, "g", group),
    )
    for kind, name, granted in resources:
        describe = describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=["retention.ms"]
                )
            ]
        )
        alter = alter_configs.AlterConfigsRequest(
            resources=[alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)], validate_only=True
        )
        more = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)],
            validate_only=True,
        )
        for operation in (None, "DESCRIBE_CONFIGS", "ALTER_CONFIGS"):
            grants = () if operation is None else (granted(operation),)
            yield Case(f"DescribeConfigs {kind}, {operation}", describe, grants)
            if kind != BROKER or operation != "ALTER_CONFIGS":
                # It would reset the configs of all brokers.
                yield Case(f"AlterConfigs {kind}, {operation}", alter, grants)
            yield Case(f"IncrementalAlterConfigs {kind}, {operation}", more, grants)
    reassign = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        topics=[
            alter_partition_reassignments.ReassignableTopic(
                name="secret",
                partitions=[alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=None)],
            )
        ],
        timeout_ms=5000,
    )
    entry = AclCreation(
        resource_type=2,
        resource_name="x",
        resource_pattern_type=3,
        principal="User:x",
        host="*",
        operation=3,
        permission_type=3,
    )
    on_cluster: dict[str, Request[Any]] = {
        "DescribeAcls": DescribeAclsRequest(**EVERYTHING),
        "CreateAcls": CreateAclsRequest(creations=[entry]),
        "DeleteAcls": DeleteAclsRequest(filters=[DeleteAclsFilter(**{**EVERYTHING, "principal_filter": "User:x"})]),
        "DescribeClientQuotas": DescribeClientQuotasRequest(components=[], strict=False),
        "AlterClientQuotas": quotas.AlterClientQuotasRequest(
            entries=[
                quotas.RequestEntryData(
                    entity=[quotas.EntityData(entity_type="user", entity_name="x")],
                    ops=[quotas.OpData(key="producer_byte_rate", value=1e6, remove=False)],
                )
            ],
            validate_only=True,
        ),
        "DescribeUserScramCredentials": DescribeUserScramCredentialsRequest(
            users=[UserName(name="nobody")]  # 4.3.1 does not answer a refused request for all users
        ),
        "AlterUserScramCredentials": scram.AlterUserScramCredentialsRequest(
            deletions=[scram.ScramCredentialDeletion(name="nobody", mechanism=1)]
        ),
        "AlterPartitionReassignments": reassign,
        "ListPartitionReassignments": ListPartitionReassignmentsRequest(timeout_ms=5000, topics=None),
        "ElectLeaders": elect_leaders.ElectLeadersRequest(
            election_type=0,
            topic_partitions=[elect_leaders.TopicPartitions(topic="secret", partitions=[0])],
            timeout_ms=5000,
        ),
        "DescribeLogDirs": DescribeLogDirsRequest(topics=None),
        "DescribeCluster": DescribeClusterRequest(include_cluster_authorized_operations=True),
        "DescribeQuorum": describe_quorum.DescribeQuorumRequest(
            topics=[
                describe_quorum.RequestTopicData(
                    topic_name="__cluster_metadata",
                    partitions=[describe_quorum.RequestPartitionData(partition_index=0)],
                )
            ]
        ),
        "ListConfigResources": ListConfigResourcesRequest(),
    }
    for name, request in on_cluster.items():
        for right in (None, "DESCRIBE", "ALTER", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"):
            yield Case(f"{name}, {right}", request, () if right is None else (cluster(right),))


def _fetch(*names: str) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return fetch.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1000,
        topics=[fetch.FetchTopic(topic=name, partitions=[partition]) for name in names],
    )


def _list_offsets(name: str) -> list_offsets.ListOffsetsRequest:
    partition = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=1)
    return list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(name=name, partitions=[partition])])


def _epochs(name: str) -> epochs.OffsetForLeaderEpochRequest:
    partition = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    return epochs.OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[epochs.OffsetForLeaderTopic(topic=name, partitions=[partition])]
    )


def _producers(name: str) -> describe_producers.DescribeProducersRequest:
    return describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name=name, partition_indexes=[0])]
    )


def _find(key: str, kind: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])


def _commit(*names: str) -> offset_commit.OffsetCommitRequest:
    return offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=name,
                partitions=[offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
            )
            for name in names
        ],
    )


def _offset_fetch(*names: str) -> offset_fetch.OffsetFetchRequest:
    topics = [offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names] or None
    modern = [offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names] or None
    return offset_fetch.OffsetFetchRequest(
        group_id="g", topics=topics, groups=[offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=modern)]
    )


# -- telling it


async def tell(admin: Raw, user: Raw, served: dict[int, VersionRange]) -> dict[str, list[Any]]:
    """The codes of every case that the broker serves, by name; ``admin`` may do everything."""
    answers: dict[str, list[Any]] = {}
    for case in cases():
        versions = served.get(case.request.api_key)
        if versions is None or case.most < versions.min:
            continue
        version = min(versions.max, case.most)
        await _grant(admin, case.grants, served)
        with anyio.fail_after(LONGEST_S):
            answers[case.name] = await _codes(user, case.request, version)
        await _revoke(admin, served)
    return answers


async def create_topics(admin: Raw, served: dict[int, VersionRange]) -> None:
    topics = [CreatableTopic(name=name, num_partitions=n, replication_factor=1) for name, n in TOPICS.items()]
    request = CreateTopicsRequest(topics=topics, timeout_ms=10_000)
    made = await admin.ask(request, served[request.api_key].max)
    assert [each.error_code for each in made.topics] == [0] * len(topics), made


async def _codes(user: Raw, request: Request[Any], version: int) -> list[Any]:
    held = [field.name for field in request.schema if version in field.versions]
    request = type(request)(**{name: getattr(request, name) for name in held})
    while True:
        sent = await user.send(request, version, client_id=CLIENT_ID)
        got, response = await user.receive(type(request).response, version)
        assert got == sent
        found = list(_found(response))
        if not any(code in PASSING for _, code in found):
            return [code if name == "error_code" else f"{name}={code}" for name, code in found]
        await anyio.sleep(0.05)


def _found(value: Struct) -> Iterator[tuple[str, Any]]:
    """Error codes, authorized operations, and names of what is listed, in the order of the answer's fields."""
    for field in value.schema:
        if field.name == "configs":
            continue
        inner = getattr(value, field.name)
        if field.name.endswith("error_code"):
            yield "error_code", int(inner)
        elif field.name.endswith("authorized_operations") and inner != -(2**31):
            yield "operations", inner
        elif field.name in NAMES and isinstance(inner, str):
            if not inner.startswith(("__", "retention")):
                yield field.name, inner
        elif isinstance(inner, Struct):
            yield from _found(inner)
        elif isinstance(inner, list):
            listed = [each for each in inner if isinstance(each, Struct)]
            for each in sorted(listed, key=_name_of):
                if not _name_of(each).startswith("__"):
                    yield from _found(each)


def _name_of(value: Struct) -> str:
    """The name of what an item of a list is about; brokers list the items in any order."""
    names = [getattr(value, name) for name in NAMES if hasattr(value, name)]
    return next((name for name in names if isinstance(name, str)), "")


async def _grant(admin: Raw, grants: tuple[Grant, ...], served: dict[int, VersionRange]) -> None:
    if not grants:
        return
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=each.kind,
                resource_name=each.name,
                resource_pattern_type=each.pattern,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in grants
        ]
    )
    made = await admin.ask(request, served[request.api_key].max)
    assert all(each.error_code == 0 for each in made.results), made
    await _until(admin, served, len(grants))


async def _revoke(admin: Raw, served: dict[int, VersionRange]) -> None:
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)])
    await admin.ask(request, served[request.api_key].max)
    await _until(admin, served, 0)


async def _until(admin: Raw, served: dict[int, VersionRange], number: int) -> None:
    """Wait until the broker has so many entries: it applies changes after they were acknowledged."""
    request = DescribeAclsRequest(**EVERYTHING)
    while True:
        found = await admin.ask(request, served[request.api_key].max)
        assert found.error_code == ErrorCode.NONE
        if sum(len(each.acls) for each in found.resources) == number:
            return
        await anyio.sleep(0.02)


# -- recording it


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Raw]:
    host, port = address.rsplit(":", 1)
    async with await anyio.connect_tcp(host, int(port)) as stream:
        yield Raw(stream)


async def _record(release: str, plain: str, sasl: str) -> None:
    served = EmbeddedCluster(version=".".join(release.split(".")[:2])).served_versions
    async with _connected(plain) as admin, _connected(sasl) as user:
        await user.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert (await user.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 0)).error_code == 0
        await create_topics(admin, served)
        recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        recorded[release] = await tell(admin, user, served)
    told = {
        each: ",\n".join(f"  {json.dumps(name)}: {json.dumps(codes)}" for name, codes in answers.items())
        for each, answers in sorted(recorded.items())
    }
    lines = [f' "{each}": {{\n{text}\n }}' for each, text in told.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    run: Callable[..., Any] = anyio.run
    run(_record, *sys.argv[1:])
