"""Fetch requests for ranges of offsets, and what answers say: where each range stands, what is asked next.

Pure: sending, waiting and what follows from errors are the business of ``reading``.  There are no fetch sessions: a
task asks a few times for few partitions, and a worker may be gone at any moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from pykafka08.consumer.actions import Aborted
from pykafka08.consumer.requests import (
    CONSUMER,
    FIRST_WITH_ISOLATION,
    FIRST_WITH_RACK,
    FIRST_WITH_TOPIC_IDS,
    FetchByName,
)
from pykafka08.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from pykafka08.protocol.versions import BrokerVersions
from pykafka08.records.frontier import read_frontier
from pykafka08.records.reader import first_entry_size, only_partial
from pykafka08.spark.ranges import Range
from pykafka08.wire import Buffer

__all__ = ["Asked", "FetchTerms", "Fetched", "Place", "RangeFetch", "pick"]

KIB = 1024
SLACK_BYTES = 64 * KIB
"""Asked for beyond what is left of a range by the average size: batches do not end where ranges do."""
SLACK_RATIO = 1.02


@dataclass(frozen=True)
class FetchTerms:
    """What holds for every partition of a fetch, as the properties of a consumer say it (``kafka.fetch.min.bytes``)."""

    is_committed_only: bool = False
    max_wait_ms: int = 500
    """How long a broker may hold an answer back that has fewer than ``min_bytes``."""
    min_bytes: int = 1
    rack: str = ""
    """Of the reader, to be sent to a replica there (Kafka 2.4)."""


class Place:
    """Where the reading of one range stands.

    ``average`` is what a record of the topic took before, 0 if it is not known; ``position`` the next offset to fetch.
    ``not_before`` and ``progressed_at`` are seconds of the loop's clock.  ``replica`` is the broker that the leader has
    named to read from, None for the leader itself.
    """

    __slots__ = (
        "_bytes",
        "_estimate",
        "_least",
        "_offsets",
        "attempts",
        "not_before",
        "position",
        "progressed_at",
        "range",
        "replica",
    )

    def __init__(self, asked: Range, now: float, average: float = 0.0) -> None:
        self.range = asked
        self.position = asked.start
        self.progressed_at = now
        self.not_before = 0.0
        self.attempts = 0
        self.replica: int | None = None
        self._estimate = asked.average_bytes or average
        self._least = 0
        self._bytes = 0.0
        self._offsets = 0

    @property
    def is_done(self) -> bool:
        return self.position >= self.range.end

    @property
    def name(self) -> str:
        """``"topic-0"``, as Spark's error texts have it."""
        return f"{self.range.topic}-{self.range.partition}"

    @property
    def average_bytes(self) -> float:
        """Fetched bytes for each offset, as far as is known; 0 if nothing is."""
        return self._bytes / self._offsets if self._offsets else self._estimate

    def wanted_bytes(self, most: int) -> int:
        """What the next fetch asks of the partition: all that is left of the range by the average, at most ``most``."""
        average = self.average_bytes
        if not average:
            return max(most, self._least)
        left = (self.range.end - self.position) * average * SLACK_RATIO + SLACK_BYTES
        return max(min(most, int(left)), self._least)

    def advance(self, position: int, size: int, now: float) -> None:
        """Everything before ``position`` has come, in ``size`` bytes."""
        self._bytes += size
        self._offsets += position - self.position
        self.position = position
        self.progressed_at = now
        self.attempts = 0
        self._least = 0

    def grow(self, size: int) -> None:
        """The next entry alone has ``size`` bytes."""
        self._least = max(self._least, size)


class Asked(NamedTuple):
    """One partition of a fetch."""

    place: Place
    offset: int
    max_bytes: int
    leader_epoch: int
    topic_id: UUID | None


class Fetched(NamedTuple):
    """What one partition gave: ``records`` reach from ``offset`` to before ``next_offset``, None if none came whole."""

    place: Place
    offset: int
    next_offset: int | None
    error_code: int
    high_watermark: int
    records: Buffer
    aborted: tuple[Aborted, ...]
    preferred_replica: int = -1
    """To be asked instead of the leader, which gives no records then; -1 for none."""

    @property
    def cut_off_size(self) -> int | None:
        """Bytes of the first entry where only a part of it came: a larger fetch will bring it."""
        return first_entry_size(self.records) if only_partial(self.records) else None


def pick(places: Iterable[Place], budget: int, most_each: int | None = None) -> list[tuple[Place, int]]:
    """The places to fetch in one request, with the bytes to ask of each: as many as ``budget`` bytes will serve.

    No more than ``most_each`` of one, unless a single entry is larger.
    """
    picked = []
    for place in places:
        wanted = place.wanted_bytes(budget if most_each is None else min(budget, most_each))
        picked.append((place, wanted))
        budget -= wanted
        if budget <= 0:
            break
    return picked


_topic_of = attrgetter("place.range.topic")


class RangeFetch:
    """One fetch; called with the broker's versions it is the request, and :meth:`read` reads the answer."""

    __slots__ = ("_asked", "_max_bytes", "_terms", "_version")

    def __init__(self, asked: Sequence[Asked], terms: FetchTerms, *, max_bytes: int) -> None:
        self._asked = sorted(asked, key=_topic_of)
        self._max_bytes = max_bytes
        self._terms = terms
        self._version = -1

    @property
    def places(self) -> list[Place]:
        return [each.place for each in self._asked]

    def __call__(self, versions: BrokerVersions) -> FetchRequest:
        kind = FetchRequest if all(each.topic_id is not None for each in self._asked) else FetchByName
        terms = self._terms
        version = self._version = versions.pick(kind)
        request = kind(
            replica_id=CONSUMER, max_wait_ms=terms.max_wait_ms, min_bytes=terms.min_bytes, max_bytes=self._max_bytes
        )
        if terms.is_committed_only and version >= FIRST_WITH_ISOLATION:
            request.isolation_level = 1
        if version >= FIRST_WITH_RACK:
            request.rack_id = terms.rack
        request.topics = [_fetch_topic(list(group), version) for _, group in groupby(self._asked, key=_topic_of)]
        return request

    def read(self, response: FetchResponse) -> list[Fetched]:
        """The partitions that were answered; an error of the whole fetch is every partition's."""
        if response.error_code:
            return [Fetched(one.place, one.offset, None, response.error_code, -1, b"", ()) for one in self._asked]
        asked_of = {(each.place.range.topic, each.place.range.partition): each for each in self._asked}
        name_of = {each.topic_id: each.place.range.topic for each in self._asked}
        answered = []
        for topic in response.responses:
            name = topic.topic or name_of.get(topic.topic_id, "")
            for each in topic.partitions:
                asked = asked_of.get((name, each.partition_index))
                if asked is not None:
                    answered.append(_fetched(asked, each))
        return answered


def _fetch_topic(asked: list[Asked], version: int) -> FetchTopic:
    partitions = [
        FetchPartition(
            partition=each.place.range.partition,
            current_leader_epoch=each.leader_epoch,
            fetch_offset=each.offset,
            partition_max_bytes=each.max_bytes,
        )
        for each in asked
    ]
    topic_id = asked[0].topic_id
    if version >= FIRST_WITH_TOPIC_IDS and topic_id is not None:
        return FetchTopic(topic_id=topic_id, partitions=partitions)
    return FetchTopic(topic=asked[0].place.range.topic, partitions=partitions)


def _fetched(asked: Asked, each: PartitionData) -> Fetched:
    records = each.records if each.records is not None else b""
    next_offset = read_frontier(records) if len(records) else None
    return Fetched(
        asked.place,
        asked.offset,
        next_offset,
        each.error_code,
        each.high_watermark,
        records,
        tuple(Aborted(one.first_offset, one.producer_id) for one in each.aborted_transactions or ()),
        each.preferred_read_replica,
    )
