"""Answers to transactional requests, valid and impossible."""

from __future__ import annotations

from typing import Any

import pytest

from pykafka08.error_codes import ErrorCode
from pykafka08.errors import RemoteProtocolError
from pykafka08.group.metadata import GroupMetadata
from pykafka08.group.requests import OffsetAndMetadata
from pykafka08.producer.sequences import Identity
from pykafka08.producer.transactions.actions import (
    AddOffsets,
    AddPartitions,
    Call,
    CommitOffsets,
    EndTransaction,
    FindCoordinator,
    InitProducer,
    KeyType,
    OffsetsOrder,
)
from pykafka08.producer.transactions.requests import TransactionRequests
from pykafka08.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from pykafka08.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from pykafka08.protocol.messages.end_txn import EndTxnResponse
from pykafka08.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from pykafka08.protocol.messages.init_producer_id import InitProducerIdResponse
from pykafka08.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pykafka08.records.record import TopicPartition

REQUESTS = TransactionRequests("the-id", 60_000)
OWN = Identity(7, 3)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIND = FindCoordinator(KeyType.TRANSACTION, "the-id")
FIND_GROUP = FindCoordinator(KeyType.GROUP, "g")
INIT, FIRST_INIT = InitProducer(1, OWN), InitProducer(1, None)
ADD = AddPartitions(1, OWN, (T0, T1))
OFFSETS = CommitOffsets(
    1, OWN, OffsetsOrder(GroupMetadata("g"), {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)}), True
)
END, END_V2 = EndTransaction(1, OWN, True, False), EndTransaction(1, OWN, True, True)


def coordinators(*found: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(coordinators=list(found))


def coordinator(key: str = "the-id", node_id: int = 3, host: str = "h") -> Coordinator:
    return Coordinator(key=key, node_id=node_id, host=host, port=9092)


def added(codes: dict[int, int], topic: str = "t") -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=codes[each]) for each in codes
    ]
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult(name=topic, results_by_partition=results)]
    )


def committed(codes: dict[int, int], topic: str = "t") -> TxnOffsetCommitResponse:
    results = [TxnOffsetCommitResponsePartition(partition_index=each, error_code=codes[each]) for each in codes]
    return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name=topic, partitions=results)])


def given(kind: type[Any], producer_id: int, epoch: int) -> Any:
    return kind(producer_id=producer_id, producer_epoch=epoch)


@pytest.mark.parametrize(
    ("call", "response"),
    [
        (FIND, FindCoordinatorResponse(node_id=-1, host="h", port=9092)),
        (FIND, FindCoordinatorResponse(node_id=-5, host="h", port=9092)),
        (FIND, FindCoordinatorResponse(node_id=0, host="", port=-1)),
        (FIND, FindCoordinatorResponse()),
        (FIND, coordinators(coordinator(node_id=-1))),
        (FIND, coordinators(coordinator(key="another"))),
        (FIND_GROUP, coordinators(coordinator(key="g", node_id=-1))),
        (FIRST_INIT, given(InitProducerIdResponse, -1, -1)),
        (FIRST_INIT, given(InitProducerIdResponse, -1, 0)),
        (FIRST_INIT, given(InitProducerIdResponse, 7, -1)),
        (FIRST_INIT, given(InitProducerIdResponse, -9, 5)),
        (INIT, given(InitProducerIdResponse, 7, 3)),
        (INIT, given(InitProducerIdResponse, 7, 2)),
        (ADD, AddPartitionsToTxnResponse()),
        (ADD, added({0: 0})),
        (ADD, added({0: 0, 2: 0})),
        (ADD, added({0: 0, 1: 0}, topic="another")),
        (OFFSETS, TxnOffsetCommitResponse()),
        (OFFSETS, committed({0: 0})),
        (END_V2, given(EndTxnResponse, -1, 4)),
        (END_V2, given(EndTxnResponse, 7, -1)),
        (END_V2, given(EndTxnResponse, 7, 3)),
        (END_V2, given(EndTxnResponse, -8, -8)),
    ],
)
def test_impossible_values_are_a_protocol_error(call: Call, response: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="transactional id 'the-id'") as raised:
        REQUESTS.read(call, response, "h:9092 (id 1)")
    assert (raised.value.broker, raised.value.api) == ("h:9092 (id 1)", call.api)


@pytest.mark.parametrize(("call", "response"), [(ADD, added({0: 0})), (OFFSETS, committed({0: 0}))])
def test_a_partition_missing_from_the_answer_is_named(call: Call, response: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="leaves the partition out") as raised:
        REQUESTS.read(call, response, "h:9092")
    assert (raised.value.topic, raised.value.partition) == ("t", 1)


@pytest.mark.parametrize("kind", [added, committed])
def test_an_error_code_counts_if_other_partitions_are_missing(kind: Any) -> None:
    call = ADD if kind is added else OFFSETS
    answer = REQUESTS.read(call, kind({1: ErrorCode.TOPIC_AUTHORIZATION_FAILED}), None)
    assert answer.codes == {T1: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_possible_values_are_accepted() -> None:
    assert REQUESTS.read(FIND, FindCoordinatorResponse(node_id=0, host="h", port=9092), None).node_id == 0
    assert REQUESTS.read(FIND, coordinators(coordinator(key="another"), coordinator()), None).node_id == 3
    refused = FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, node_id=-1)
    assert REQUESTS.read(FIND, refused, None).code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert REQUESTS.read(FIRST_INIT, given(InitProducerIdResponse, 0, 0), None).identity == Identity(0, 0)
    assert REQUESTS.read(INIT, given(InitProducerIdResponse, 7, 4), None).identity == Identity(7, 4)
    assert REQUESTS.read(INIT, given(InitProducerIdResponse, 8, 0), None).identity == Identity(8, 0)
    assert REQUESTS.read(ADD, added({0: 0, 1: 0, 2: 9}), None).codes == {T0: 0, T1: 0}
    assert REQUESTS.read(END, EndTxnResponse(), None).identity is None
    assert REQUESTS.read(END_V2, given(EndTxnResponse, -1, -1), None).identity is None
    assert REQUESTS.read(END_V2, given(EndTxnResponse, 8, 0), None).identity == Identity(8, 0)
    assert REQUESTS.read(AddOffsets(1, OWN, "g"), AddOffsetsToTxnResponse(error_code=3), "b").broker == "b"
