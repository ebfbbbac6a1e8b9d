"""Fetch and ListOffsets requests as the machine wants them, in the version a broker serves, and their answers.

Fetches are in a session from Fetch 7 on (``session``), and name topics by name before Fetch 13, by id from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from pykafka08.cluster.metadata import Broker, LeaderNews
from pykafka08.consumer.actions import (
    Aborted,
    EpochAsk,
    EpochEnd,
    FetchAsk,
    FetchedPartition,
    FoundEpoch,
    ListedOffset,
    OffsetAsk,
    SendFetch,
)
from pykafka08.consumer.answer_checks import session_fault
from pykafka08.consumer.session import SESSION_ERRORS, FetchSession, SessionStep
from pykafka08.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from pykafka08.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykafka08.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykafka08.protocol.schema import VersionRange
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.record import TopicPartition

__all__ = ["FetchCall", "ListOffsetsCall", "OffsetForLeaderEpochOfConsumer", "ask_epochs", "found_epochs"]

CONSUMER = -1  # where a broker would say its own id
FIRST_WITH_RESPONSE_CAP = 3
FIRST_WITH_ISOLATION = 4
FIRST_WITH_SESSION = 7
FIRST_WITH_RACK = 11
FIRST_WITH_LAST_EPOCH = 12
FIRST_WITH_TOPIC_IDS = 13
FIRST_LISTING_ONE_OFFSET = 1
FIRST_LISTING_WITH_ISOLATION = 2

_topic = attrgetter("tp.topic")
_topic_and_id = attrgetter("tp.topic", "topic_id")


class FetchByName(FetchRequest):
    """Fetch of topics whose ids are not known: a cluster that was upgraded, but not all of it."""

    __slots__ = ()
    versions = VersionRange(FetchRequest.versions.min, FIRST_WITH_TOPIC_IDS - 1)


class FetchCall:
    """One fetch: call it with the broker's versions for the request, then :meth:`read` the answer or :meth:`fail`."""

    __slots__ = ("_fetch", "_is_committed_only", "_min_bytes", "_rack", "_session", "_step", "_version", "is_partial")

    def __init__(
        self, fetch: SendFetch, session: FetchSession, *, min_bytes: int, is_committed_only: bool, rack: str = ""
    ) -> None:
        self._fetch = fetch
        self._session = session
        self._min_bytes = min_bytes
        self._is_committed_only = is_committed_only
        self._rack = rack
        self._version = -1
        self._step: SessionStep | None = None
        self.is_partial = False
        """True if the answer names only the partitions with news."""

    @property
    def is_capped(self) -> bool:
        """True if the broker kept to ``max_bytes``."""
        return self._version >= FIRST_WITH_RESPONSE_CAP

    @property
    def facts(self) -> dict[str, int]:
        """For the log: which request of which session it was, and how many partitions it named."""
        step = self._step
        if step is None:
            return {}
        return {"session_id": step.session_id, "session_epoch": step.epoch, "named": len(step.named)}

    def __call__(self, versions: BrokerVersions) -> FetchRequest:
        asks = self._fetch.asks
        kind = FetchRequest if self._session.have_ids(self._fetch) else FetchByName
        version = self._version = versions.pick(kind)
        request = kind(
            replica_id=CONSUMER,
            max_wait_ms=round(self._fetch.max_wait * 1000),
            min_bytes=self._min_bytes,
            max_bytes=self._fetch.max_bytes,
        )
        if self._is_committed_only and version >= FIRST_WITH_ISOLATION:
            request.isolation_level = 1
        if version >= FIRST_WITH_RACK:
            request.rack_id = self._rack
        if version >= FIRST_WITH_SESSION:
            step = self._step = self._session.step(asks, self._fetch.renewed, uses_ids=version >= FIRST_WITH_TOPIC_IDS)
            request.session_id, request.session_epoch = step.session_id, step.epoch
            request.forgotten_topics_data = [_forgotten(topic, group) for topic, group in _by_topic(step.forgotten)]
            asks = step.named
        # Runs of one topic, in the machine's order, as Java's consumer sends them: brokers answer in this order.
        has_last_epoch = version >= FIRST_WITH_LAST_EPOCH
        request.topics = [_fetch_topic(topic, group, has_last_epoch) for topic, group in _by_topic(asks)]
        return request

    def fail(self) -> None:
        """No answer will come: the session may be lost."""
        self._session.failed()

    def read(self, response: FetchResponse) -> list[FetchedPartition]:
        """The partitions of the answer; an error of the whole fetch is every partition's."""
        step = self._step
        is_incremental = step is not None and step.is_incremental
        # Throttled, a broker may answer a full fetch with nothing (KIP-219).
        self.is_partial = is_incremental or (response.throttle_time_ms > 0 and not response.responses)
        if response.error_code:
            self.fail()
            if is_incremental and response.error_code in SESSION_ERRORS:
                return []
            self.is_partial = False
            return [FetchedPartition(ask.tp, response.error_code) for ask in self._fetch.asks]
        if step is not None:
            fault = session_fault(step.session_id if is_incremental else 0, response.session_id)
            if fault is not None:
                self.fail()
                self.is_partial = False
                return [FetchedPartition(ask.tp, 0, fault=fault) for ask in self._fetch.asks]
            self._session.answered(response.session_id)
        name_of = self._session.name_of
        return [
            _fetched(
                TopicPartition(answer.topic or name_of(answer.topic_id), each.partition_index),
                each,
                is_committed_only=self._is_committed_only,
            )
            for answer in response.responses
            for each in answer.partitions
        ]

    def leaders(self, response: FetchResponse) -> tuple[list[LeaderNews], list[Broker]]:
        """What the answer says of partitions that are led elsewhere by now (v12), and where that is (v16)."""
        name_of = self._session.name_of
        news = [
            LeaderNews(
                answer.topic or name_of(answer.topic_id),
                each.partition_index,
                each.current_leader.leader_id,
                each.current_leader.leader_epoch,
            )
            for answer in response.responses
            for each in answer.partitions
            if each.error_code and each.current_leader.leader_id >= 0
        ]
        brokers = [
            Broker(each.node_id, each.host, each.port, each.rack)
            for each in response.node_endpoints
            if each.node_id >= 0 and each.host and 0 < each.port < 1 << 16
        ]
        return news, brokers


def _by_topic(asks: Iterable[FetchAsk]) -> Iterable[tuple[str, list[FetchAsk]]]:
    return ((topic, list(group)) for (topic, _), group in groupby(asks, key=_topic_and_id))


def _fetch_topic(topic: str, asks: list[FetchAsk], has_last_epoch: bool) -> FetchTopic:
    partitions = [
        FetchPartition(
            partition=ask.tp.partition,
            current_leader_epoch=ask.leader_epoch,
            fetch_offset=ask.offset,
            last_fetched_epoch=ask.last_epoch if has_last_epoch else -1,
            partition_max_bytes=ask.max_bytes,
        )
        for ask in asks
    ]
    topic_id = asks[0].topic_id
    if topic_id is None:
        return FetchTopic(topic=topic, partitions=partitions)
    return FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)


def _forgotten(topic: str, asks: list[FetchAsk]) -> ForgottenTopic:
    partitions = [ask.tp.partition for ask in asks]
    topic_id = asks[0].topic_id
    if topic_id is None:
        return ForgottenTopic(topic=topic, partitions=partitions)
    return ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)


def _fetched(tp: TopicPartition, each: PartitionData, *, is_committed_only: bool) -> FetchedPartition:
    aborted = tuple(Aborted(one.first_offset, one.producer_id) for one in each.aborted_transactions or ())
    diverging = each.diverging_epoch
    return FetchedPartition(
        tp,
        each.error_code,
        each.records,
        aborted,
        each.preferred_read_replica,
        EpochEnd(diverging.epoch, diverging.end_offset) if diverging.end_offset != -1 else None,
        each.last_stable_offset if is_committed_only and each.last_stable_offset >= 0 else each.high_watermark,
    )


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


class OffsetForLeaderEpochOfConsumer(OffsetForLeaderEpochRequest):
    """As brokers answer it to consumers: before version 3 (Kafka 2.3) it takes the rights of a broker."""

    __slots__ = ()
    versions = VersionRange(3, OffsetForLeaderEpochRequest.versions.max)


def ask_epochs(asks: Iterable[EpochAsk]) -> OffsetForLeaderEpochRequest:
    """Where the epochs end, by the partitions' leader."""
    request = OffsetForLeaderEpochOfConsumer(replica_id=CONSUMER)
    for topic, group in groupby(sorted(asks), key=_topic):
        partitions = [
            OffsetForLeaderPartition(
                partition=ask.tp.partition, current_leader_epoch=ask.leader_epoch, leader_epoch=ask.last_epoch
            )
            for ask in group
        ]
        request.topics.append(OffsetForLeaderTopic(topic=topic, partitions=partitions))
    return request


def found_epochs(response: OffsetForLeaderEpochResponse) -> list[FoundEpoch]:
    """The partitions of the answer."""
    return [
        FoundEpoch(
            TopicPartition(topic.topic, each.partition), each.error_code, EpochEnd(each.leader_epoch, each.end_offset)
        )
        for topic in response.topics
        for each in topic.partitions
    ]
