"""Fetch and ListOffsets requests as the machine wants them, in the version a broker serves, and their answers.

Fetches are without a session (KIP-227: session 0, epoch -1).  Topics are named by name before Fetch 13 and by id from
then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from pykafka08.consumer.actions import FetchAsk, FetchedPartition, ListedOffset, OffsetAsk, SendFetch
from pykafka08.consumer.chunk import Aborted
from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from pykafka08.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = ["FetchCall", "ListOffsetsCall"]

CONSUMER = -1  # where a broker would say its own id
FIRST_WITH_RESPONSE_CAP = 3
FIRST_WITH_ISOLATION = 4
FIRST_WITH_TOPIC_IDS = 13
FIRST_LISTING_ONE_OFFSET = 1
FIRST_LISTING_WITH_ISOLATION = 2

_topic = attrgetter("tp.topic")


class FetchByName(FetchRequest):
    """Fetch of topics whose ids are not known: a cluster that was upgraded, but not all of it."""

    __slots__ = ()
    versions = VersionRange(FetchRequest.versions.min, FIRST_WITH_TOPIC_IDS - 1)


class FetchCall:
    """One fetch: call it with the broker's versions for the request, :meth:`read` the answer."""

    __slots__ = ("_fetch", "_is_committed_only", "_min_bytes", "_names", "_version")

    def __init__(self, fetch: SendFetch, *, min_bytes: int, is_committed_only: bool) -> None:
        self._fetch = fetch
        self._min_bytes = min_bytes
        self._is_committed_only = is_committed_only
        self._version = -1
        self._names: dict[UUID, str] = {}

    @property
    def is_capped(self) -> bool:
        """True if the broker kept to ``max_bytes``."""
        return self._version >= FIRST_WITH_RESPONSE_CAP

    def __call__(self, versions: BrokerVersions) -> FetchRequest:
        kind = FetchRequest if all(ask.topic_id is not None for ask in self._fetch.asks) else FetchByName
        self._version = versions.pick(kind)
        request = kind(
            replica_id=CONSUMER,
            max_wait_ms=round(self._fetch.max_wait * 1000),
            min_bytes=self._min_bytes,
            max_bytes=self._fetch.max_bytes,
        )
        if self._is_committed_only and self._version >= FIRST_WITH_ISOLATION:
            request.isolation_level = 1
        # Runs of one topic, in the machine's order, as Java's consumer sends them: brokers answer in this order.
        for topic, asks in groupby(self._fetch.asks, key=_topic):
            request.topics.append(self._fetch_topic(topic, list(asks)))
        return request

    def _fetch_topic(self, topic: str, asks: list[FetchAsk]) -> FetchTopic:
        partitions = [
            FetchPartition(
                partition=ask.tp.partition,
                current_leader_epoch=ask.leader_epoch,
                fetch_offset=ask.offset,
                partition_max_bytes=ask.max_bytes,
            )
            for ask in asks
        ]
        topic_id = asks[0].topic_id
        if topic_id is None:
            return FetchTopic(topic=topic, partitions=partitions)
        self._names[topic_id] = topic
        return FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)

    def read(self, response: FetchResponse) -> list[FetchedPartition]:
        """The partitions of the answer; an error of the whole fetch is every partition's."""
        if response.error_code:
            return [FetchedPartition(ask.tp, response.error_code) for ask in self._fetch.asks]
        return [
            _fetched(TopicPartition(answer.topic or self._names.get(answer.topic_id, ""), each.partition_index), each)
            for answer in response.responses
            for each in answer.partitions
        ]


def _fetched(tp: TopicPartition, each: PartitionData) -> FetchedPartition:
    aborted = tuple(Aborted(one.first_offset, one.producer_id) for one in each.aborted_transactions or ())
    return FetchedPartition(tp, each.error_code, each.records, aborted)


class ListOffsetsCall:
    """One ListOffsets request: call it with the broker's versions for the request, :meth:`read` the answer.

    Version 0 (before 0.10.1) looks up times by the age of segment files: it finds an offset at or before the first
    record of that time, never after it.
    """

    __slots__ = ("_asks", "_is_committed_only", "_timeout", "_version")

    def __init__(self, asks: Iterable[OffsetAsk], *, is_committed_only: bool, timeout: float) -> None:
        self._asks = tuple(asks)
        self._is_committed_only = is_committed_only
        self._timeout = timeout
        self._version = -1

    @property
    def is_by_segment(self) -> bool:
        """True if the broker looked up times by the age of segment files."""
        return self._version < FIRST_LISTING_ONE_OFFSET

    def __call__(self, versions: BrokerVersions) -> ListOffsetsRequest:
        self._version = versions.pick(ListOffsetsRequest)
        request = ListOffsetsRequest(replica_id=CONSUMER, timeout_ms=round(self._timeout * 1000))
        if self._is_committed_only and self._version >= FIRST_LISTING_WITH_ISOLATION:
            request.isolation_level = 1
        for topic, asks in groupby(sorted(self._asks), key=_topic):
            partitions = [
                ListOffsetsPartition(
                    partition_index=ask.tp.partition, current_leader_epoch=ask.leader_epoch, timestamp=ask.timestamp
                )
                for ask in asks
            ]
            request.topics.append(ListOffsetsTopic(name=topic, partitions=partitions))
        return request

    def read(self, response: ListOffsetsResponse) -> list[ListedOffset]:
        """The partitions of the answer."""
        return [
            self._listed(TopicPartition(topic.name, each.partition_index), each)
            for topic in response.topics
            for each in topic.partitions
        ]

    def _listed(self, tp: TopicPartition, each: ListOffsetsPartitionResponse) -> ListedOffset:
        if not self.is_by_segment:
            return ListedOffset(tp, each.error_code, each.offset, each.timestamp)
        offset = each.old_style_offsets[0] if each.old_style_offsets else -1
        return ListedOffset(tp, each.error_code, offset)
