"""Requests in every version: what is asked, by name or by id, and what an answer says."""

from __future__ import annotations

from uuid import UUID

import pytest

from pykafka08.consumer.actions import Aborted, FetchAsk, FetchedPartition, ListedOffset, OffsetAsk, SendFetch
from pykafka08.consumer.requests import FetchCall, ListOffsetsCall
from pykafka08.consumer.session import FetchSession
from pykafka08.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pykafka08.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

A0, A1, C0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("c", 0)
ID_A, ID_C = UUID(int=1), UUID(int=2)


def broker(fetch: int = 18, list_offsets: int = 11) -> BrokerVersions:
    return BrokerVersions({1: VersionRange(0, fetch), 2: VersionRange(0, list_offsets)}, "test")


def fetch_of(*, with_ids: bool) -> SendFetch:
    asks = (
        FetchAsk(A0, 5, 100, leader_epoch=3, topic_id=ID_A if with_ids else None, last_epoch=2),
        FetchAsk(C0, 6, 200, leader_epoch=4, topic_id=ID_C if with_ids else None),
        FetchAsk(A1, 7, 300, leader_epoch=5, topic_id=ID_A if with_ids else None),
    )
    return SendFetch(1, asks, 1000, 0.25)


@pytest.mark.parametrize("version", range(19))
def test_a_fetch_in_every_version(version: int) -> None:
    call = FetchCall(fetch_of(with_ids=True), FetchSession(), min_bytes=1, is_committed_only=True, rack="r1")
    request = call(broker(version))
    assert call.is_capped == (version >= 3)
    seen = FetchRequest.decode(request.encode(version), version)
    assert (seen.max_wait_ms, seen.min_bytes) == (250, 1)
    assert seen.replica_id == -1
    if version >= 15:
        assert seen.replica_state.replica_id == -1
    if version >= 3:
        assert seen.max_bytes == 1000
    assert seen.isolation_level == (1 if version >= 4 else 0)
    assert (seen.session_id, seen.session_epoch) == (0, 0 if version >= 7 else -1)
    assert seen.rack_id == ("r1" if version >= 11 else "")
    names = [topic.topic_id if version >= 13 else topic.topic for topic in seen.topics]
    assert names == ([ID_A, ID_C, ID_A] if version >= 13 else ["a", "c", "a"])
    asked = [
        (each.partition, each.fetch_offset, each.partition_max_bytes)
        for topic in seen.topics
        for each in topic.partitions
    ]
    assert asked == [(0, 5, 100), (0, 6, 200), (1, 7, 300)]
    if version >= 9:
        assert [each.current_leader_epoch for topic in seen.topics for each in topic.partitions] == [3, 4, 5]
    epochs = [each.last_fetched_epoch for topic in seen.topics for each in topic.partitions]
    assert epochs == ([2, -1, -1] if version >= 12 else [-1, -1, -1])


def test_topics_without_ids_are_fetched_by_name() -> None:
    call = FetchCall(fetch_of(with_ids=False), FetchSession(), min_bytes=1, is_committed_only=False)
    request = call(broker())
    assert type(request).versions.max == 12
    assert broker().pick(type(request)) == 12
    assert [topic.topic for topic in FetchRequest.decode(request.encode(12), 12).topics] == ["a", "c", "a"]


@pytest.mark.parametrize("version", [0, 4, 12, 13, 18])
def test_what_a_fetch_brought(version: int) -> None:
    call = FetchCall(fetch_of(with_ids=True), FetchSession(), min_bytes=1, is_committed_only=True)
    call(broker(version))
    aborted = [AbortedTransaction(producer_id=9, first_offset=4)] if version >= 4 else None
    answer = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="a",
                topic_id=ID_A,
                partitions=[
                    PartitionData(partition_index=0, high_watermark=9, records=b"xyz", aborted_transactions=aborted),
                    PartitionData(partition_index=1, error_code=6, high_watermark=-1),
                ],
            ),
            FetchableTopicResponse(
                topic="c", topic_id=ID_C, partitions=[PartitionData(partition_index=0, records=b"")]
            ),
        ]
    )
    first, second, third = call.read(FetchResponse.decode(answer.encode(version), version))
    assert first.records is not None
    assert (first.tp, first.error_code, bytes(first.records)) == (A0, 0, b"xyz")
    assert first.aborted == ((Aborted(4, 9),) if version >= 4 else ())
    assert (second.tp, second.error_code, second.records) == (A1, 6, None)
    assert (third.tp, third.error_code) == (C0, 0)


def test_an_error_of_the_whole_fetch_is_every_partitions() -> None:
    call = FetchCall(fetch_of(with_ids=True), FetchSession(), min_bytes=1, is_committed_only=False)
    call(broker())
    answers = call.read(FetchResponse(error_code=70))
    assert answers == [FetchedPartition(A0, 70), FetchedPartition(C0, 70), FetchedPartition(A1, 70)]


@pytest.mark.parametrize("version", range(12))
def test_a_look_up_in_every_version(version: int) -> None:
    asks = [OffsetAsk(A1, -1, leader_epoch=5), OffsetAsk(C0, -2), OffsetAsk(A0, 1500)]
    call = ListOffsetsCall(asks, is_committed_only=True, timeout=1.5)
    seen = ListOffsetsRequest.decode(call(broker(list_offsets=version)).encode(version), version)
    assert seen.replica_id == -1
    assert seen.isolation_level == (1 if version >= 2 else 0)
    asked = [(topic.name, each.partition_index, each.timestamp) for topic in seen.topics for each in topic.partitions]
    assert asked == [("a", 0, 1500), ("a", 1, -1), ("c", 0, -2)]
    assert call.is_by_segment == (version == 0)
    partition = (
        ListOffsetsPartitionResponse(partition_index=1, old_style_offsets=[8, 3])
        if version == 0
        else ListOffsetsPartitionResponse(partition_index=1, offset=8, timestamp=77)
    )
    empty = ListOffsetsPartitionResponse(partition_index=0)
    answer = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[empty, partition])])
    listed = call.read(ListOffsetsResponse.decode(answer.encode(version), version))
    assert listed == [ListedOffset(A0, 0, -1, -1), ListedOffset(A1, 0, 8, -1 if version == 0 else 77)]
