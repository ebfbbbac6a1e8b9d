"""What each release of Kafka serves to clients: which API from which release on, in which versions.

One row an API; each step of a row is a release and what it and its successors serve: the highest version, or a range
where the lowest is not 0.  0.8 and 0.9 cannot be asked: their steps are from their sources.  From 0.10.0 on they are
what the kafka-clients jar of the release's last patch declares for brokers, without versions that were not stable yet.
A real broker may serve less: APIs of KRaft need KRaft, telemetry a receiver, share groups a switch.  Keys 11 and 12 of
0.8.2 are left out: it parses a dialect of its own there and cannot answer.  Kafka 4 advertises Produce 0 and serves 3.
"""

from __future__ import annotations

from pykafka08.protocol.fields import VersionRange
from pykafka08.protocol.messages import ApiKey

__all__ = ["HISTORY", "RELEASES"]

RELEASES = (
    "0.8.0",
    "0.8.1",
    "0.8.2",
    "0.9.0",
    "0.10.0",
    "0.10.1",
    "0.10.2",
    "0.11.0",
    "1.0",
    "1.1",
    "2.0",
    "2.1",
    "2.2",
    "2.3",
    "2.4",
    "2.5",
    "2.6",
    "2.7",
    "2.8",
    "3.0",
    "3.1",
    "3.2",
    "3.3",
    "3.4",
    "3.5",
    "3.6",
    "3.7",
    "3.8",
    "3.9",
    "4.0",
    "4.1",
    "4.2",
    "4.3",
)
"""Oldest first."""

_ROWS = {
    ApiKey.PRODUCE: (
        "0.8.0 0, 0.9.0 1, 0.10.0 2, 0.11.0 3, 1.0 5, 2.0 6, 2.1 7, 2.4 8, 2.8 9, 3.7 10, 3.8 11, 4.0 3-12, 4.1 3-13"
    ),
    ApiKey.FETCH: (
        "0.8.0 0, 0.9.0 1, 0.10.0 2, 0.10.1 3, 0.11.0 5, 1.0 6, 1.1 7, 2.0 8, 2.1 10, 2.3 11, 2.7 "
        "12, 3.1 13, 3.5 15, 3.7 16, 3.9 17, 4.0 4-17, 4.1 4-18"
    ),
    ApiKey.LIST_OFFSETS: (
        "0.8.0 0, 0.10.1 1, 0.11.0 2, 2.0 3, 2.1 4, 2.2 5, 2.8 6, 3.0 7, 3.5 8, 3.9 9, 4.0 1-10, 4.2 1-11"
    ),
    ApiKey.METADATA: (
        "0.8.0 0, 0.10.0 1, 0.10.1 2, 0.11.0 4, 1.0 5, 2.0 6, 2.1 7, 2.3 8, 2.4 9, 2.8 11, 3.1 12, 4.0 13"
    ),
    ApiKey.OFFSET_COMMIT: ("0.8.1 0, 0.8.2 1, 0.9.0 2, 0.11.0 3, 2.0 4, 2.1 6, 2.3 7, 2.4 8, 3.7 9, 4.0 2-9, 4.2 2-10"),
    ApiKey.OFFSET_FETCH: (
        "0.8.1 0, 0.8.2 1, 0.10.2 2, 0.11.0 3, 2.0 4, 2.1 5, 2.4 6, 2.5 7, 3.0 8, 3.7 9, 4.0 1-9, 4.2 1-10"
    ),
    ApiKey.FIND_COORDINATOR: "0.8.2 0, 0.11.0 1, 2.0 2, 2.4 3, 3.0 4, 3.8 5, 3.9 6",
    ApiKey.JOIN_GROUP: "0.9.0 0, 0.10.1 1, 0.11.0 2, 2.0 3, 2.2 4, 2.3 5, 2.4 6, 2.5 7, 3.2 9",
    ApiKey.HEARTBEAT: "0.9.0 0, 0.11.0 1, 2.0 2, 2.3 3, 2.4 4",
    ApiKey.LEAVE_GROUP: "0.9.0 0, 0.11.0 1, 2.0 2, 2.4 4, 3.2 5",
    ApiKey.SYNC_GROUP: "0.9.0 0, 0.11.0 1, 2.0 2, 2.3 3, 2.4 4, 2.5 5",
    ApiKey.DESCRIBE_GROUPS: "0.9.0 0, 0.11.0 1, 2.0 2, 2.3 3, 2.4 5, 4.0 6",
    ApiKey.LIST_GROUPS: "0.9.0 0, 0.11.0 1, 2.0 2, 2.4 3, 2.6 4, 3.8 5",
    ApiKey.SASL_HANDSHAKE: "0.10.0 0, 1.0 1",
    ApiKey.API_VERSIONS: "0.10.0 0, 0.11.0 1, 2.0 2, 2.4 3, 3.9 4",
    ApiKey.CREATE_TOPICS: "0.10.1 0, 0.10.2 1, 0.11.0 2, 2.0 3, 2.4 5, 2.7 6, 2.8 7, 4.0 2-7",
    ApiKey.DELETE_TOPICS: "0.10.1 0, 0.11.0 1, 2.0 2, 2.1 3, 2.4 4, 2.7 5, 2.8 6, 4.0 1-6",
    ApiKey.DELETE_RECORDS: "0.11.0 0, 2.0 1, 2.6 2",
    ApiKey.INIT_PRODUCER_ID: "0.11.0 0, 2.0 1, 2.4 2, 2.5 3, 2.7 4, 3.8 5",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "0.11.0 0, 2.0 1, 2.1 2, 2.3 3, 2.8 4, 4.0 2-4",
    ApiKey.ADD_PARTITIONS_TO_TXN: "0.11.0 0, 2.0 1, 2.7 2, 2.8 3, 3.6 4, 3.8 5",
    ApiKey.ADD_OFFSETS_TO_TXN: "0.11.0 0, 2.0 1, 2.7 2, 2.8 3, 3.8 4",
    ApiKey.END_TXN: "0.11.0 0, 2.0 1, 2.7 2, 2.8 3, 3.8 4, 4.0 5",
    ApiKey.WRITE_TXN_MARKERS: "0.11.0 0, 2.8 1, 4.0 1-1, 4.2 1-2",
    ApiKey.TXN_OFFSET_COMMIT: "0.11.0 0, 2.0 1, 2.1 2, 2.5 3, 3.8 4, 4.0 5",
    ApiKey.DESCRIBE_ACLS: "0.11.0 0, 2.0 1, 2.5 2, 3.3 3, 4.0 1-3",
    ApiKey.CREATE_ACLS: "0.11.0 0, 2.0 1, 2.5 2, 3.3 3, 4.0 1-3",
    ApiKey.DELETE_ACLS: "0.11.0 0, 2.0 1, 2.5 2, 3.3 3, 4.0 1-3",
    ApiKey.DESCRIBE_CONFIGS: "0.11.0 0, 1.1 1, 2.0 2, 2.6 3, 2.8 4, 4.0 1-4",
    ApiKey.ALTER_CONFIGS: "0.11.0 0, 2.0 1, 2.8 2",
    ApiKey.ALTER_REPLICA_LOG_DIRS: "1.0 0, 2.0 1, 2.8 2, 4.0 1-2",
    ApiKey.DESCRIBE_LOG_DIRS: "1.0 0, 2.0 1, 2.6 2, 3.2 3, 3.3 4, 4.0 1-4, 4.3 1-5",
    ApiKey.SASL_AUTHENTICATE: "1.0 0, 2.2 1, 2.5 2",
    ApiKey.CREATE_PARTITIONS: "1.0 0, 2.0 1, 2.5 2, 2.7 3",
    ApiKey.CREATE_DELEGATION_TOKEN: "1.1 0, 2.0 1, 2.4 2, 3.3 3, 4.0 1-3",
    ApiKey.RENEW_DELEGATION_TOKEN: "1.1 0, 2.0 1, 2.5 2, 4.0 1-2",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "1.1 0, 2.0 1, 2.5 2, 4.0 1-2",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "1.1 0, 2.0 1, 2.5 2, 3.3 3, 4.0 1-3",
    ApiKey.DELETE_GROUPS: "1.1 0, 2.0 1, 2.4 2",
    ApiKey.ELECT_LEADERS: "2.2 0, 2.4 2",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "2.3 0, 2.4 1",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "2.4 0, 4.1 1",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "2.4 0",
    ApiKey.OFFSET_DELETE: "2.4 0",
    ApiKey.DESCRIBE_CLIENT_QUOTAS: "2.6 0, 2.8 1",
    ApiKey.ALTER_CLIENT_QUOTAS: "2.6 0, 2.8 1",
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: "2.7 0",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "2.7 0",
    ApiKey.DESCRIBE_QUORUM: "2.7 0, 3.3 1, 3.9 2",
    ApiKey.UPDATE_FEATURES: "2.7 0, 3.3 1, 4.0 2",
    ApiKey.DESCRIBE_CLUSTER: "2.8 0, 3.7 1, 4.0 2",
    ApiKey.DESCRIBE_PRODUCERS: "2.8 0",
    ApiKey.UNREGISTER_BROKER: "3.3 0",
    ApiKey.DESCRIBE_TRANSACTIONS: "3.0 0",
    ApiKey.LIST_TRANSACTIONS: "3.0 0, 3.8 1, 4.1 2",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "3.7 0, 4.0 1",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "3.8 0, 4.0 1",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "3.7 0",
    ApiKey.PUSH_TELEMETRY: "3.7 0",
    ApiKey.LIST_CONFIG_RESOURCES: "3.7 0, 4.1 1",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "3.8 0",
    ApiKey.SHARE_GROUP_HEARTBEAT: "4.1 1-1",
    ApiKey.SHARE_GROUP_DESCRIBE: "4.1 1-1",
    ApiKey.SHARE_FETCH: "4.1 1-1, 4.2 1-2",
    ApiKey.SHARE_ACKNOWLEDGE: "4.1 1-1, 4.2 1-2",
    ApiKey.ADD_RAFT_VOTER: "3.9 0, 4.2 1",
    ApiKey.REMOVE_RAFT_VOTER: "3.9 0",
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "4.1 0",
    ApiKey.READ_SHARE_GROUP_STATE: "4.1 0",
    ApiKey.WRITE_SHARE_GROUP_STATE: "4.1 0, 4.2 1",
    ApiKey.DELETE_SHARE_GROUP_STATE: "4.1 0",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "4.1 0, 4.2 1",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "4.2 0",
    ApiKey.STREAMS_GROUP_DESCRIBE: "4.2 0",
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: "4.1 0, 4.2 1",
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: "4.1 0",
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: "4.1 0",
}


def _steps(row: str) -> tuple[tuple[str, VersionRange], ...]:
    steps = []
    for step in row.split(", "):
        release, versions = step.split(" ")
        steps.append((release, VersionRange.parse(versions if "-" in versions else f"0-{versions}")))
    return tuple(steps)


HISTORY = {key: _steps(row) for key, row in _ROWS.items()}
"""API key to steps of (first release, range), oldest first."""
