"""Produce: appends record sets to partitions that the broker leads (API key 0).

With acks 0 there is no response frame at all: when an append fails the broker closes the connection, and that is all
one learns.  Brokers before 0.10 take only magic 0, 0.10 magic 0 and 1, versions from 3 on only magic 2.  Kafka 4
advertises versions 0 to 2 and closes the connection on them (KAFKA-18659).

Versions, the first release with each, and what is new in it:

     0  0.8.0
     1  0.9.0   throttle time, which stands last
     2  0.10.0  magic 1 is accepted; log append time (KIP-32)
     3  0.11.0  transactional id; one batch of magic 2 a partition (KIP-98)
     4  1.0     KAFKA_STORAGE_ERROR may come back (KIP-112)
     5  1.0     log start offset in the response
     6  2.0     the answer comes before the throttling, not after it (KIP-219)
     7  2.1     zstd (KIP-110)
     8  2.4     which record was refused and why (KIP-467)
     9  2.8     compact forms, tagged fields (KIP-482)
    10  3.7     new leaders come with the error (KIP-951)
    11  3.8     TRANSACTION_ABORTABLE may come back (KIP-890)
    12  4.0     an append can add its partition to the transaction (KIP-890)
    13  4.1     topic ids instead of names (KIP-516)
"""

from __future__ import annotations

from uuid import UUID

from pykafka08.protocol.schema import (
    Buffer,
    Request,
    Response,
    Struct,
    array,
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
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
]


@struct
class PartitionProduceData(Struct):
    """The records for one partition."""

    index: int = int32()
    records: Buffer | None = records_(nullable="0+")


@struct
class TopicProduceData(Struct):
    """The records for one topic."""

    name: str = string(versions="0-12", ignorable=True)  # up to version 12, then topic_id
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(key=0, versions="0-13", flexible="9+")
class ProduceRequest(Request["ProduceResponse"]):
    """Record sets by topic and partition."""

    transactional_id: str | None = string(versions="3+", nullable="3+", default=None)  # None outside of transactions
    acks: int = int16()  # 0 none, 1 the leader, -1 all in-sync replicas; 0.8 takes others too
    timeout_ms: int = int32()  # how long the broker may wait for replicas
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage(Struct):
    """A record that made the broker refuse its batch."""

    batch_index: int = int32(versions="8+")  # position of the record in the batch
    batch_index_error_message: str | None = string(versions="8+", nullable="8+", default=None)


@struct
class LeaderIdAndEpoch(Struct):
    """The leader that the broker knows of; -1 if it does not."""

    leader_id: int = int32(versions="10+", default=-1)
    leader_epoch: int = int32(versions="10+", default=-1)


@struct
class PartitionProduceResponse(Struct):
    """What became of the records of one partition."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()  # of the first record; -1 after an error
    # -1 if the records keep the time of their creation
    log_append_time_ms: int = int64(versions="2+", default=-1, ignorable=True)
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)  # -1 if unknown
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, versions="8+", ignorable=True)
    error_message: str | None = string(versions="8+", nullable="8+", default=None, ignorable=True)
    # set with NOT_LEADER_OR_FOLLOWER
    current_leader: LeaderIdAndEpoch = struct_(LeaderIdAndEpoch, versions="10+", tag=0, tagged="10+")


@struct
class TopicProduceResponse(Struct):
    """What became of the records of one topic."""

    name: str = string(versions="0-12", ignorable=True)
    topic_id: UUID = uuid_(versions="13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint(Struct):
    """The address of a leader that the response names."""

    node_id: int = int32(versions="10+")
    host: str = string(versions="10+")
    port: int = int32(versions="10+")
    rack: str | None = string(versions="10+", nullable="10+", default=None)


@message(key=0, versions="0-13", flexible="9+")
class ProduceResponse(Response):
    """Where the records went, by topic and partition."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(versions="1+", ignorable=True)
    # of the leaders in current_leader
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="10+", tag=0, tagged="10+")
