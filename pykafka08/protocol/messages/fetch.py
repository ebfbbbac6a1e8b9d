"""Fetch: reads record sets from partitions, waiting for data if there is none (API key 1).

The broker answers when min_bytes are there, when a partition has an error, or after max_wait_ms.  Below version 3 a
record set may end with a part of a message; from 3 on the first batch always comes whole, even if it is larger than
allowed.  Record sets come as they are stored: versions 4 and up can carry magic 0 and 1 too.  A session (version 7 and
up) keeps the partitions on the broker, so that later requests name only what changed; session_epoch -1 does without.

Versions, the first release with each, and what is new in it:

     0  0.8.0   records as magic 0
     1  0.9.0   throttle time, which stands first
     2  0.10.0  records as magic 0 or 1
     3  0.10.1  a limit for the whole response; the order of partitions counts (KIP-74)
     4  0.11.0  magic 2, isolation level, aborted transactions (KIP-98)
     5  0.11.0  log start offset (KIP-107)
     6  1.0     KAFKA_STORAGE_ERROR may come back (KIP-112)
     7  1.1     sessions (KIP-227)
     8  2.0     the answer comes before the throttling, not after it (KIP-219)
     9  2.1     current leader epoch fences stale readers (KIP-320)
    10  2.1     zstd (KIP-110)
    11  2.3     rack, and a preferred replica to read from (KIP-392)
    12  2.7     compact forms, tagged fields (KIP-482); diverging epochs (KIP-595)
    13  3.1     topic ids instead of names (KIP-516)
    14  3.5     OFFSET_MOVED_TO_TIERED_STORAGE may come back (KIP-405)
    15  3.5     replica state instead of replica id (KIP-903)
    16  3.7     new leaders come with the error (KIP-951)
    17  3.9     replica directory id (KIP-853)
    18  4.1     the high watermark a follower knows (KIP-1166)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Buffer,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    records_,
    string,
    struct,
    struct_,
    uuid_,
)

__all__ = [
    "AbortedTransaction",
    "EpochEndOffset",
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchTopic",
    "FetchableTopicResponse",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ReplicaState",
    "SnapshotId",
]


@struct
class ReplicaState(Struct):
    """Who reads, if it is a broker."""

    replica_id: int = int32(versions="15+", default=-1)  # -1 for clients
    replica_epoch: int = int64(versions="15+", default=-1)


@struct
class FetchPartition(Struct):
    """Where to read in one partition."""

    partition: int = int32()
    current_leader_epoch: int = int32(versions="9+", default=-1, ignorable=True)  # -1 if unknown: no fencing
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(versions="12+", default=-1)  # followers only
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)  # followers only
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid_(versions="17+", tag=0, tagged="17+", ignorable=True)  # followers only
    # followers only; the default says unknown
    high_watermark: int = int64(versions="18+", tag=1, tagged="18+", default=9223372036854775807, ignorable=True)


@struct
class FetchTopic(Struct):
    """Where to read in one topic."""

    topic: str = string(versions="0-12", ignorable=True)  # up to version 12, then topic_id
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic(Struct):
    """Partitions that leave the session."""

    topic: str = string(versions="7-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partitions: list[int] = array(int32, versions="7+")


@message(key=1, versions="0-18", flexible="12+")
class FetchRequest(Request["FetchResponse"]):
    """Positions by topic and partition, with what to wait for."""

    # controllers only
    cluster_id: str | None = string(versions="12+", nullable="12+", tag=0, tagged="12+", default=None, ignorable=True)
    replica_id: int = int32(versions="0-14", default=-1)  # -1 for clients
    replica_state: ReplicaState = struct_(ReplicaState, versions="15+", tag=1, tagged="15+")  # brokers only
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(versions="3+", default=2147483647, ignorable=True)  # of the whole response
    isolation_level: int = int8(versions="4+", ignorable=True)  # 0 read uncommitted, 1 read committed
    session_id: int = int32(versions="7+", ignorable=True)  # 0 for none yet
    session_epoch: int = int32(versions="7+", default=-1, ignorable=True)  # 0 opens a session, -1 does without one
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, versions="7+")
    rack_id: str = string(versions="11+", ignorable=True)  # of the reader, to be sent to a replica near by


@struct
class EpochEndOffset(Struct):
    """Where the log of the leader leaves that of a follower."""

    epoch: int = int32(versions="12+", default=-1)
    end_offset: int = int64(versions="12+", default=-1)


@struct
class LeaderIdAndEpoch(Struct):
    """The leader that the broker knows of; -1 if it does not."""

    leader_id: int = int32(versions="12+", default=-1)
    leader_epoch: int = int32(versions="12+", default=-1)


@struct
class SnapshotId(Struct):
    """The snapshot a controller must fetch first."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class AbortedTransaction(Struct):
    """A transaction whose records must be skipped from first_offset up to its abort marker."""

    producer_id: int = int64(versions="4+")
    first_offset: int = int64(versions="4+")


@struct
class PartitionData(Struct):
    """What one partition gave."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()  # the end for ordinary readers
    # the end for readers of committed records; -1 if unknown
    last_stable_offset: int = int64(versions="4+", default=-1, ignorable=True)
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)  # -1 if unknown
    diverging_epoch: EpochEndOffset = struct_(EpochEndOffset, versions="12+", tag=0, tagged="12+")
    # set with errors that say the leader is another
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, versions="12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = struct_(SnapshotId, versions="12+", tag=2, tagged="12+")
    # None for read uncommitted
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, versions="4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32(versions="11+", default=-1)  # -1 for none: go on here
    records: Buffer | None = records_(nullable="0+")  # a view of the frame


@struct
class FetchableTopicResponse(Struct):
    """What one topic gave."""

    topic: str = string(versions="0-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint(Struct):
    """The address of a leader that the response names."""

    node_id: int = int32(versions="16+")
    host: str = string(versions="16+")
    port: int = int32(versions="16+")
    rack: str | None = string(versions="16+", nullable="16+", default=None)


@message(key=1, versions="0-18", flexible="12+")
class FetchResponse(Response):
    """Record sets by topic and partition."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    error_code: int = int16(versions="7+", ignorable=True)  # of the session or the whole request
    session_id: int = int32(versions="7+")  # 0 if there is no session
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    # of the leaders in current_leader
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="16+", tag=0, tagged="16+")
