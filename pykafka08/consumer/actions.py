"""What the consumer's machine wants done, and the answers it takes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from pykafka08.records.record import TopicPartition
from pykafka08.wire import Buffer

__all__ = [
    "Aborted",
    "Action",
    "CutOff",
    "EpochAsk",
    "EpochEnd",
    "FetchAsk",
    "FetchedPartition",
    "FoundEpoch",
    "ListedOffset",
    "Note",
    "OffsetAsk",
    "RefreshMetadata",
    "SendEpochs",
    "SendFetch",
    "SendListOffsets",
    "StartAnew",
]


class FetchAsk(NamedTuple):
    """One partition of a fetch; ``topic_id`` None where metadata has none."""

    tp: TopicPartition
    offset: int
    max_bytes: int
    epoch: int = 0
    leader_epoch: int = -1
    topic_id: UUID | None = None
    last_epoch: int = -1
    """Leader epoch of the record before ``offset``, -1 if unknown."""


@dataclass(frozen=True)
class SendFetch:
    """Fetch from ``node_id``; comes back as ``fetch_answered`` or ``fetch_failed``.

    ``max_wait`` in seconds; ``max_bytes`` of the whole answer, which brokers before 0.10.1 do not know.
    ``renewed`` are those of ``asks`` that the last fetch from there did not have, which was answered well and had all
    others; None if that is not known.
    """

    node_id: int
    asks: tuple[FetchAsk, ...]
    max_bytes: int
    max_wait: float
    renewed: tuple[FetchAsk, ...] | None = None


class OffsetAsk(NamedTuple):
    """One partition of a ListOffsets request; ``timestamp`` is in ms, or LATEST or EARLIEST."""

    tp: TopicPartition
    timestamp: int
    epoch: int = 0
    leader_epoch: int = -1


@dataclass(frozen=True)
class SendListOffsets:
    """Ask ``node_id`` for offsets; comes back as ``offsets_listed`` or ``listing_failed``."""

    node_id: int
    asks: tuple[OffsetAsk, ...]


class EpochAsk(NamedTuple):
    """One partition of an OffsetForLeaderEpoch request: where does ``last_epoch`` end?"""

    tp: TopicPartition
    last_epoch: int
    epoch: int = 0
    leader_epoch: int = -1


@dataclass(frozen=True)
class SendEpochs:
    """Ask ``node_id`` where leader epochs end; comes back as ``epochs_answered`` or ``epochs_failed``."""

    node_id: int
    asks: tuple[EpochAsk, ...]


@dataclass(frozen=True)
class RefreshMetadata:
    """The picture of that generation is out of date."""

    generation: int


@dataclass(frozen=True)
class StartAnew:
    """The topic was deleted and made again: what was read of the old one, and committed, counts for nothing."""

    tp: TopicPartition


@dataclass(frozen=True)
class CutOff:
    """The log has lost its records from ``end_offset`` on, and others come there: what was read of those is void."""

    tp: TopicPartition
    end_offset: int


@dataclass(frozen=True)
class Note:
    """Something that an operator may want to read in the log."""

    event: str
    facts: dict[str, Any] = field(default_factory=dict)


Action = SendFetch | SendListOffsets | SendEpochs | RefreshMetadata | StartAnew | CutOff | Note


class EpochEnd(NamedTuple):
    """Where the records of a leader epoch end in the leader's log; -1 and -1 if it knows none so old."""

    leader_epoch: int
    end_offset: int


class Aborted(NamedTuple):
    """A transaction that ends in an abort marker, as a Fetch answer announces it."""

    first_offset: int
    producer_id: int


class FetchedPartition(NamedTuple):
    """One partition of a Fetch answer."""

    tp: TopicPartition
    error_code: int
    records: Buffer | None = None
    aborted: tuple[Aborted, ...] = ()
    preferred_replica: int = -1
    """The broker to read from instead, -1 for none."""
    diverging: EpochEnd | None = None
    """Set where the log does not hold what was read before the asked offset."""
    end_offset: int = -1
    """As far as one may read."""
    fault: str | None = None
    """The fault of the whole answer; None if it has none."""


class FoundEpoch(NamedTuple):
    """One partition of an OffsetForLeaderEpoch answer."""

    tp: TopicPartition
    error_code: int
    end: EpochEnd


class ListedOffset(NamedTuple):
    """One partition of a ListOffsets answer; ``offset`` -1 where no record is that late."""

    tp: TopicPartition
    error_code: int
    offset: int = -1
    timestamp_ms: int = -1
