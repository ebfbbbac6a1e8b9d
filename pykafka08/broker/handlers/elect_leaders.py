"""ElectLeaders: preferred leaders, or any replica where a partition has no leader.  Source: KIP-183, KIP-460."""

from __future__ import annotations

from collections.abc import Sequence

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.call import Call, Reply, controller_error
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import NO_LEADER
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

__all__ = ["elect_leaders"]

PREFERRED, UNCLEAN = 0, 1
RESPONSE_ERROR_VERSION = 1


@handles(ElectLeadersRequest)
def elect_leaders(call: Call, request: ElectLeadersRequest) -> Reply:
    topics = call.cluster.topics
    asked: Sequence[tuple[str, Sequence[int]]]
    if request.topic_partitions is None:
        asked = [(topic.name, range(len(topic.partitions))) for topic in topics]
    else:
        asked = [(each.topic, each.partitions) for each in request.topic_partitions]
    refused = call.scripted_error() or call.denied(AclResourceType.CLUSTER) or controller_error(call)
    kind = request.election_type if call.version >= RESPONSE_ERROR_VERSION else PREFERRED
    reason = None
    if not refused and kind not in (PREFERRED, UNCLEAN):
        refused, reason = ErrorCode.INVALID_REQUEST, f"election type {kind} is not known"
    results = []
    for name, indexes in asked:
        partitions = []
        for index in indexes:
            code, text = (refused, reason) if refused else _elect(call, kind, name, index)
            if request.topic_partitions is not None or code != ErrorCode.ELECTION_NOT_NEEDED:
                partitions.append(PartitionResult(partition_id=index, error_code=code, error_message=text))
        if partitions:
            results.append(ReplicaElectionResult(topic=name, partition_result=partitions))
    response = ElectLeadersResponse(replica_election_results=results)
    if call.version >= RESPONSE_ERROR_VERSION:
        response.error_code = refused
    return response


def _elect(call: Call, kind: int, name: str, index: int) -> tuple[int, str | None]:
    partition = call.cluster.topics.find_partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {name!r:.300}"
    preferred = partition.replicas[0] if partition.replicas else NO_LEADER
    is_led = partition.leader != NO_LEADER
    if (kind == UNCLEAN and is_led) or (kind == PREFERRED and is_led and partition.leader == preferred):
        return ErrorCode.ELECTION_NOT_NEEDED, "the partition needs no election"
    if kind == PREFERRED and preferred not in partition.isr:
        text = f"the preferred leader {preferred} of {name}-{index} is not in sync"
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, text
    live = set(call.cluster.live_node_ids())
    candidates = [preferred] if kind == PREFERRED else [node for node in partition.replicas if node in live]
    if not candidates:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica of {name}-{index} is running"
    partition.lead(candidates[0])
    return ErrorCode.NONE, None
