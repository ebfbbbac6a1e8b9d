"""Operations that Kafka's access control lists allow, and the operations that each API needs.

Numbers are those of the protocol.  Source: Kafka's documentation, "Operations and resources on protocols", and
``KafkaApis`` at each tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from pykafka08.error_codes import ErrorCode

__all__ = [
    "CLUSTER_NAME",
    "OPERATIONS",
    "REFUSALS",
    "SUPPORTED_OPERATIONS",
    "AclOperation",
    "AclResourceType",
]

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class AclResourceType(IntEnum):
    """Types of resources that have access control lists."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclOperation(IntEnum):
    """Operations on resources."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


REFUSALS: Mapping[AclResourceType, ErrorCode] = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error code of a refused operation, by the type of the resource."""

_TOPIC, _GROUP, _CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
_TRANSACTIONAL_ID, _TOKEN, _USER = (
    AclResourceType.TRANSACTIONAL_ID,
    AclResourceType.DELEGATION_TOKEN,
    AclResourceType.USER,
)
_Op = AclOperation

OPERATIONS: Mapping[str, Mapping[AclResourceType, AclOperation]] = {
    "Produce": {_TOPIC: _Op.WRITE, _TRANSACTIONAL_ID: _Op.WRITE, _CLUSTER: _Op.IDEMPOTENT_WRITE},
    "Fetch": {_TOPIC: _Op.READ, _CLUSTER: _Op.CLUSTER_ACTION},
    "ListOffsets": {_TOPIC: _Op.DESCRIBE},
    "Metadata": {_TOPIC: _Op.DESCRIBE, _CLUSTER: _Op.DESCRIBE},
    "OffsetCommit": {_GROUP: _Op.READ, _TOPIC: _Op.READ},
    "OffsetFetch": {_GROUP: _Op.DESCRIBE, _TOPIC: _Op.DESCRIBE},
    "FindCoordinator": {_GROUP: _Op.DESCRIBE, _TRANSACTIONAL_ID: _Op.DESCRIBE},
    "JoinGroup": {_GROUP: _Op.READ},
    "Heartbeat": {_GROUP: _Op.READ},
    "LeaveGroup": {_GROUP: _Op.READ},
    "SyncGroup": {_GROUP: _Op.READ},
    "DescribeGroups": {_GROUP: _Op.DESCRIBE},
    "ListGroups": {_CLUSTER: _Op.DESCRIBE, _GROUP: _Op.DESCRIBE},
    "CreateTopics": {_TOPIC: _Op.CREATE, _CLUSTER: _Op.CREATE},
    "DeleteTopics": {_TOPIC: _Op.DELETE},
    "DeleteRecords": {_TOPIC: _Op.DELETE},
    "InitProducerId": {_TRANSACTIONAL_ID: _Op.WRITE, _CLUSTER: _Op.IDEMPOTENT_WRITE},
    "OffsetForLeaderEpoch": {_TOPIC: _Op.DESCRIBE, _CLUSTER: _Op.CLUSTER_ACTION},
    "AddPartitionsToTxn": {_TRANSACTIONAL_ID: _Op.WRITE, _TOPIC: _Op.WRITE, _CLUSTER: _Op.CLUSTER_ACTION},
    "AddOffsetsToTxn": {_TRANSACTIONAL_ID: _Op.WRITE, _GROUP: _Op.READ},
    "EndTxn": {_TRANSACTIONAL_ID: _Op.WRITE},
    "WriteTxnMarkers": {_CLUSTER: _Op.CLUSTER_ACTION},
    "TxnOffsetCommit": {_TRANSACTIONAL_ID: _Op.WRITE, _GROUP: _Op.READ, _TOPIC: _Op.READ},
    "DescribeAcls": {_CLUSTER: _Op.DESCRIBE},
    "CreateAcls": {_CLUSTER: _Op.ALTER},
    "DeleteAcls": {_CLUSTER: _Op.ALTER},
    "DescribeConfigs": {
        _TOPIC: _Op.DESCRIBE_CONFIGS,
        _CLUSTER: _Op.DESCRIBE_CONFIGS,
        _GROUP: _Op.DESCRIBE_CONFIGS,
    },
    "AlterConfigs": {_TOPIC: _Op.ALTER_CONFIGS, _CLUSTER: _Op.ALTER_CONFIGS, _GROUP: _Op.ALTER_CONFIGS},
    "AlterReplicaLogDirs": {_CLUSTER: _Op.ALTER},
    "DescribeLogDirs": {_CLUSTER: _Op.DESCRIBE},
    "CreatePartitions": {_TOPIC: _Op.ALTER},
    "CreateDelegationToken": {_TOKEN: _Op.CREATE_TOKENS, _USER: _Op.CREATE_TOKENS},
    "RenewDelegationToken": {_TOKEN: _Op.ALTER},
    "ExpireDelegationToken": {_TOKEN: _Op.ALTER},
    "DescribeDelegationToken": {_TOKEN: _Op.DESCRIBE, _USER: _Op.DESCRIBE_TOKENS},
    "DeleteGroups": {_GROUP: _Op.DELETE},
    "ElectLeaders": {_CLUSTER: _Op.ALTER},
    "IncrementalAlterConfigs": {_TOPIC: _Op.ALTER_CONFIGS, _CLUSTER: _Op.ALTER_CONFIGS, _GROUP: _Op.ALTER_CONFIGS},
    "AlterPartitionReassignments": {_CLUSTER: _Op.ALTER},
    "ListPartitionReassignments": {_CLUSTER: _Op.DESCRIBE},
    "OffsetDelete": {_GROUP: _Op.DELETE, _TOPIC: _Op.READ},
    "DescribeClientQuotas": {_CLUSTER: _Op.DESCRIBE_CONFIGS},
    "AlterClientQuotas": {_CLUSTER: _Op.ALTER_CONFIGS},
    "DescribeUserScramCredentials": {_CLUSTER: _Op.DESCRIBE},
    "AlterUserScramCredentials": {_CLUSTER: _Op.ALTER},
    "DescribeQuorum": {_CLUSTER: _Op.DESCRIBE},
    "UpdateFeatures": {_CLUSTER: _Op.ALTER},
    "UnregisterBroker": {_CLUSTER: _Op.ALTER},
    "DescribeProducers": {_TOPIC: _Op.READ},
    "DescribeTransactions": {_TRANSACTIONAL_ID: _Op.DESCRIBE, _TOPIC: _Op.DESCRIBE},
    "ListTransactions": {_TRANSACTIONAL_ID: _Op.DESCRIBE},
    "ConsumerGroupHeartbeat": {_GROUP: _Op.READ, _TOPIC: _Op.DESCRIBE},
    "ConsumerGroupDescribe": {_GROUP: _Op.DESCRIBE, _TOPIC: _Op.DESCRIBE},
    "DescribeTopicPartitions": {_TOPIC: _Op.DESCRIBE},
    "ListConfigResources": {_CLUSTER: _Op.DESCRIBE_CONFIGS},
}
"""The operation that an API needs on each type of resource; an API without an entry needs none."""

SUPPORTED_OPERATIONS: Mapping[AclResourceType, frozenset[AclOperation]] = {
    _TOPIC: frozenset(
        {
            _Op.READ,
            _Op.WRITE,
            _Op.CREATE,
            _Op.DELETE,
            _Op.ALTER,
            _Op.DESCRIBE,
            _Op.DESCRIBE_CONFIGS,
            _Op.ALTER_CONFIGS,
        }
    ),
    _GROUP: frozenset({_Op.READ, _Op.DESCRIBE, _Op.DELETE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS}),
    _CLUSTER: frozenset(
        {
            _Op.CREATE,
            _Op.CLUSTER_ACTION,
            _Op.DESCRIBE_CONFIGS,
            _Op.ALTER_CONFIGS,
            _Op.IDEMPOTENT_WRITE,
            _Op.ALTER,
            _Op.DESCRIBE,
        }
    ),
}
"""The operations that a resource of each type can be asked for, as brokers list them in "authorized operations"."""
