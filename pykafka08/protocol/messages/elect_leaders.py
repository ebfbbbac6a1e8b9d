"""ElectLeaders: lets the controller elect leaders anew (API key 43).

Called ElectPreferredLeaders before 2.4.

Versions, the first release with each, and what is new in it:

     0  2.2     preferred replicas (KIP-183)
     1  2.4     unclean elections; an error for the whole response (KIP-460)
     2  2.4     compact forms, tagged fields (KIP-482)
"""

from __future__ import annotations

from pykafka08.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
)

__all__ = ["ElectLeadersRequest", "ElectLeadersResponse", "PartitionResult", "ReplicaElectionResult", "TopicPartitions"]


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    """Which partitions, and how to elect."""

    election_type: int = int8(versions="1+")  # 0 the preferred replica, 1 any if none is in sync
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")  # None asks for all
    timeout_ms: int = int32(default=60000)


@struct
class PartitionResult(Struct):
    """The result for one partition."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReplicaElectionResult(Struct):
    """The results for one topic."""

    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse(Response):
    """Results by topic and partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16(versions="1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
