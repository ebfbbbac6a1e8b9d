"""Produce: appends record batches; with acks=0 there is no answer, and an error closes the connection.

Source: ``KafkaApis`` and ``ReplicaManager`` at each tag for acks; KIP-1 (acks above 1), KIP-951 (the new leader in the
answer), KIP-890 (transactions are checked, and from v12 on joined by their first batch).  What happens to the bytes is
in ``broker.append``.
"""

from __future__ import annotations

from functools import partial

from pykafka08.acl_operations import AclResourceType
from pykafka08.broker.append import AppendResult, append
from pykafka08.broker.call import Call, CloseConnection, Reply, answered_later
from pykafka08.broker.handlers import handles
from pykafka08.broker.state import Partition, Topic
from pykafka08.broker.transaction import Identity
from pykafka08.broker.transactions import as_told
from pykafka08.error_codes import ErrorCode
from pykafka08.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from pykafka08.wire import Buffer

__all__ = ["produce"]

TOPIC_ID_VERSION = 13
NEW_LEADER_VERSION = 10
ABORTABLE_VERSION = 11
JOINS_TRANSACTION_VERSION = 12
NEVER = 1 << 15
ALL_IN_SYNC = -1
SINCE_ID_IS_CHECKED_ONCE = (2, 8)
MAGIC_AT, PRODUCER_ID_AT, PRODUCER_ID_END = 16, 43, 51  # in the header of a record batch


@handles(ProduceRequest)
def produce(call: Call, request: ProduceRequest) -> Reply:
    response = ProduceResponse()
    waits_for_acks = False
    refusal = _request_refusal(call, request)
    for data in request.topic_data:
        if call.version >= TOPIC_ID_VERSION:
            topic, unknown = call.cluster.topics.find_id(data.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
            name = topic.name if topic else ""
        else:
            topic, unknown = call.cluster.topics.find(data.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            name = data.name
        answers = []
        for each in data.partition_data:
            if refusal:
                partition, result = None, AppendResult(refusal)
            else:
                partition, result = _append(call, request, topic, name, each)
            if topic is None and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                result = result._replace(error_code=unknown)
            if partition is not None and request.acks > len(partition.isr):
                waits_for_acks = True
                result = result._replace(error_code=ErrorCode.REQUEST_TIMED_OUT)
            answers.append(_answer(call, each, result, partition))
        response.responses.append(TopicProduceResponse(name=name, topic_id=data.topic_id, partition_responses=answers))
    call.cluster.log_manager.bound_memory()
    if request.acks == 0:
        _close_on_error(response)
        return None
    _add_new_leaders(call, request, response)
    if waits_for_acks:
        return answered_later(call, request.timeout_ms / 1000, lambda: response)[0]
    return response


def _request_refusal(call: Call, request: ProduceRequest) -> int:
    """The code of all partitions: records in a transaction, or with a producer id, need rights beside the topic's."""
    if request.transactional_id is not None:
        return call.denied(AclResourceType.TRANSACTIONAL_ID, request.transactional_id)
    if call.personality < SINCE_ID_IS_CHECKED_ONCE and any(
        _has_producer_id(each.records) for data in request.topic_data for each in data.partition_data
    ):
        return call.denied(AclResourceType.CLUSTER)
    return ErrorCode.NONE


def _has_producer_id(records: Buffer | None) -> bool:
    if records is None or len(records) < PRODUCER_ID_END or records[MAGIC_AT] < 2:
        return False
    return int.from_bytes(records[PRODUCER_ID_AT:PRODUCER_ID_END], "big", signed=True) >= 0


def _append(
    call: Call, request: ProduceRequest, topic: Topic | None, name: str, data: PartitionProduceData
) -> tuple[Partition | None, AppendResult]:
    partition, code = call.led_partition(topic, name, data.index)
    if partition is None:
        return None, AppendResult(code)
    refusal = _refusal(call, request.acks, partition)
    if refusal:
        return None, AppendResult(refusal)
    result = append(
        partition,
        data.records,
        call.personality,
        version=call.version,
        now_ms=call.cluster.now_ms(),
        admission=partial(_admission, call, request.transactional_id, (name, data.index)),
    )
    code = call.scripted_error_after(name, data.index)
    return partition, result._replace(error_code=code, base_offset=-1) if code else result


def _admission(
    call: Call, transactional_id: str | None, partition: tuple[str, int], producer_id: int, epoch: int
) -> int:
    """May the producer write to the partition in its transaction?  Before 3.6 nobody asked."""
    transactions, identity = call.cluster.transactions, Identity(producer_id, epoch)
    if not transactional_id:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if call.version >= JOINS_TRANSACTION_VERSION:
        code = transactions.add(transactional_id, identity, partitions=[partition], is_v2=True)
    elif call.personality.verifies_transactions:
        code = transactions.verify(transactional_id, identity, partition=partition)
    else:
        return ErrorCode.NONE
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and call.version < JOINS_TRANSACTION_VERSION:
        return ErrorCode.NOT_ENOUGH_REPLICAS  # retriable to old clients
    return as_told(code, call.version, fenced=NEVER, abortable=ABORTABLE_VERSION)


def _refusal(call: Call, acks: int, partition: Partition) -> ErrorCode:
    """0.8 takes any number of acks and waits for that many replicas; later brokers take -1, 0 and 1."""
    if acks not in (-1, 0, 1) and call.personality >= (0, 9):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if acks == ALL_IN_SYNC and len(partition.isr) < partition.topic.min_insync_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def _answer(
    call: Call, data: PartitionProduceData, result: AppendResult, partition: Partition | None
) -> PartitionProduceResponse:
    is_good = result.error_code == ErrorCode.NONE
    return PartitionProduceResponse(
        index=data.index,
        error_code=result.error_code,
        base_offset=result.base_offset,
        log_append_time_ms=result.log_append_time_ms,
        log_start_offset=partition.log.start_offset if is_good and partition is not None else -1,
        error_message=result.message,
    )


def _close_on_error(response: ProduceResponse) -> None:
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                raise CloseConnection(
                    f"acks=0 to {topic.name}-{answer.index}: {ErrorCode.of(answer.error_code)!r}, nobody to tell"
                )


def _add_new_leaders(call: Call, request: ProduceRequest, response: ProduceResponse) -> None:
    """Tell clients of v10 and later who leads now, where this broker does not."""
    if call.version < NEW_LEADER_VERSION:
        return
    leaders = set()
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            found = call.cluster.topics.find(topic.name)
            if found is not None and answer.index < len(found.partitions):
                partition = found.partitions[answer.index]
                answer.current_leader = LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
                leaders.add(partition.leader)
    response.node_endpoints = [
        NodeEndpoint(node_id=node.node_id, host=endpoint.host, port=endpoint.port)
        for node, endpoint in call.live_endpoints()
        if node.node_id in leaders
    ]
