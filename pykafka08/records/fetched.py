"""A fetched batch: what the log says of it, and its records in whatever shape they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from pykafka08.errors import CorruptRecordError
from pykafka08.records.batch_records import BatchRecords, columns_of
from pykafka08.records.columns import Columns
from pykafka08.records.compression import Codec
from pykafka08.records.packed import PackedRecords
from pykafka08.records.record import Record, TimestampType

if TYPE_CHECKING:
    import pyarrow

__all__ = ["ControlType", "FetchedBatch", "gather_columns"]


class ControlType(IntEnum):
    """What a control batch says about its producer's transaction."""

    ABORT = 0
    COMMIT = 1


class _Payload(Protocol):
    @property
    def unpacked_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def chunks(self) -> Iterator[list[Record]]: ...
    def values(self) -> list[bytes | None]: ...
    def keys(self) -> list[bytes | None]: ...
    def columns(self) -> Columns: ...


class FetchedBatch:
    """The records of one batch at or above the fetched offset; a run of plain messages of magic 0 or 1 is one batch.

    ``next_offset`` is where to read on: it crosses what compaction removed, so it can be far above the last record.
    Fields that magic 0 and 1 lack are -1.  Making records can raise CorruptRecordError where bytes with a right
    checksum are no records.
    """

    __slots__ = (
        "base_offset",
        "base_sequence",
        "codec",
        "is_control",
        "is_transactional",
        "last_offset",
        "leader_epoch",
        "magic",
        "max_timestamp_ms",
        "partition",
        "payload",
        "producer_epoch",
        "producer_id",
        "taken_from",
        "timestamp_type",
        "topic",
    )

    def __init__(
        self,
        payload: _Payload,
        *,
        topic: str,
        partition: int,
        magic: int,
        codec: Codec,
        base_offset: int,
        last_offset: int,
        timestamp_type: TimestampType,
        max_timestamp_ms: int,
        is_control: bool = False,
        is_transactional: bool = False,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.payload = payload
        self.topic = topic
        self.partition = partition
        self.magic = magic
        self.codec = codec
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.timestamp_type = timestamp_type
        self.max_timestamp_ms = max_timestamp_ms
        self.is_control = is_control
        self.is_transactional = is_transactional
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.leader_epoch = leader_epoch
        self.taken_from: object = None
        """What tells one consumer's batches from another's."""

    def slice(self, payload: _Payload, base_offset: int, last_offset: int) -> FetchedBatch:
        """The part of this batch from ``base_offset`` to ``last_offset``, whose records are ``payload``."""
        return FetchedBatch(
            payload,
            topic=self.topic,
            partition=self.partition,
            magic=self.magic,
            codec=self.codec,
            base_offset=base_offset,
            last_offset=last_offset,
            timestamp_type=self.timestamp_type,
            max_timestamp_ms=self.max_timestamp_ms,
            is_control=self.is_control,
            is_transactional=self.is_transactional,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            leader_epoch=self.leader_epoch,
        )

    @property
    def next_offset(self) -> int:
        """The offset to fetch after this batch."""
        return self.last_offset + 1

    def __len__(self) -> int:
        return len(self.payload)

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(self.payload.chunks())

    def chunks(self) -> Iterator[list[Record]]:
        """The records in lists of at most 256, each made when it is asked for."""
        return self.payload.chunks()

    def records(self) -> list[Record]:
        """All records at once."""
        return list(chain.from_iterable(self.payload.chunks()))

    def values(self) -> list[bytes | None]:
        """The values alone: cheaper than records."""
        return self.payload.values()

    def keys(self) -> list[bytes | None]:
        """The keys alone."""
        return self.payload.keys()

    def columns(self) -> Columns:
        """Offsets and timestamps as arrays, and where keys, values and headers lie: cheaper than any object."""
        return self.payload.columns()

    def to_arrow(self) -> pyarrow.RecordBatch:
        """A pyarrow RecordBatch with a copy of all fields: see :func:`pykafka08.records.arrow.to_arrow`.

        Needs the extra ``arrow``: ConfigError without it.
        """
        from pykafka08.records.arrow import to_arrow

        return to_arrow((self,))

    @property
    def unpacked_bytes(self) -> int:
        """Bytes that the records take out of their codec; of magic 0 and 1 keys and values alone are counted."""
        return self.payload.unpacked_bytes

    def control_type(self) -> ControlType | None:
        """What a control batch says; None for an ordinary batch and for kinds that no consumer acts on."""
        if not self.is_control or not len(self):
            return None
        key = next(iter(self)).key
        # Key of a control record: version i16, type i16.
        if key is None or len(key) < 4:
            raise CorruptRecordError(
                "control record has no type",
                topic=self.topic,
                partition=self.partition,
                offset=self.base_offset,
                next_offset=self.next_offset,
            )
        kind = int.from_bytes(key[2:4], "big", signed=True)
        return ControlType(kind) if kind in ControlType._value2member_map_ else None

    def __repr__(self) -> str:
        return (
            f"FetchedBatch({self.topic}[{self.partition}] offsets {self.base_offset}..{self.last_offset}, "
            f"{len(self)} records, magic {self.magic}, {self.codec.label})"
        )


def gather_columns(batches: Sequence[FetchedBatch]) -> list[Columns]:
    """The records of all batches as columns; one item for all neighbours that lie in the same bytes.

    CorruptRecordError for the first batch that is damaged.
    """
    gathered: list[Columns] = []
    neighbours: list[PackedRecords] = []
    for batch in batches:
        payload = batch.payload
        if not isinstance(payload, BatchRecords):
            if neighbours:
                gathered.append(columns_of(neighbours))
                neighbours = []
            gathered.append(payload.columns())
        elif neighbours and neighbours[0].data is payload.data:
            neighbours.append(payload)
        else:
            if neighbours:
                gathered.append(columns_of(neighbours))
            neighbours = [payload]
    if neighbours:
        gathered.append(columns_of(neighbours))
    return gathered
